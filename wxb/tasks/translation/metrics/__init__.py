"""The scores of translation: BLEU, chrF, TER and exact matches.

All are functions of sacrebleu's own statistics, which add up over sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.translation.metrics import sums as of
from wxb.tasks.translation.metrics.sums import EXACT, PREDICTED, REFERENCE, SENTENCES

if TYPE_CHECKING:
    from wxb.corpora.records import Record


# The fewest and the most words of a source; a Chinese character is a word.
BUCKETS = ((1, 5), (6, 10), (11, 20), (21, None))
UNSEEN = ("all words in training", "a word that training lacks")
BREAKDOWN = "by_kind.csv"

# A word of any language; a Chinese or Japanese character is one.
_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}"
_WORD = regex.compile(rf"(?V1)[{_ALONE}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+")


class PredictionRow(NamedTuple):
    """A test record with its references and a system's translation.

    It is `unseen` if its source, or every reference, has a word that no training record has.
    """

    id: str
    input: str
    gold: tuple[str, ...]
    predicted: str
    group: str = ""  # of rows that are not independent; empty: a group of its own
    unseen: bool = False
    attention: Mapping[str, Any] | None = None  # `source` and `target` tokens, `weights` (T, S)


class Words(NamedTuple):
    """The words of sources and of references, in lower case."""

    source: frozenset[str]
    target: frozenset[str]

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> Words:
        """The words of labelled records; others are skipped."""
        sources: set[str] = set()
        references: set[str] = set()
        for record in records:
            if record.gold:
                sources.update(words(record.input))
                references.update(*map(words, record.gold))
        return cls(frozenset(sources), frozenset(references))


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def unseen(record: Record, vocabulary: Words) -> bool:
    """Whether the source of a record, or each of its references, has an unknown word."""
    return not {*words(record.input)} <= vocabulary.source or all(
        not {*words(reference)} <= vocabulary.target for reference in record.gold
    )


class Scorer(scorer.Scorer):
    """The scores of translation."""

    METRICS = (
        Metric("bleu", "BLEU", scale=100.0, decimals=1),
        Metric("chrf", "chrF", scale=100.0, decimals=1),
        Metric("ter", "TER", lower_is_better=True, scale=None, decimals=1),
        Metric("exact", "exact match"),
        Metric("length_ratio", "length ratio", scale=None),
    )
    HEADLINE = "bleu"
    SIGNATURE = f"sacrebleu {of.SIGNATURE}"
    UNIT = "sentences"
    COUNTS: ClassVar = {"exact_matches": "exact matches", "support": "sentences"}
    ROW = PredictionRow

    def vocabulary(self, records: Iterable[Record]) -> Words:
        """The words of the training sources and of their references."""
        return Words.from_records(records)

    def fields(self, record: Record, prediction: Any, vocabulary: Words) -> dict[str, Any]:
        """The fields `predicted` (the best hypothesis), `unseen` and `attention` of a row."""
        return {
            "predicted": prediction.text,
            "unseen": unseen(record, vocabulary),
            "attention": prediction.attention,
        }

    def parse(self, row: Mapping[str, Any]) -> PredictionRow:
        """The row of a parsed line of predictions.jsonl."""
        return PredictionRow(**{**row, "gold": tuple(row["gold"])})

    def statistics(self, rows: Sequence[PredictionRow]) -> NDArray[np.float64]:
        """The statistics of rows (N, 32); see `sums.statistics`."""
        return of.statistics([row.predicted for row in rows], [row.gold for row in rows])

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums of statistics (..., 32)."""
        return {
            "bleu": of.bleu(sums),
            "chrf": of.chrf(sums),
            "ter": of.ter(sums),
            "exact": scorer.ratio(sums[..., EXACT], sums[..., SENTENCES]),
            "length_ratio": scorer.ratio(sums[..., PREDICTED], sums[..., REFERENCE]),
        }

    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """Counts of sentences and of exact matches, as means over the sums (R, 32) of R runs."""
        exact, support = np.rint(sums.mean(axis=0)[[EXACT, SENTENCES]]).astype(int).tolist()
        return {"support": support, "exact_matches": exact}

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Scores by length of the source, and by whether training has all words."""
        table = self.statistics(rows)
        lengths = np.array([len(words(row.input)) for row in rows])
        is_unseen = np.array([row.unseen for row in rows])
        kinds = {
            **{
                f"{low} to {high} words" if high else f"{low} words or more": (lengths >= low)
                & (lengths <= (high or np.inf))
                for low, high in BUCKETS
            },
            **dict(zip(UNSEEN, (~is_unseen, is_unseen), strict=True)),
        }
        return {"by_kind": {kind: self._row(table[mask]) for kind, mask in kinds.items()}}

    def write_details(self, folder: Path, rows: Sequence[PredictionRow]) -> None:
        """Write the scores by kind of sentence as CSV."""
        keys = ["sentences", *(metric.key for metric in self.METRICS)]
        kinds = self.details(rows)["by_kind"]
        lines = ([kind, *(row.get(key, "") for key in keys)] for kind, row in kinds.items())
        scorer.write_table(folder / BREAKDOWN, ["kind", *keys], lines)

    def _row(self, table: NDArray[Any]) -> dict[str, float]:
        """The count and the scores of sentences with statistics (N, 32)."""
        scores = self.scores(table.sum(axis=0)) if len(table) else {}
        return {
            "sentences": len(table),
            **{key: round(float(value), DIGITS) for key, value in scores.items()},
        }
