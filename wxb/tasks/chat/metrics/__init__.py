"""Replies that are exactly right and keep the format that was asked for, and chrF of all replies.

The first two are of the questions that can be checked, and questions of one kind are resampled
together. chrF is made of sacrebleu's own statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import CHRF

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.chat.record import checking

if TYPE_CHECKING:
    from wxb.corpora.records import Record


EXACT, FORMAT, CHECKED, ENDED, RECORDS = range(5)
CHARACTERS = slice(5, 5 + 3 * CHRF.CHAR_ORDER)  # n-grams of hypothesis and reference, and matches
BY_KIND = "by_kind.csv"


class Judged(NamedTuple):
    """A test question with its answer and a system's reply, and those to the other prompts."""

    id: str
    input: str
    gold: str
    predicted: str
    kind: str | None
    format: str | None  # None where nothing can be checked
    ended: bool  # by itself, not by the length allowed
    replies: Mapping[str, str] = {}
    group: str = ""
    tokens: int = 0  # of all these replies


class Scorer(scorer.Scorer):
    """Exact match, format and chrF of replies."""

    METRICS = (
        Metric("exact", "exact match"),
        Metric("format", "format kept"),
        Metric("chrf", "chrF", scale=100.0, decimals=1),
        Metric("ended", "ended by itself"),
    )
    HEADLINE = "exact"
    SIGNATURE = "exact match of checkable questions, but for case, width and a last full stop"
    UNIT = "questions"
    COUNTS: ClassVar = {"right": "right", "kept": "in the format"}
    ROW = Judged

    def fields(self, record: Record, prediction: Any, known: None) -> dict[str, Any]:
        """The reply, and those to the other prompts."""
        gold = record.gold
        return {
            "gold": gold["text"],
            "predicted": prediction.text,
            "kind": gold["kind"],
            "format": gold["format"],
            "ended": prediction.ended,
            "replies": dict(prediction.others),
            "tokens": prediction.tokens,
        }

    def group(self, record: Record) -> str:
        """The kind of question."""
        kind: str | None = record.gold["kind"]
        return kind or ""

    def same(self, row: Judged) -> tuple[str, str, str, str | None]:
        """What the rows of two systems must share: record, question, answer and format."""
        return row.id, row.input, row.gold, row.format

    def statistics(self, rows: Sequence[Judged]) -> NDArray[np.float64]:
        """Right, format kept, checkable, ended, 1, and what chrF is made of: (N, 23)."""
        table = np.zeros((len(rows), CHARACTERS.stop))
        if not rows:
            return table
        for row, counted in zip(rows, table, strict=True):
            counted[: CHARACTERS.start] = (*_checked(row, row.predicted), row.ended, 1)
        table[:, CHARACTERS] = CHRF()._extract_corpus_statistics(
            [row.predicted for row in rows], [[row.gold for row in rows]]
        )
        return table

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums (..., 23); 0 without a question that can be checked."""
        checked = np.maximum(sums[..., CHECKED], 1)
        return {
            "exact": sums[..., EXACT] / checked,
            "format": sums[..., FORMAT] / checked,
            "chrf": _chrf(sums[..., CHARACTERS]),
            "ended": sums[..., ENDED] / sums[..., RECORDS],
        }

    def totals(self, sums: NDArray[np.float64]) -> dict[str, float]:
        """Numbers of checkable questions of a run, means over runs (R, 23)."""
        counted = np.rint(sums.mean(axis=0)).astype(int).tolist()
        return {"right": counted[EXACT], "kept": counted[FORMAT], "support": counted[CHECKED]}

    def details(self, rows: Sequence[Judged]) -> dict[str, Any]:
        """Scores by kind of question and by prompt, how varied the replies are, and how long."""
        kinds = sorted({row.kind for row in rows if row.kind is not None})
        prompts = dict.fromkeys(name for row in rows for name in row.replies)
        return {
            "by_kind": {
                kind: _rates([(row, row.predicted) for row in rows if row.kind == kind])
                for kind in kinds
            },
            "by_prompt": {
                name: _rates([(row, row.replies[name]) for row in rows]) for name in prompts
            },
            **{f"distinct_{n}": distinct([row.predicted for row in rows], n) for n in (1, 2)},
            "tokens": sum(row.tokens for row in rows),
        }

    def write_details(self, folder: Path, rows: Sequence[Judged]) -> None:
        """Write the scores by kind of question as a table."""
        kinds = self.details(rows)["by_kind"]
        lines = ([kind, *row.values()] for kind, row in kinds.items())
        scorer.write_table(folder / BY_KIND, ["kind", "exact", "format", "support"], lines)


def _checked(row: Judged, reply: str) -> tuple[bool, bool, bool]:
    """Whether a reply is right and keeps the format, and whether that can be checked."""
    if row.format is None:
        return False, False, False
    return checking.right(row.format, row.gold, reply), checking.keeps(row.format, reply), True


def _chrf(sums: NDArray[Any]) -> NDArray[Any]:
    """chrF2 (...) of sums (..., 18)."""
    each = [CHRF()._compute_f_score(row) for row in sums.reshape(-1, sums.shape[-1]).tolist()]
    return np.array(each).reshape(sums.shape[:-1])


def _rates(replies: Sequence[tuple[Judged, str]]) -> dict[str, float]:
    """The shares of replies that are right and keep the format, and how many can be checked."""
    found = np.array([_checked(row, reply) for row, reply in replies], int).sum(axis=0)
    right, kept, checked = found.tolist()
    return {
        "exact": round(right / max(checked, 1), DIGITS),
        "format": round(kept / max(checked, 1), DIGITS),
        "support": checked,
    }


def distinct(replies: Sequence[str], n: int) -> float:
    """The share of n-grams that are not repetitions (Li et al. 2016), 0 where there is none.

    A Chinese character is a word.
    """
    grams = [
        tuple(words[place : place + n])
        for words in map(_words, replies)
        for place in range(len(words) - n + 1)
    ]
    return round(len({*grams}) / len(grams), DIGITS) if grams else 0.0


def _words(text: str) -> list[str]:
    spaced = "".join(f" {c} " if "\u4e00" <= c <= "\u9fff" else c for c in text)
    return spaced.split()
