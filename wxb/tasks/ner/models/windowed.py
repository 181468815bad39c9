"""The base class of methods that read texts in windows, and the statuses of their gold spans."""

from abc import abstractmethod
from collections.abc import Sequence
from enum import IntEnum, auto
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded, RaggedColumns, concatenate, read_encoded, slice_texts
from wxb.corpora.text.windows import Windows, text_windows
from wxb.tasks.methods import Alignment, Chunks, Network
from wxb.tasks.ner.params import Experiment

# The targets of some records, where each begins, and the status of every gold span.
SpanAlignment = tuple[*RaggedColumns, NDArray[np.int8]]


class Status(IntEnum):
    """The alignment status of one gold span."""

    KEPT = auto()  # the targets reproduce the span
    REPAIRED = auto()  # they have other offsets: a token crosses an edge, or the mention repeats
    SPLIT = auto()  # no window holds the whole span; each has a part of it as its target
    LOST = auto()  # no token covers it, another span has its first token, or its type is unknown


def count_statuses(statuses: NDArray[np.integer]) -> dict[str, int]:
    """The number of gold spans with each status, by its name, and of all, as `gold`."""
    counts = {status.name.lower(): int((statuses == status).sum()) for status in Status}
    return {"gold": len(statuses), **counts}


class WindowedMethod(Network):
    """A method that reads texts in overlapping windows."""

    experiment: Experiment

    def windows(self, encoded: Encoded) -> Windows:
        """The windows of texts."""
        return text_windows(encoded, self.tokenizer, **self._lengths())

    @abstractmethod
    def align(self, encoded: Encoded, windows: Windows, records: Sequence[Record]) -> SpanAlignment:
        """The targets of records, where each begins, and the status of every gold span."""

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The targets of all records, by `align`, chunk by chunk; counts gold spans by status."""
        encoded = read_encoded(features)
        parts, statuses, start = [], [], 0
        for records in chunks:
            tokens = slice_texts(encoded, start, start + len(records))
            columns, row_splits, status = self.align(tokens, self.windows(tokens), records)
            parts.append((columns, row_splits))
            statuses.append(status)
            start += len(records)
        return *concatenate(parts), count_statuses(np.concatenate(statuses))

    def predictor_settings(self, targets: Path) -> dict[str, Any]:
        """The types of spans, a threshold of 0 until `calibrate`, and the lengths of windows."""
        return {"types": list(self.labels), "threshold": 0.0, **self._lengths()}

    def _lengths(self) -> dict[str, int]:
        return self.experiment.encoding.model_dump(include={"max_length", "stride"})
