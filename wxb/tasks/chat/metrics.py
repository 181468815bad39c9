"""Exact match and format of checkable questions, and sacrebleu's chrF of all replies."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import CHRF

from wxb.corpora.records import Record
from wxb.metrics import DIGITS, Metric, scorer
from wxb.metrics.intervals import Sums
from wxb.tasks.chat.record import checking


class PredictionRow(NamedTuple):
    """A test question with its answer and a system's reply."""

    id: str
    input: str
    gold: str
    predicted: str
    kind: str | None
    format: str | None  # None if the reply cannot be checked
    ended: bool  # by itself, not by the maximum length
    group: str = ""
    tokens: int = 0  # of the reply
    language: str = ""


class Scorer(scorer.Scorer):
    """Exact match, format, chrF and the share of replies that end by themselves."""

    METRICS = (
        Metric("exact", "exact match", denominator="checkable"),
        Metric("format", "format match", denominator="checkable"),
        Metric("chrf", "chrF", high=100.0, decimals=1),
        Metric("ended", "ended by itself"),
    )
    SIGNATURE = (
        "exact match of checkable questions, ignoring case, width and a final full stop;"
        " without any, chrF2 by sacrebleu"
    )
    UNIT = "questions"
    COUNTS: ClassVar = {"correct": "correct", "in_format": "in format"}
    ROW = PredictionRow

    def metrics(self, sums: Sums) -> Sequence[Metric]:
        """METRICS; if no question is checkable, only chrF and the share of replies that ended."""
        return self.METRICS if np.any(sums["checkable"]) else self.METRICS[2:]

    def headline(self, sums: Sums) -> Metric:
        """Exact match, or chrF if no question can be checked."""
        return self.metrics(sums)[0]

    def task_fields(self, record: Record, prediction: Any, vocabulary: None) -> dict[str, Any]:
        """The answer as `gold`, its `kind` and `format`; `predicted`, `ended` and `tokens`."""
        gold = record.gold
        return {
            "gold": gold["text"],
            "predicted": prediction.text,
            "kind": gold["kind"],
            "format": gold["format"],
            "ended": prediction.ended,
            "tokens": prediction.tokens,
        }

    def statistics(self, rows: Sequence[PredictionRow]) -> Sums:
        """`correct`, `in_format`, `checkable`, `ended`, `replies`; chrF's `characters` (N, 18)."""
        checks = np.array([(*_check(row), row.ended, 1) for row in rows], float).reshape(-1, 5)
        names = ("correct", "in_format", "checkable", "ended", "replies")
        sides = [row.predicted for row in rows], [[row.gold for row in rows]]
        characters = CHRF()._extract_corpus_statistics(*sides) if rows else []
        grams = np.array(characters).reshape(-1, 3 * CHRF.CHAR_ORDER)
        return {**dict(zip(names, checks.T, strict=True)), "characters": grams}

    def scores(self, sums: Sums) -> dict[str, NDArray[Any]]:
        """The METRICS (...); exact match and format are 0 without checkable questions."""
        return {
            "exact": scorer.ratio(sums["correct"], sums["checkable"]),
            "format": scorer.ratio(sums["in_format"], sums["checkable"]),
            "chrf": scorer.metric_of_sums(CHRF(), sums["characters"]),
            "ended": scorer.ratio(sums["ended"], sums["replies"]),
        }

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Counts of replies, scores `by_kind`, distinct-1 and -2, and the number of all `tokens`.

        `correct` and `in_format` count checkable replies, whose number is `support`. Without any,
        both are absent, and `support` is the number of all replies.
        """
        sums, by_kind = self.sums(rows), {}
        for kind in sorted({row.kind for row in rows if row.kind is not None}):
            members = [row for row in rows if row.kind == kind]
            scores = self.rounded_scores(members)
            by_kind[kind] = {
                "exact": scores["exact"],
                "format": scores["format"],
                "support": int(self.sums(members)["checkable"]),
            }
        return {
            **{key: int(sums[key]) for key in self.COUNTS if sums["checkable"]},
            "support": int(sums["checkable"] or sums["replies"]),
            "by_kind": by_kind,
            **{f"distinct_{n}": distinct_n([row.predicted for row in rows], n) for n in (1, 2)},
            "tokens": sum(row.tokens for row in rows),
        }


def _check(row: PredictionRow) -> tuple[bool, bool, bool]:
    """Whether a reply is correct, has its format, and can be checked at all."""
    if row.format is None:
        return False, False, False
    is_correct = checking.equals_answer(row.format, row.gold, row.predicted)
    return is_correct, checking.has_format(row.format, row.predicted), True


def distinct_n(replies: Sequence[str], n: int) -> float:
    """Share of distinct word n-grams (Li et al. 2016), with case; a Chinese character is a word."""
    spaced = (re.sub("([\u4e00-\u9fff])", r" \1 ", reply).split() for reply in replies)
    grams = [tuple(words[i : i + n]) for words in spaced for i in range(len(words) - n + 1)]
    return round(len({*grams}) / len(grams), DIGITS) if grams else 0.0
