"""The base classes of classifiers: texts in, classes and probabilities out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wxb import tasks
from wxb.core import pretrained
from wxb.core.pretrained import WEIGHTS
from wxb.corpora.records import Record
from wxb.tasks.classification.params import Scratch
from wxb.tasks.methods import Network, Predictor

PROBABILITY = 6  # significant digits


class Prediction(NamedTuple):
    """The likeliest class, and the probabilities of all classes."""

    label: str
    probabilities: Mapping[str, float]


class Classifier(Predictor):
    """A predictor of classes and their probabilities."""

    hub_task, example = "text-classification", '"A film that I will not forget."'

    @property
    def labels(self) -> Sequence[str]:
        """The classes, in the order of the logits."""
        return cast("Sequence[str]", self.settings["labels"])

    def output_fields(self, input_: str, prediction: Prediction) -> dict[str, Any]:
        """The class, and the probabilities in descending order, as JSON."""
        ranked = sorted(prediction.probabilities.items(), key=lambda item: (-item[1], item[0]))
        return {"label": prediction.label, "probabilities": dict(ranked)}

    def as_text(self, input_: str, prediction: Prediction) -> str:
        """The class, its probability with 3 decimals, a tab, and the text."""
        return f"{prediction.label} {prediction.probabilities[prediction.label]:.3f}\t{input_}"


class LogitClassifier(Classifier):
    """A trained classifier, whose model returns one logit per class as `logits`."""

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Prediction]:
        """The likeliest class of each text; rounded probabilities at the set temperature, or 1."""
        logits = self.logits(texts, caption=caption)
        predictions = []
        for row in softmax(logits / self.settings.get("temperature", 1.0), axis=1):
            probabilities = [float(f"{p:.{PROBABILITY}g}") for p in row.tolist()]
            by_class = dict(zip(self.labels, probabilities, strict=True))
            predictions.append(Prediction(self.labels[row.argmax()], by_class))
        return predictions

    def logits(self, texts: Sequence[str], *, caption: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        logits = [output["logits"] for output in self.text_outputs(texts, caption=caption)]
        return np.array(logits, np.float64).reshape(-1, len(self.labels))

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Set the temperature with the lowest cross-entropy on the records of known classes."""
        known = [record for record in records if record.gold in self.labels]
        logits = self.logits([record.input for record in known], caption=caption)
        gold = np.array([self.labels.index(record.gold) for record in known], np.int64)
        self.settings["temperature"] = best_temperature(logits, gold)

    def model_metrics(self, records: Sequence[Record], predictions: Any) -> dict[str, float]:
        """The temperature."""
        return {"temperature": self.settings["temperature"]}


class ScratchClassifier(LogitClassifier):
    """A trained network of a `ScratchMethod`."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the weights that `save_model` wrote."""
        method: Any = tasks.get(settings["task"]).method(settings["method"])
        model = method.NETWORK(len(tokenizer), len(settings["labels"]), **settings["shape"])
        file = folder / WEIGHTS
        pretrained.load_weights(model, pretrained.read_weights(file), file)
        return model

    def save_model(self, folder: Path) -> None:
        """Write the weights as safetensors."""
        from safetensors.torch import save_file

        save_file(self.model.state_dict(), folder / WEIGHTS)


class ScratchMethod(Network):
    """Trains `NETWORK(words, classes, **model)` from scratch, with the experiment's `model`."""

    experiment: Scratch
    PREDICTOR = ScratchClassifier
    NETWORK: ClassVar[Callable[..., Any]]

    def new_model(self, backbone: Path) -> Any:
        """A network with random weights."""
        shape = self.experiment.model.model_dump()
        return type(self).NETWORK(len(self.tokenizer), len(self.labels), **shape)

    def model_settings(self, targets: Path) -> dict[str, Any]:
        """The experiment's `model` settings, as `shape`."""
        return {"shape": self.experiment.model.model_dump()}


class FittedClassifier(LogitClassifier):
    """A trained classifier whose model has a function `logits` of texts."""

    def logits(self, texts: Sequence[str], *, caption: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        return np.asarray(self.model.logits(texts))


def cross_entropy(
    logits: NDArray[np.float64], labels: NDArray[np.int64], temperature: float = 1.0
) -> float:
    """The mean cross-entropy of logits (N, K), divided by the temperature, with labels (N,)."""
    likelihoods = softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels]
    return -float(np.log(np.maximum(likelihoods, 1e-300)).mean())


def best_temperature(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The temperature, 0.05 to 20, that minimizes the cross-entropy of logits (N, K); 1 if N is 0.

    Labels are smoothed by K / (N + K), so that if all N texts are right, the probability of their
    class is (N + 1) / (N + K), Laplace's rule of succession. The result has 3 decimals.
    Source: Guo et al. (2017), "On Calibration of Modern Neural Networks"; Platt (1999) smooths so.
    """
    from scipy.optimize import minimize_scalar

    if not len(labels):
        return 1.0
    count, classes = logits.shape
    margins = logits[np.arange(count), labels] - logits.mean(axis=1)
    smoothing = classes / (count + classes) * float(margins.mean())

    def loss(log_temperature: float) -> float:
        temperature = float(np.exp(log_temperature))
        return cross_entropy(logits, labels, temperature) + smoothing / temperature

    minimum = minimize_scalar(loss, bounds=np.log([0.05, 20]), method="bounded")
    return round(float(np.exp(minimum.x)), 3)
