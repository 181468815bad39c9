"""Text classification by logistic regression on TF-IDF weights of n-grams.

scikit-learn fits one model for each regularization strength, and validation records choose among
them. Nothing here imports torch.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import read_columns
from wxb.tasks.classification.models.predictor import LogitClassifier
from wxb.tasks.classification.models.regression import fit_regression
from wxb.tasks.classification.models.tfidf import Tfidf
from wxb.tasks.classification.params import Regression, TfidfModel
from wxb.tasks.methods import Alignment, Chunks, History, Method, label_targets


class TfidfExperiment(experiments.Untuned):
    """Logistic regression on TF-IDF weights of n-grams."""

    model: TfidfModel = TfidfModel()
    training: Regression


class TfidfClassifier(LogitClassifier):
    """A trained TF-IDF model."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Tfidf:
        """Load the model that `save` wrote to a folder."""
        return Tfidf.from_pretrained(folder)

    def size(self, *, trainable: bool = False) -> int:
        """Number of weights and intercepts; unless `trainable`, also of the counted `idf`."""
        coef = self.model.coef
        return int(coef.size + len(coef) + (0 if trainable else coef.shape[1]))

    def logits(self, texts: Sequence[str], *, caption: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        return np.asarray(self.model.logits(texts))


class TfidfMethod(Method):
    """Logistic regression on TF-IDF weights."""

    experiment: TfidfExperiment
    PREDICTOR = TfidfClassifier

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The index of each record's class, IGNORED if training lacks it; texts are whole."""
        return label_targets(self, chunks)

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """Each text with the index of its class."""
        columns, _ = read_columns(targets, ["labels"])
        texts = (record.input for record in records)
        return [*zip(texts, columns["labels"].tolist(), strict=True)]

    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[Tfidf, History]:
        """The model with the best C, and the history. Raises WxbError if no text has n-grams."""
        splits = {"train": train, "valid": valid}
        texts = {split: [text for text, _ in items] for split, items in splits.items()}
        labels = {split: np.array([label for _, label in items]) for split, items in splits.items()}
        model = Tfidf.from_texts(texts["train"], self.experiment.model)
        features = {split: model.features(rows) for split, rows in texts.items()}
        fit = fit_regression(features, labels, self.experiment.training, seed=seed, caption=caption)
        model.coef, model.intercept = fit.coef, fit.intercept
        return model, fit.history
