"""Errors of recognition: substitutions, deletions and insertions of characters and of words.

Counted by jiwer on normalized transcripts, and resampled by speaker where there are speakers.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jiwer
import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.speech.record.normalization import normalized, words

if TYPE_CHECKING:
    from wxb.corpora.records import Record


EDITS = ("substitutions", "deletions", "insertions")
SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)  # that part short recordings from long ones
SNRS = (10.0, 20.0, 30.0, 40.0)  # dB, that part loud noise from low
CLIPS, CLIP_SECONDS = 6, 10.0  # recordings that a page plays, and the longest of them
CLIP = "clip-"  # begins the names of their files, beside the predictions
CONFUSIONS = "confusions.csv"


class Judged(NamedTuple):
    """A test recording with what was said and what a system wrote; `input` is its file.

    `reference` and `hypothesis` are what is compared.
    """

    id: str
    input: str
    gold: str
    predicted: str
    reference: str
    hypothesis: str
    seconds: float
    snr: float
    group: str = ""


class Scorer(scorer.Scorer):
    """Error rates of characters and of words."""

    METRICS = (
        Metric("cer", "CER", lower_is_better=True, scale=None),
        Metric("wer", "WER", lower_is_better=True, scale=None),
    )
    HEADLINE = "cer"
    SIGNATURE = (
        f"jiwer {version('jiwer')}; transcripts normalized by the rules of the corpus; a Chinese"
        " character is a word"
    )
    UNIT = "characters"
    COUNTS: ClassVar = {
        "substitutions": "substituted",
        "deletions": "deleted",
        "insertions": "inserted",
    }
    ROW = Judged

    def fields(self, record: Record, prediction: Any, known: None) -> dict[str, Any]:
        """The transcripts, as they are and as they are compared."""
        gold = record.gold
        return {
            "gold": gold["text"],
            "predicted": prediction.text,
            "reference": normalized(gold["text"], gold["rules"]),
            "hypothesis": normalized(prediction.text, gold["rules"]),
            "seconds": round(gold["seconds"], 3),
            "snr": round(gold["snr"], 3),
        }

    def group(self, record: Record) -> str:
        """The speaker."""
        speaker: str | None = record.gold["speaker"]
        return speaker or ""

    def statistics(self, rows: Sequence[Judged]) -> NDArray[np.int64]:
        """Edits of characters and number of reference, then of words (records, 8)."""
        return np.array([[*_characters(row), *_words(row)] for row in rows], np.int64).reshape(
            -1, 8
        )

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """CER and WER (...) of sums (..., 8): edits over the reference's length, also above 1."""
        return {
            key: sums[..., start : start + 3].sum(axis=-1) / sums[..., start + 3]
            for key, start in (("cer", 0), ("wer", 4))
        }

    def totals(self, sums: NDArray[np.int64]) -> dict[str, float]:
        """Characters of the references and their edits, means over runs (R, 8)."""
        counted = np.rint(sums.mean(axis=0)).astype(int).tolist()
        return {**dict(zip(EDITS, counted[:3], strict=True)), "support": counted[3]}

    def details(self, rows: Sequence[Judged]) -> dict[str, Any]:
        """CER by length and by noise, and which character was taken for which."""
        return {
            "seconds": round(sum(row.seconds for row in rows), 3),
            "by_seconds": self._by(rows, [row.seconds for row in rows], SECONDS),
            "by_snr": self._by(rows, [row.snr for row in rows], SNRS),
            "confusions": [[*pair, count] for pair, count in confusions(rows)],
        }

    def write_details(self, folder: Path, rows: Sequence[Judged]) -> None:
        """Write all confusions, and copies of the recordings that the page plays."""
        lines = ([*pair, count] for pair, count in confusions(rows))
        scorer.write_table(folder / CONFUSIONS, ["said", "written", "count"], lines)
        for row in chosen(rows):
            shutil.copyfile(row.input, folder / clip(row))

    def _by(
        self, rows: Sequence[Judged], values: Sequence[float], edges: Sequence[float]
    ) -> list[dict[str, Any]]:
        """CER of the rows in each bin that edges part; empty bins are left out."""
        places, table = np.digitize(values, edges), self.statistics(rows)
        bounds = [None, *edges, None]
        return [
            {
                "from": bounds[place],
                "to": bounds[place + 1],
                "records": int((places == place).sum()),
                "cer": round(float(self.scores(table[places == place].sum(axis=0))["cer"]), DIGITS),
            }
            for place in range(len(edges) + 1)
            if (places == place).any()
        ]


def clip(row: Judged) -> str:
    """The name of the file in which the folder of predictions keeps a recording."""
    return f"{CLIP}{Path(row.input).name}"


def chosen(rows: Sequence[Judged]) -> list[Judged]:
    """The rows of the recordings that a page plays, the same ones for every system."""
    short = [row for row in rows if row.seconds <= CLIP_SECONDS]
    return short[:: max(1, len(short) // CLIPS)][:CLIPS]


def confusions(rows: Sequence[Judged]) -> list[tuple[tuple[str, str], int]]:
    """How often which character was written for which, most first; "" for none."""
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        found.update((said, written) for said, written in alignment(row) if said != written)
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def alignment(row: Judged) -> list[tuple[str, str]]:
    """Characters of the reference beside those that were written for them; "" for none."""
    if not row.hypothesis:
        return [(character, "") for character in row.reference]
    pairs: list[tuple[str, str]] = []
    for chunk in jiwer.process_characters(row.reference, row.hypothesis).alignments[0]:
        said = [*row.reference[chunk.ref_start_idx : chunk.ref_end_idx]]
        written = [*row.hypothesis[chunk.hyp_start_idx : chunk.hyp_end_idx]]
        longest = max(len(said), len(written))
        said, written = (side + [""] * (longest - len(side)) for side in (said, written))
        pairs += zip(said, written, strict=True)
    return pairs


def _characters(row: Judged) -> tuple[int, int, int, int]:
    if not row.hypothesis:  # jiwer counts the white space of a text that has nothing else
        return 0, len(row.reference), 0, len(row.reference)
    found = jiwer.process_characters(row.reference, row.hypothesis)
    return found.substitutions, found.deletions, found.insertions, len(row.reference)


def _words(row: Judged) -> tuple[int, int, int, int]:
    said, written = (words(text) for text in (row.reference, row.hypothesis))
    found = jiwer.process_words(" ".join(said), " ".join(written))
    return found.substitutions, found.deletions, found.insertions, len(said)
