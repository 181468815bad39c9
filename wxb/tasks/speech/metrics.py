"""CER and WER by jiwer: edits of characters and words between normalized transcripts."""

import shutil
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jiwer
import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.metrics import Metric, scorer
from wxb.metrics.intervals import Sums
from wxb.tasks.speech.record import normalize, words

EDITS = ("substitutions", "deletions", "insertions")
# By the types of jiwer.
KINDS = {"equal": "", "substitute": EDITS[0], "delete": EDITS[1], "insert": EDITS[2]}
DURATION_EDGES = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds, between the bins of recordings
SNR_EDGES = (10.0, 20.0, 30.0, 40.0)  # dB, between the bins of recordings
CLIPS, CLIP_SECONDS = 6, 10.0  # recordings that a page plays, and their maximum length


class PredictionRow(NamedTuple):
    """A test recording, whose file is `input`, with its gold and predicted transcripts.

    `reference` and `hypothesis` are these transcripts, normalized.
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
    language: str = ""


class Scorer(scorer.Scorer):
    """CER and WER."""

    METRICS = (
        Metric("cer", "CER", lower_is_better=True, high=None),
        Metric("wer", "WER", lower_is_better=True, high=None),
    )
    SIGNATURE = (
        f"jiwer {version('jiwer')}; transcripts normalized by the rules of the corpus; a Chinese"
        " character is a word"
    )
    UNIT = "characters"
    COUNTS: ClassVar = dict(zip(EDITS, EDITS, strict=True))
    ROW = PredictionRow

    def task_fields(self, record: Record, prediction: Any, vocabulary: None) -> dict[str, Any]:
        """Raw `gold` and `predicted`, normalized `reference` and `hypothesis`, `seconds`, `snr`."""
        gold = record.gold
        return {
            "gold": gold["text"],
            "predicted": prediction.text,
            "reference": normalize(gold["text"], gold["rules"]),
            "hypothesis": normalize(prediction.text, gold["rules"]),
            "seconds": round(gold["seconds"], 3),
            "snr": round(gold["snr"], 3),
        }

    def statistics(self, rows: Sequence[PredictionRow]) -> Sums:
        """EDITS and `characters` of references, then `word_` EDITS and `words`, each (records,)."""
        counts = []
        for row in rows:
            by_character = jiwer.process_characters(row.reference, row.hypothesis)
            spaced = [" ".join(words(text)) for text in (row.reference, row.hypothesis)]
            for aligned in (by_character, jiwer.process_words(spaced[0], spaced[1])):
                edits = [getattr(aligned, edit) for edit in EDITS]
                counts.append([*edits, len(aligned.references[0])])
        names = (*EDITS, "characters", *(f"word_{edit}" for edit in EDITS), "words")
        return dict(zip(names, np.array(counts, np.int64).reshape(-1, 8).T, strict=True))

    def scores(self, sums: Sums) -> dict[str, NDArray[Any]]:
        """CER and WER (...), edits over the length of references, which is not 0; may exceed 1."""
        return {
            "cer": np.asarray(sum(sums[edit] for edit in EDITS) / sums["characters"]),
            "wer": np.asarray(sum(sums[f"word_{edit}"] for edit in EDITS) / sums["words"]),
        }

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """EDITS, characters (`support`), `seconds`, CER `by_seconds` and `by_snr`, `confusions`."""
        sums = self.sums(rows)
        return {
            **{edit: int(sums[edit]) for edit in EDITS},
            "support": int(sums["characters"]),
            "seconds": round(sum(row.seconds for row in rows), 3),
            "by_seconds": self._cer_by_bin(rows, "seconds", DURATION_EDGES),
            "by_snr": self._cer_by_bin(rows, "snr", SNR_EDGES),
            "confusions": [[*pair, count] for pair, count in confusions(rows)],
        }

    def copy_files(self, folder: Path, rows: Sequence[PredictionRow]) -> None:
        """Copy the recordings that the page plays."""
        for row in select_clips(rows):
            shutil.copyfile(row.input, folder / clip_name(row))

    def _cer_by_bin(
        self, rows: Sequence[PredictionRow], field: str, edges: Sequence[float]
    ) -> list[dict[str, Any]]:
        """`from` and `to` (None: open), `records` and `cer` of each nonempty bin of a `field`."""
        bins = np.digitize([getattr(row, field) for row in rows], edges).tolist()
        bounds, table = [None, *edges, None], []
        for index in sorted({*bins}):
            members = [row for row, bin_ in zip(rows, bins, strict=True) if bin_ == index]
            size = {"from": bounds[index], "to": bounds[index + 1], "records": len(members)}
            table.append({**size, "cer": self.rounded_scores(members)["cer"]})
        return table


def clip_name(row: PredictionRow) -> str:
    """The name of a recording's copy beside the predictions: its own after `clip-`."""
    return f"clip-{Path(row.input).name}"


def select_clips(rows: Sequence[PredictionRow]) -> list[PredictionRow]:
    """The rows that a page plays: at most CLIPS short recordings, at equal distances."""
    short = [row for row in rows if row.seconds <= CLIP_SECONDS]
    return short[:: max(1, len(short) // CLIPS)][:CLIPS]


def confusions(rows: Sequence[PredictionRow]) -> list[tuple[tuple[str, str], int]]:
    """Pairs of aligned characters that differ, with their counts, the most frequent first."""
    edits = [edit for row in rows for edit in alignment(row) if edit[0]]
    counts = Counter(pair for _, a, b in edits for pair in zip_longest(a, b, fillvalue=""))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def alignment(row: PredictionRow) -> list[tuple[str, str, str]]:
    """The kind of edit ("" if equal), the reference and the hypothesis of each aligned piece."""
    return [
        (
            KINDS[piece.type],
            row.reference[piece.ref_start_idx : piece.ref_end_idx],
            row.hypothesis[piece.hyp_start_idx : piece.hyp_end_idx],
        )
        for piece in jiwer.process_characters(row.reference, row.hypothesis).alignments[0]
    ]
