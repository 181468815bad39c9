"""Text classification by logistic regression on TF-IDF weights of n-grams.

scikit-learn fits one model for each regularization strength, and validation records choose among
them. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import read_columns
from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Tfidf
from wxb.tasks.classification.predictor import Classifier
from wxb.tasks.classification.record.ngrams import Tfidf as Model

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun


class TfidfClassifier(Classifier):
    """A trained TF-IDF model."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Model:
        """Load the model that `save` wrote to a folder."""
        return Model.from_pretrained(folder)

    def size(self, *, trainable: bool = False) -> int:
        """Number of weights and intercepts; unless `trainable`, also of the counted `idf`."""
        coef = self.model.coef
        return int(coef.size + len(coef) + (0 if trainable else coef.shape[1]))

    def logits(self, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        logits: NDArray[np.float64] = self.model.logits(texts)
        return logits


class Method(predictor.Method):
    """Logistic regression on TF-IDF weights."""

    experiment: Tfidf
    Predictor = TfidfClassifier

    def encode(self, chunks: Iterable[Sequence[Record]], path: Path, *, label: str) -> None:
        """Write an empty file: texts are read as they are."""
        path.touch()

    def dataset(
        self, features: Path, targets: Path, records: Iterable[Record]
    ) -> list[dict[str, Any]]:
        """One item per text: the text, and the index of its class."""
        columns, _ = read_columns(targets, self.TARGETS)
        rows = zip(records, columns["labels"], strict=True)
        return [{"text": record.input, "labels": label} for record, label in rows]

    def build(self, backbone: Path) -> Callable[[Sequence[str]], Model]:
        """A function that makes the model from training texts, whose n-grams are its features."""
        return partial(Model.from_texts, settings=self.experiment.model)

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Model, list[dict[str, float]]]:
        """The model with the best C, and the history; see `fit_regression`.

        Raises WxbError if the training records have one class only or no n-grams.
        """
        splits = {"train": run.train, "valid": run.valid}
        texts = {split: [item["text"] for item in items] for split, items in splits.items()}
        model = self.build(backbone)(texts["train"])
        features = {split: model.features(rows) for split, rows in texts.items()}
        _, model.coef, model.intercept, history = self.fit_regression(features, run)
        return model, history
