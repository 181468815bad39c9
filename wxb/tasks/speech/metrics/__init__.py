"""Errors of recognition: substitutions, deletions and insertions of characters and of words.

Counted by jiwer on normalized transcripts, and resampled by speaker where there are speakers.
"""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jiwer
import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.speech.record.normalization import normalized, words

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
COUNTS = {"substitutions": "substituted", "deletions": "deleted", "insertions": "inserted"}
SHARES: Mapping[str, str] = {}

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


known, same = scorer.known, scorer.same


def judge(record: Any, prediction: Any, known: None) -> Judged:
    """A recording with its transcripts, as they are and as they are compared."""
    gold = record.gold
    return Judged(
        record.id,
        record.input,
        gold["text"],
        prediction.text,
        reference=normalized(gold["text"], gold["rules"]),
        hypothesis=normalized(prediction.text, gold["rules"]),
        seconds=round(gold["seconds"], 3),
        snr=round(gold["snr"], 3),
        group=gold["speaker"] or "",
    )


def parse(row: Mapping[str, Any]) -> Judged:
    """A row of predictions.jsonl."""
    return Judged(**row)


def statistics(rows: Sequence[Judged]) -> NDArray[np.int64]:
    """Edits of characters and number of reference, then of words (records, 8)."""
    return np.array([[*_characters(row), *_words(row)] for row in rows], np.int64).reshape(-1, 8)


def scores(sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """CER and WER (...) of sums (..., 8): edits over the reference's length; 1 is not the most."""
    return {
        key: sums[..., start : start + 3].sum(axis=-1) / sums[..., start + 3]
        for key, start in (("cer", 0), ("wer", 4))
    }


def totals(sums: NDArray[np.int64]) -> dict[str, float]:
    """Characters of the references and their edits, means over runs (R, 8)."""
    counted = np.rint(sums.mean(axis=0)).astype(int).tolist()
    return {**dict(zip(EDITS, counted[:3], strict=True)), "support": counted[3]}


def details(rows: Sequence[Judged]) -> dict[str, Any]:
    """CER by length and by noise, and which character was taken for which."""
    return {
        "seconds": round(sum(row.seconds for row in rows), 3),
        "by_seconds": _by(rows, [row.seconds for row in rows], SECONDS),
        "by_snr": _by(rows, [row.snr for row in rows], SNRS),
        "confusions": [[*pair, count] for pair, count in confusions(rows)],
    }


def write_details(folder: Path, rows: Sequence[Judged]) -> None:
    """Write all confusions, and copies of the recordings that the page plays: every so many-th."""
    with (folder / CONFUSIONS).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["said", "written", "count"])
        table.writerows([*pair, count] for pair, count in confusions(rows))
    for row in chosen(rows):
        shutil.copyfile(row.input, folder / clip(row))


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


def _by(
    rows: Sequence[Judged], values: Sequence[float], edges: Sequence[float]
) -> list[dict[str, Any]]:
    """CER of the rows whose value is in each of the bins that edges part; empty ones left out."""
    places, table = np.digitize(values, edges), statistics(rows)
    bounds = [None, *edges, None]
    return [
        {
            "from": bounds[place],
            "to": bounds[place + 1],
            "records": int((places == place).sum()),
            "cer": round(float(scores(table[places == place].sum(axis=0))["cer"]), DIGITS),
        }
        for place in range(len(edges) + 1)
        if (places == place).any()
    ]
