"""BLEU, chrF and TER of translations, and how often they are exactly a reference.

All are functions of statistics that add up over sentences: those of sacrebleu itself.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric
from wxb.tasks.translation.metrics import sums as of
from wxb.tasks.translation.metrics.sums import EXACT, SENTENCES
from wxb.tasks.translation.metrics.words import Words, unseen, words

if TYPE_CHECKING:
    from wxb.corpora.records import Record

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
COUNTS = {"exact_matches": "exactly a reference", "support": "sentences"}
SHARES: Mapping[str, str] = {}

# Words of a source, a Chinese character being one.
BUCKETS = ((1, 5), (6, 10), (11, 20), (21, None))
UNSEEN = ("all words in training", "a word that training lacks")
BREAKDOWN = "by_kind.csv"


class Judged(NamedTuple):
    """One test record with its references and the translation of a system.

    It is `unseen` where its source, or every reference, has a word that no training record has.
    """

    id: str
    input: str
    gold: tuple[str, ...]
    predicted: str
    group: str = ""  # records of one group are resampled together; empty: a group of its own
    unseen: bool = False
    attention: Mapping[str, Any] | None = None  # source and target pieces, and weights (T, S)


def known(records: Iterable[Record]) -> Words:
    """The words of the sources of training, and those of its references."""
    return Words.of(records)


def judge(record: Record, prediction: Any, known: Words) -> Judged:
    """A test record with its translation; of several hypotheses the best counts."""
    group = "" if record.group == record.input else record.group
    return Judged(
        record.id,
        record.input,
        record.gold,
        prediction.text,
        group,
        unseen(record, known),
        prediction.attention,
    )


def parse(row: Mapping[str, Any]) -> Judged:
    """A row of predictions.jsonl."""
    return Judged(**{**row, "gold": tuple(row["gold"])})


def same(row: Judged) -> tuple[str, str, tuple[str, ...]]:
    """What the rows of two systems must share: record, source and references."""
    return row.id, row.input, row.gold


def statistics(rows: Sequence[Judged]) -> NDArray[np.float64]:
    """What adds up (N, 32): see `sums.statistics`."""
    return of.statistics([row.predicted for row in rows], [row.gold for row in rows])


def scores(sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The METRICS (...) of sums of statistics (..., 32)."""
    return {
        "bleu": of.bleu(sums),
        "chrf": of.chrf(sums),
        "ter": of.ter(sums),
        "exact": of.ratio(sums[..., EXACT], sums[..., SENTENCES]),
        "length_ratio": of.length_ratio(sums),
    }


def totals(sums: NDArray[Any]) -> dict[str, float]:
    """Sentences of a run, and how many are exactly a reference: means over runs (R, 32)."""
    exact, support = np.rint(sums.mean(axis=0)[[EXACT, SENTENCES]]).astype(int).tolist()
    return {"support": support, "exact_matches": exact}


def details(rows: Sequence[Judged]) -> dict[str, Any]:
    """Scores by length of source, and by whether training has all words."""
    table = statistics(rows)
    lengths = np.array([len(words(row.input)) for row in rows])
    new = np.array([row.unseen for row in rows])
    kinds = {
        **{
            f"{low} to {high} words" if high else f"{low} words or more": (lengths >= low)
            & (lengths <= (high or np.inf))
            for low, high in BUCKETS
        },
        **dict(zip(UNSEEN, (~new, new), strict=True)),
    }
    return {"by_kind": {kind: _row(table[chosen]) for kind, chosen in kinds.items()}}


def _row(table: NDArray[Any]) -> dict[str, float]:
    found = scores(table.sum(axis=0)) if len(table) else {}
    return {
        "sentences": len(table),
        **{key: round(float(value), DIGITS) for key, value in found.items()},
    }


def write_details(folder: Path, rows: Sequence[Judged]) -> None:
    """Write the table by kind of sentence."""
    keys = ["sentences", *(metric.key for metric in METRICS)]
    with (folder / BREAKDOWN).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["kind", *keys])
        for kind, row in details(rows)["by_kind"].items():
            table.writerow([kind, *(row.get(key, "") for key in keys)])
