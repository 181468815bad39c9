"""Keyword spotting: the training transcript with the highest score for a recording.

scikit-learn fits a logistic regression on standardized mean MFCCs. Like a baseline, the method
needs no backbone and no torch, and its model is JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import join_rows, read_columns, write_columns
from wxb.tasks import baselines
from wxb.tasks.speech.params import Keywords
from wxb.tasks.speech.predictor import Recogniser, read
from wxb.tasks.speech.record.audio.features import RATE, mean_mfcc
from wxb.tasks.speech.record.audio.parallel import map_parallel

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun

MFCC = "mfcc"  # column of features
MAX_ITER = 2000  # of the solver

Item = tuple[NDArray[np.float32], str]  # the mean MFCCs and the transcript of a recording


def _features(job: tuple[str, int]) -> NDArray[np.float32]:
    """The mean MFCCs of a recording, truncated to some seconds."""
    path, seconds = job
    return mean_mfcc(read(path)[: seconds * RATE])


class KeywordRecogniser(baselines.Baseline, Recogniser):
    """Chooses a training transcript by a linear function of the mean MFCCs."""

    def size(self, *, trainable: bool = False) -> int:
        """Number of weights and intercepts."""
        return sum(np.size(self.model.values[name]) for name in ("coef", "intercept"))

    def features(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The mean MFCCs of the samples of a window."""
        return mean_mfcc(samples)

    def transcribe(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript with the highest score for each window, from its mean MFCCs (B, F)."""
        values = self.model.values
        scores = features @ np.transpose(values["coef"]) + values["intercept"]  # (B, K)
        return [values["transcripts"][index] for index in scores.argmax(axis=1)]


class Method(baselines.Method):
    """Logistic regression on mean MFCCs."""

    experiment: Any  # Keywords: not a baseline's block
    Predictor = KeywordRecogniser

    def encode(self, chunks: Iterable[Sequence[Record]], path: Path, *, label: str) -> None:
        """Write the mean MFCCs of recordings. Works in parallel; shows progress."""
        settings: Keywords = self.experiment
        window = settings.encoding.window
        jobs = [(record.input, window) for records in chunks for record in records]
        values, splits = join_rows([*map_parallel(_features, jobs, label)], np.float32)
        write_columns(path, {MFCC: values}, splits)

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """The item of each recording."""
        columns, _ = read_columns(features, [MFCC])
        texts = [record.gold["text"] for record in records]
        return [*zip(columns[MFCC].reshape(len(texts), -1), texts, strict=True)]

    def values(self, items: Sequence[Item], strength: float = 1.0) -> dict[str, Any]:
        """The K transcripts, their weights (K, F) and intercepts (K,), with C = `strength`."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        scaler, solver = StandardScaler(), LogisticRegression(C=strength, max_iter=MAX_ITER)
        solver.fit(scaler.fit_transform([row for row, _ in items]), [text for _, text in items])
        coef = solver.coef_ / scaler.scale_
        intercept = solver.intercept_ - coef @ scaler.mean_
        if len(coef) == 1:  # of two transcripts, the weights of the second
            coef, intercept = np.concatenate([-coef, coef]), np.concatenate([-intercept, intercept])
        names = ("transcripts", "coef", "intercept")
        arrays = solver.classes_, coef, intercept
        return {name: array.tolist() for name, array in zip(names, arrays, strict=True)}

    def fit(
        self, backbone: Path, run: TrainingRun
    ) -> tuple[baselines.Model, list[dict[str, float]]]:
        """The model, and a history with a row for each C.

        The C that is best on validation recordings, the smallest among equals, fits the model to
        training and validation recordings together. Raises WxbError if all transcripts are equal.
        """
        if len({text for _, text in run.train}) < 2:
            raise WxbError("all training recordings have one transcript; add recordings of others")
        features, texts = np.stack([row for row, _ in run.valid]), [text for _, text in run.valid]
        history: list[dict[str, float]] = []
        for step, strength in enumerate(sorted(run.settings.C), start=1):
            model = baselines.Model(self.values(run.train, strength))
            predicted = self.Predictor(model, None).transcribe(features)
            accuracy = float(np.mean(np.array(predicted) == texts))
            history.append({"step": step, "epoch": step, "C": strength, "valid_accuracy": accuracy})
        best = max(history, key=lambda row: row["valid_accuracy"])  # the first among equals
        return baselines.Model(self.values([*run.train, *run.valid], best["C"])), history
