"""The base classes of classifiers: texts in, classes and probabilities out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded, read_columns, read_encoded
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.tasks.methods import Items, Network, Predictor, inputs, with_labels

PROBABILITY = 6  # significant digits


class Prediction(NamedTuple):
    """The likeliest class, and the probabilities of all classes."""

    label: str
    probabilities: Mapping[str, float]


class Classifier(Predictor):
    """A predictor of classes and their probabilities."""

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of the logits."""
        labels: list[str] = self.settings["labels"]
        return labels

    def describe(self, input_: str, prediction: Prediction) -> dict[str, Any]:
        """The class, and the probabilities in descending order, as JSON."""
        ranked = sorted(prediction.probabilities.items(), key=lambda item: (-item[1], item[0]))
        return {"label": prediction.label, "probabilities": dict(ranked)}

    def show(self, input_: str, prediction: Prediction) -> str:
        """The class, its probability and the text, in a line."""
        return f"{prediction.label} {prediction.probabilities[prediction.label]:.3f}\t{input_}"


class LogitClassifier(Classifier):
    """A trained classifier, whose model returns one logit per class as `logits`."""

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Prediction]:
        """A prediction for each text."""
        logits = self.logits(texts, caption=caption)
        probabilities = softmax(logits / self.settings.get("temperature", 1.0), axis=1)
        return [
            Prediction(
                self.labels[row.argmax()],
                {
                    name: float(f"{p:.{PROBABILITY}g}")
                    for name, p in zip(self.labels, row.tolist(), strict=True)
                },
            )
            for row in probabilities
        ]

    def logits(self, texts: Sequence[str], *, caption: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        length = self.settings["max_length"]
        encoded = encode(self.tokenizer, texts)
        encoded = truncate(encoded, self.tokenizer, length, self.settings["keep"])
        items = inputs(encoded, self.tokenizer, length)
        logits = [output["logits"] for output in self.outputs(items, caption=caption)]
        return np.array(logits, np.float64).reshape(-1, len(self.labels))

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Set the temperature that minimizes the cross-entropy of validation records."""
        texts = [record.input for record in records]
        logits = self.logits(texts, caption=caption)
        class_ids = {name: index for index, name in enumerate(self.labels)}
        known = [index for index, record in enumerate(records) if record.gold in class_ids]
        gold = np.array([class_ids[records[index].gold] for index in known], np.int64)
        self.settings["temperature"] = best_temperature(logits[known], gold)

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """The temperature."""
        return {"temperature": self.settings["temperature"]}


def cross_entropy(
    logits: NDArray[np.float64], labels: NDArray[np.int64], temperature: float = 1.0
) -> float:
    """The mean cross-entropy of logits (N, K) with labels (N,)."""
    likelihoods = softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels]
    return -float(np.log(np.maximum(likelihoods, 1e-300)).mean())


def best_temperature(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The temperature with the lowest cross-entropy of logits (N, K) and labels (N,); 1 if N is 0.

    Source: Guo et al. (2017), "On Calibration of Modern Neural Networks".
    """
    from scipy.optimize import minimize_scalar

    if not len(labels):
        return 1.0
    bounds = np.log(0.05), np.log(20)
    minimum = minimize_scalar(
        lambda log: cross_entropy(logits, labels, float(np.exp(log))),
        bounds=bounds,
        method="bounded",
    )
    return round(float(np.exp(minimum.x)), 3)


class ClassifierNetwork(Network):
    """A network that classifies texts, truncated as `encoding.keep` says."""

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Items:
        """One item per text: its `input_ids` and the index of its class as `labels`."""
        encoding, encoded = self.experiment.encoding, read_encoded(features)
        encoded = truncate(encoded, self.tokenizer, encoding.max_length, encoding.keep)
        items = inputs(encoded, self.tokenizer, encoding.max_length)
        columns, _ = read_columns(targets, self.TARGETS)
        return with_labels(items, columns["labels"])


def truncate(encoded: Encoded, tokenizer: Any, max_length: int, keep: str) -> Encoded:
    """Texts cut to `max_length` tokens, including the special tokens that `inputs` adds.

    `keep` is "start", or "ends" for a quarter from the start and the rest from the end.
    """
    room = max_length - sum(map(len, special_tokens(tokenizer)))
    head = room // 4 if keep == "ends" else room
    mask = np.ones(len(encoded.ids), bool)
    for first, stop in pairwise(encoded.splits):
        if stop - first > room:
            mask[first + head : stop - (room - head)] = False
    ids, starts, ends = (values[mask] for values in encoded[:3])
    counts = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    return Encoded(ids, starts, ends, counts[encoded.splits])
