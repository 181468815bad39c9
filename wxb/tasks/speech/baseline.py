"""The transcript of the training recording with the nearest features."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.speech.models.features import log_mel, to_window
from wxb.tasks.speech.models.predictor import Recogniser, read
from wxb.tasks.speech.params import Prediction, Spectrograms
from wxb.tasks.speech.record.audio import FRAMES, map_parallel

DECIMALS = 4  # of a statistic


class BaselineExperiment(experiments.Nearest):
    """Transcripts without training."""

    encoding: Spectrograms
    prediction: Prediction = Prediction()


def _statistics(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rounded mean and deviation of each band (B, 2 * bands) of windows (B, frames, bands)."""
    moments = [features.mean(axis=1), features.std(axis=1)]
    return np.concatenate(moments, axis=1).round(DECIMALS)


def _recording_statistics(path: str, encoding: Spectrograms) -> list[float]:
    """The statistics of a recording, truncated or padded with silence to a window."""
    length = encoding.window * FRAMES
    features = to_window(log_mel(read(path), encoding.mel_bands, length), length)
    return [round(x, DECIMALS) for x in _statistics(features[None])[0].tolist()]


class NearestRecogniser(baselines.Baseline, Recogniser):
    """Copies a training transcript, by the Euclidean distance of statistics."""

    def transcribe(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of the recording that is nearest to each window (B, frames, bands)."""
        known, gold = np.array(self.model["statistics"]), self.model["gold"]
        nearest = (np.square(known - row).sum(axis=1).argmin() for row in _statistics(features))
        return [gold[index] for index in nearest]


class NearestMethod(baselines.BaselineMethod):
    """A list of recordings."""

    experiment: BaselineExperiment
    PREDICTOR = NearestRecogniser

    def values(self, records: Sequence[Record], caption: str) -> dict[str, Any]:
        """The `statistics` and the transcript (`gold`) of each recording; shows progress."""
        of_recording = partial(_recording_statistics, encoding=self.experiment.encoding)
        paths = [record.input for record in records]
        return {
            "statistics": [*map_parallel(of_recording, paths, caption)],
            "gold": [record.gold["text"] for record in records],
        }
