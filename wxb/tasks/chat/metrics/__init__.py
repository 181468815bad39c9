"""Exact match and format of checkable questions, and chrF of all replies.

chrF is computed from sacrebleu's statistics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import CHRF

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.chat.record import checking

if TYPE_CHECKING:
    from wxb.corpora.records import Record


EXACT, FORMAT, CHECKABLE, ENDED, RECORDS = range(5)  # columns of the statistics
CHARACTERS = slice(5, 5 + 3 * CHRF.CHAR_ORDER)  # n-grams of hypothesis and reference, and matches
BY_KIND = "by_kind.csv"


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


class Scorer(scorer.Scorer):
    """Exact match, format, chrF and the share of replies that end by themselves."""

    METRICS = (
        Metric("exact", "exact match"),
        Metric("format", "format match"),
        Metric("chrf", "chrF", scale=100.0, decimals=1),
        Metric("ended", "ended by itself"),
    )
    HEADLINE = "exact"
    SIGNATURE = "exact match of checkable questions, ignoring case, width and a final full stop"
    UNIT = "questions"
    COUNTS: ClassVar = {"correct": "correct", "in_format": "in format"}
    ROW = PredictionRow

    def fields(self, record: Record, prediction: Any, vocabulary: None) -> dict[str, Any]:
        """The fields of a row: the answer, its kind and format, and the reply with properties."""
        gold = record.gold
        return {
            "gold": gold["text"],
            "predicted": prediction.text,
            "kind": gold["kind"],
            "format": gold["format"],
            "ended": prediction.ended,
            "tokens": prediction.tokens,
        }

    def identity(self, row: PredictionRow) -> tuple[str, str, str, str | None]:
        """What must be equal in the rows of two systems: id, question, answer and format."""
        return row.id, row.input, row.gold, row.format

    def statistics(self, rows: Sequence[PredictionRow]) -> NDArray[np.float64]:
        """Correct, in format, checkable, ended, 1 and the statistics of chrF (N, 23)."""
        if not rows:
            return np.zeros((0, CHARACTERS.stop))
        checks = [(*_check(row), row.ended, 1) for row in rows]
        characters = CHRF()._extract_corpus_statistics(
            [row.predicted for row in rows], [[row.gold for row in rows]]
        )
        return np.hstack([checks, characters]).astype(float)

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums (..., 23); exact match is 0 without checkable questions."""
        checkable = np.maximum(sums[..., CHECKABLE], 1)
        return {
            "exact": sums[..., EXACT] / checkable,
            "format": sums[..., FORMAT] / checkable,
            "chrf": _chrf(sums[..., CHARACTERS]),
            "ended": sums[..., ENDED] / np.maximum(sums[..., RECORDS], 1),
        }

    def totals(self, sums: NDArray[np.float64]) -> dict[str, float]:
        """Counts of checkable questions, correct and with their format; means over runs (R, 23)."""
        means = np.rint(sums.mean(axis=0)).astype(int).tolist()
        return {"correct": means[EXACT], "in_format": means[FORMAT], "support": means[CHECKABLE]}

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Scores by kind of question, distinct-1 and -2, and generated tokens."""
        kinds = sorted({row.kind for row in rows if row.kind is not None})
        return {
            "by_kind": {kind: _rates([row for row in rows if row.kind == kind]) for kind in kinds},
            **{f"distinct_{n}": distinct_n([row.predicted for row in rows], n) for n in (1, 2)},
            "tokens": sum(row.tokens for row in rows),
        }

    def write_details(self, folder: Path, rows: Sequence[PredictionRow]) -> None:
        """Write the scores by kind of question as CSV."""
        kinds = self.details(rows)["by_kind"]
        lines = ([kind, *row.values()] for kind, row in kinds.items())
        scorer.write_table(folder / BY_KIND, ["kind", "exact", "format", "support"], lines)


def _check(row: PredictionRow) -> tuple[bool, bool, bool]:
    """Whether a reply is correct, has its format, and can be checked at all."""
    if row.format is None:
        return False, False, False
    is_correct = checking.is_correct(row.format, row.gold, row.predicted)
    return is_correct, checking.has_format(row.format, row.predicted), True


def _chrf(sums: NDArray[Any]) -> NDArray[Any]:
    """chrF2 (...) of sums (..., 18)."""
    scores = [CHRF()._compute_f_score(row) for row in sums.reshape(-1, sums.shape[-1]).tolist()]
    return np.array(scores).reshape(sums.shape[:-1])


def _rates(rows: Sequence[PredictionRow]) -> dict[str, float]:
    """Exact match and format, as shares of the checkable replies, and the number of these."""
    exact, has_format, checkable = map(sum, zip(*map(_check, rows), strict=True))
    return {
        "exact": round(exact / max(checkable, 1), DIGITS),
        "format": round(has_format / max(checkable, 1), DIGITS),
        "support": checkable,
    }


def distinct_n(replies: Sequence[str], n: int) -> float:
    """The number of distinct word n-grams / that of all (Li et al. 2016); 0 without n-grams.

    A Chinese character is a word.
    """
    spaced = (re.sub("([\u4e00-\u9fff])", r" \1 ", reply).split() for reply in replies)
    grams = [tuple(words[i : i + n]) for words in spaced for i in range(len(words) - n + 1)]
    return round(len({*grams}) / len(grams), DIGITS) if grams else 0.0
