"""Windows of tokenized texts, and whether training targets reproduce the gold spans in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum, auto
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Columns, Encoded, concatenate, read_encoded, slice_texts
from wxb.corpora.text.windows import Windows, text_windows
from wxb.tasks.ner.params import Encoding, Experiment

# The targets of some records, where each begins, and the status of every gold span.
Aligner = Callable[[Encoded, Windows, Sequence[Record]], tuple[*Columns, NDArray[np.int8]]]


class Status(IntEnum):
    """The alignment status of one gold span."""

    KEPT = auto()
    """The targets reproduce the span."""
    REPAIRED = auto()
    """The targets give other offsets: a token crosses an edge, or the mention occurs twice."""
    SPLIT = auto()
    """No window holds the whole span; each window has a part of it as its target."""
    LOST = auto()
    """No token covers it, another span has its first token, or training lacks its type."""


def count_statuses(statuses: NDArray[np.integer]) -> dict[str, int]:
    """The number of gold spans with each status, by its name, and of all, as `gold`."""
    counts = {status.name.lower(): int((statuses == status).sum()) for status in Status}
    return {"gold": len(statuses), **counts}


def windows(encoded: Encoded, tokenizer: Any, settings: Encoding) -> Windows:
    """The windows of texts for the settings of an experiment."""
    return text_windows(encoded, tokenizer, max_length=settings.max_length, stride=settings.stride)


def window_settings(experiment: Experiment, types: Sequence[str]) -> dict[str, Any]:
    """The settings of a predictor that reads windows, with a threshold of 0 until `calibrate`."""
    lengths = experiment.encoding.model_dump(include={"max_length", "stride"})
    return {"types": list(types), "threshold": 0.0, **lengths}


def align_chunks(
    path: Path,
    chunks: Iterable[Sequence[Record]],
    tokenizer: Any,
    settings: Encoding,
    aligner: Aligner,
) -> tuple[*Columns, dict[str, int]]:
    """Align records chunk by chunk; all targets, where each begins, and counts of gold spans.

    `path` is the file that `tokenize` wrote for these records.
    """
    encoded = read_encoded(path)
    parts, statuses, start = [], [], 0
    for records in chunks:
        tokens = slice_texts(encoded, start, start + len(records))
        columns, splits, status = aligner(tokens, windows(tokens, tokenizer, settings), records)
        parts.append((columns, splits))
        statuses.append(status)
        start += len(records)
    return *concatenate(parts), count_statuses(np.concatenate(statuses))
