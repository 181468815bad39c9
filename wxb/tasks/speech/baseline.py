"""The transcript of the training recording with the nearest features."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import join_rows, read_columns, write_columns
from wxb.tasks import baselines
from wxb.tasks.methods import Chunks
from wxb.tasks.speech.models.features import log_mel, to_window
from wxb.tasks.speech.models.predictor import Recogniser, read
from wxb.tasks.speech.params import Spectrograms
from wxb.tasks.speech.record.audio import FRAMES, map_parallel

STATISTICS = "statistics"  # column of features
DECIMALS = 4  # of a statistic


def _statistics(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean and the deviation of each band (B, 2 * bands) of windows (B, frames, bands)."""
    moments = [features.mean(axis=1), features.std(axis=1)]
    return np.concatenate(moments, axis=1).round(DECIMALS)


def _of_recording(path: str, encoding: Spectrograms) -> NDArray[np.float32]:
    """The statistics of a recording, truncated to a window."""
    length = encoding.window * FRAMES
    features = to_window(log_mel(read(path), encoding.mel_bands, length), length)
    return np.concatenate(_statistics(features[None]))


class NearestRecogniser(baselines.Baseline, Recogniser):
    """Copies a training transcript, by the Euclidean distance of statistics."""

    def transcribe(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of the recording that is nearest to each window (B, frames, bands)."""
        known, gold = np.array(self.model.values[STATISTICS]), self.model.values["gold"]
        nearest = (np.square(known - row).sum(axis=1).argmin() for row in _statistics(features))
        return [gold[index] for index in nearest]


class NearestMethod(baselines.BaselineMethod):
    """A list of recordings."""

    PREDICTOR = NearestRecogniser

    def encode(self, chunks: Chunks, path: Path, *, caption: str) -> None:
        """Write the statistics of the training recordings; for other splits an empty file."""
        if path.stem != clean.SPLITS[0]:
            super().encode(chunks, path, caption=caption)
            return
        paths = [record.input for records in chunks for record in records]
        of_recording = partial(_of_recording, encoding=self.experiment.encoding)
        values, splits = join_rows([*map_parallel(of_recording, paths, caption)], np.float32)
        write_columns(path, {STATISTICS: values}, splits)

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """The statistics and the record of each training recording; only records of others."""
        if features.stem != clean.SPLITS[0]:
            return [*records]
        columns, _ = read_columns(features, [STATISTICS])
        known = [*records]
        return [*zip(columns[STATISTICS].reshape(len(known), -1), known, strict=True)]

    def values(self, items: Sequence[tuple[NDArray[np.float32], Record]]) -> dict[str, Any]:
        """The statistics and the transcript of each recording."""
        return {
            STATISTICS: [[round(x, DECIMALS) for x in row.tolist()] for row, _ in items],
            "gold": [record.gold["text"] for _, record in items],
        }


METHOD = NearestMethod
