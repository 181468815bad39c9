"""BLEU, chrF and TER of translations, and how often they are exactly a reference.

All are functions of statistics that add up over sentences: those of sacrebleu itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.translation.metrics import sums as of
from wxb.tasks.translation.metrics.sums import EXACT, SENTENCES
from wxb.tasks.translation.metrics.words import Words, unseen, words

if TYPE_CHECKING:
    from wxb.corpora.records import Record


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


class Scorer(scorer.Scorer):
    """BLEU, chrF, TER and exact matches."""

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
    COUNTS: ClassVar = {"exact_matches": "exactly a reference", "support": "sentences"}
    ROW = Judged

    def known(self, records: Iterable[Record]) -> Words:
        """The words of the sources of training, and those of its references."""
        return Words.of(records)

    def fields(self, record: Record, prediction: Any, known: Words) -> dict[str, Any]:
        """The translation: of several hypotheses the best."""
        return {
            "predicted": prediction.text,
            "unseen": unseen(record, known),
            "attention": prediction.attention,
        }

    def parse(self, row: Mapping[str, Any]) -> Judged:
        """The row of a line of predictions.jsonl."""
        return Judged(**{**row, "gold": tuple(row["gold"])})

    def statistics(self, rows: Sequence[Judged]) -> NDArray[np.float64]:
        """What adds up (N, 32): see `sums.statistics`."""
        return of.statistics([row.predicted for row in rows], [row.gold for row in rows])

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums of statistics (..., 32)."""
        return {
            "bleu": of.bleu(sums),
            "chrf": of.chrf(sums),
            "ter": of.ter(sums),
            "exact": of.ratio(sums[..., EXACT], sums[..., SENTENCES]),
            "length_ratio": of.length_ratio(sums),
        }

    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """Sentences of a run, and how many are exactly a reference: means over runs (R, 32)."""
        exact, support = np.rint(sums.mean(axis=0)[[EXACT, SENTENCES]]).astype(int).tolist()
        return {"support": support, "exact_matches": exact}

    def details(self, rows: Sequence[Judged]) -> dict[str, Any]:
        """Scores by length of source, and by whether training has all words."""
        table = self.statistics(rows)
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
        return {"by_kind": {kind: self._row(table[chosen]) for kind, chosen in kinds.items()}}

    def write_details(self, folder: Path, rows: Sequence[Judged]) -> None:
        """Write the table by kind of sentence."""
        keys = ["sentences", *(metric.key for metric in self.METRICS)]
        kinds = self.details(rows)["by_kind"]
        lines = ([kind, *(row.get(key, "") for key in keys)] for kind, row in kinds.items())
        scorer.write_table(folder / BREAKDOWN, ["kind", *keys], lines)

    def _row(self, table: NDArray[Any]) -> dict[str, float]:
        found = self.scores(table.sum(axis=0)) if len(table) else {}
        return {
            "sentences": len(table),
            **{key: round(float(value), DIGITS) for key, value in found.items()},
        }
