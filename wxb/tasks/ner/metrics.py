"""Strict scores of typed character spans, the same for all systems, and their errors by outcome.

A predicted span is correct if a gold span of the same record has the same start, end and type.
Duplicates in a record count once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from enum import StrEnum, auto
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.metrics import Metric, scorer
from wxb.metrics.intervals import Sums
from wxb.tasks.ner.record import Span

Mention = tuple[str, str]  # text and type


class PredictionRow(NamedTuple):
    """A test record with its gold spans and those that a system predicted."""

    id: str
    input: str
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]
    scores: tuple[float, ...]  # of the predicted spans, from 0 to 1
    group: str = ""  # of records that are not independent; empty: a group of its own
    seen: tuple[bool, ...] = ()  # whether training has each gold mention; empty: unknown
    language: str = ""


class Scorer(scorer.Scorer):
    """Strict scores of typed character spans."""

    METRICS = (
        Metric("precision", "precision", denominator="predicted"),
        Metric("recall", "recall", denominator="gold"),
        Metric("f1", "F1"),
    )
    HEADLINE = "f1"
    SIGNATURE = "strict span F1"
    UNIT = "spans"
    COUNTS: ClassVar = {"correct": "correct", "predicted": "predicted", "support": "gold"}
    SHARES: ClassVar = {
        "recall_seen": "recall of seen mentions",
        "recall_unseen": "recall of unseen mentions",
    }
    ROW = PredictionRow

    def vocabulary(self, records: Iterable[Record]) -> set[Mention]:
        """The gold mentions of the training records, as text and type."""
        return {
            (record.input[span.start : span.end], span.type)
            for record in records
            for span in record.gold or ()
        }

    def task_fields(
        self, record: Record, prediction: Iterable[tuple[Span, float]], vocabulary: Set[Mention]
    ) -> dict[str, Any]:
        """The fields `gold`, `predicted`, `scores` and `seen` of a `PredictionRow`.

        A gold mention is `seen` if `vocabulary` has it. Scores are rounded to 4 digits.
        """
        gold = record.gold or ()
        pairs = list(prediction)
        return {
            "gold": gold,
            "predicted": tuple(span for span, _ in pairs),
            "scores": tuple(round(score, 4) for _, score in pairs),
            "seen": tuple(
                (record.input[span.start : span.end], span.type) in vocabulary for span in gold
            ),
        }

    def statistics(self, rows: Sequence[PredictionRow]) -> Sums:
        """`counts`, and numbers of `[correct_]seen` and `[correct_]unseen` spans; 0 if unknown."""
        names = ("seen", "correct_seen", "unseen", "correct_unseen")
        sums = {name: np.zeros(len(rows), np.int64) for name in names}
        for index, row in enumerate(rows):
            for span, is_seen in zip(row.gold, row.seen, strict=bool(row.seen)):
                kind = "seen" if is_seen else "unseen"
                sums[kind][index] += 1
                sums[f"correct_{kind}"][index] += span in row.predicted
        return sums | counts([row.gold for row in rows], [row.predicted for row in rows])

    def scores(self, sums: Sums) -> dict[str, NDArray[Any]]:
        """Precision, recall and F1 (...) of sums (...); 0/0 is 0."""
        correct, gold, predicted = sums["correct"], sums["gold"], sums["predicted"]
        return {
            "precision": scorer.ratio(correct, predicted),
            "recall": scorer.ratio(correct, gold),
            # Equal to the harmonic mean of precision and recall, in a single division.
            "f1": scorer.ratio(2 * correct, gold + predicted),
        }

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Counts of spans (`support`: gold) and of all outcomes (`errors`), and scores `by_type`.

        `recall_seen` and `recall_unseen` are absent without such spans, `support_seen` if both are.
        """
        sums = {name: int(value) for name, value in self.sums(rows).items()}
        recalls = {
            f"recall_{kind}": sums[f"correct_{kind}"] / sums[kind]
            for kind in ("seen", "unseen")
            if sums[kind]
        }
        types = {span.type for row in rows for span in (*row.gold, *row.predicted)}
        outcomes = Counter(f.outcome for row in rows for f in findings(row.gold, row.predicted))
        return {
            **recalls,
            **({"support_seen": sums["seen"]} if recalls else {}),
            "support": sums["gold"],
            "predicted": sums["predicted"],
            "correct": sums["correct"],
            "errors": {outcome.value: outcomes[outcome] for outcome in Outcome},
            "by_type": {kind: self._of_type(kind, rows) for kind in sorted(types)},
        }

    def _of_type(self, kind: str, rows: Sequence[PredictionRow]) -> dict[str, float]:
        """The scores of one type, and its numbers of gold (`support`) and `predicted` spans."""
        members = [
            row._replace(
                gold=tuple(span for span in row.gold if span.type == kind),
                predicted=tuple(span for span in row.predicted if span.type == kind),
                seen=(),
            )
            for row in rows
        ]
        sums, scores = self.sums(members), self.rounded_scores(members)
        return {**scores, "support": int(sums["gold"]), "predicted": int(sums["predicted"])}


def counts(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, NDArray[np.int64]]:
    """Numbers of `correct`, `gold` and `predicted` spans (N,), each span of a record once."""
    pairs = [({*g}, {*p}) for g, p in zip(gold, predicted, strict=True)]
    return {
        "correct": np.array([len(g & p) for g, p in pairs], np.int64),
        "gold": np.array([len(g) for g, _ in pairs], np.int64),
        "predicted": np.array([len(p) for _, p in pairs], np.int64),
    }


class Outcome(StrEnum):
    """The outcome of a gold span, a predicted span, or a matched pair."""

    CORRECT = auto()  # same offsets, same type
    WRONG_TYPE = auto()  # same offsets, other type
    WRONG_BOUNDARY = auto()  # overlapping but different offsets, same type
    WRONG_BOTH = auto()  # overlapping but different offsets, other type
    MISSED = auto()  # a gold span left without a prediction
    SPURIOUS = auto()  # a predicted span left without a gold span


class Finding(NamedTuple):
    """One outcome and its spans: `gold` is None when SPURIOUS, `predicted` is None when MISSED."""

    outcome: Outcome
    gold: Span | None
    predicted: Span | None


def findings(gold: Iterable[Span], predicted: Iterable[Span]) -> list[Finding]:
    """Match the spans of one document: every span is in exactly one finding.

    Exact matches come first. The rest are matched one to one, greedily: same offsets, then overlaps
    of the same type, then other overlaps; larger overlaps first, then the leftmost. Unmatched spans
    are MISSED or SPURIOUS. Findings are sorted by their gold span, or else their predicted span.
    """
    golds, predictions = set(gold), set(predicted)
    matched = [Finding(Outcome.CORRECT, span, span) for span in sorted(golds & predictions)]
    missed, spurious = golds - predictions, predictions - golds
    pairs = [pair for pair in product(sorted(missed), sorted(spurious)) if _overlap(*pair)]
    for g, p in sorted(pairs, key=_priority):
        if g in missed and p in spurious:
            missed.remove(g)
            spurious.remove(p)
            matched.append(Finding(_mismatch(g, p), g, p))
    matched += [Finding(Outcome.MISSED, span, None) for span in sorted(missed)]
    matched += [Finding(Outcome.SPURIOUS, None, span) for span in sorted(spurious)]
    return sorted(matched, key=lambda finding: [*filter(None, finding[1:])])


def _overlap(a: Span, b: Span) -> int:
    return max(0, min(a.end, b.end) - max(a.start, b.start))


def _mismatch(gold: Span, predicted: Span) -> Outcome:
    if gold[:2] == predicted[:2]:
        return Outcome.WRONG_TYPE
    return Outcome.WRONG_BOUNDARY if gold.type == predicted.type else Outcome.WRONG_BOTH


def _priority(pair: tuple[Span, Span]) -> tuple[int, int, int]:
    # First by the kind of error, then the longest overlap, then the overlap that starts first.
    gold, predicted = pair
    rank = [*Outcome].index(_mismatch(gold, predicted))
    return rank, -_overlap(gold, predicted), max(gold.start, predicted.start)
