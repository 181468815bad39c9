"""The base classes of classifiers: texts in, classes and probabilities out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wxb.core.errors import WxbError
from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Encoded, read_columns, read_encoded
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.tasks import methods
from wxb.tasks.classification import params
from wxb.tasks.methods import Trained, inputs

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun

PROBABILITY = 6  # significant digits


class Prediction(NamedTuple):
    """The likeliest class, and the probabilities of all classes."""

    label: str
    probabilities: Mapping[str, float]


class Classifier(Trained):
    """A trained classifier, whose model returns one logit per class as `logits`."""

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of the logits."""
        labels: list[str] = self.settings["labels"]
        return labels

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Prediction]:
        """A prediction for each text."""
        logits = self.logits(texts, label=label)
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

    def logits(self, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        length = self.settings["max_length"]
        encoded = encode(self.tokenizer, texts)
        encoded = truncate(encoded, self.tokenizer, length, self.settings["keep"])
        items = inputs(encoded, self.tokenizer, length)
        logits = [output["logits"] for output in self.outputs(items, label=label)]
        return np.array(logits, np.float64).reshape(-1, len(self.labels))

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Set the temperature that minimizes the cross-entropy of validation records."""
        texts = [record.input for record in records]
        logits = self.logits(texts, label=label)
        class_ids = {name: index for index, name in enumerate(self.labels)}
        known = [index for index, record in enumerate(records) if record.gold in class_ids]
        gold = np.array([class_ids[records[index].gold] for index in known], np.int64)
        self.settings["temperature"] = best_temperature(logits[known], gold)

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """The temperature."""
        return {"temperature": self.settings["temperature"]}

    def describe(self, input_: str, prediction: Prediction) -> dict[str, Any]:
        """The class, and the probabilities in descending order, as JSON."""
        ranked = sorted(prediction.probabilities.items(), key=lambda item: (-item[1], item[0]))
        return {"label": prediction.label, "probabilities": dict(ranked)}

    def show(self, input_: str, prediction: Prediction) -> str:
        """The class, its probability and the text, in a line."""
        return f"{prediction.label} {prediction.probabilities[prediction.label]:.3f}\t{input_}"


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


def by_class(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of scikit-learn by class (K, ...); for two classes it keeps their difference only."""
    return values if len(values) > 1 else np.concatenate([-values / 2, values / 2])


class Method(methods.Method):
    """A method that classifies texts."""

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> methods.Items:
        """One item per text: its `input_ids` and the index of its class as `labels`."""
        encoding, encoded = self.experiment.encoding, read_encoded(features)
        encoded = truncate(encoded, self.tokenizer, encoding.max_length, encoding.keep)
        items = inputs(encoded, self.tokenizer, encoding.max_length)
        columns, _ = read_columns(targets, self.TARGETS)
        return methods.with_labels(items, columns["labels"])

    def fit_regression(
        self, features: Mapping[str, Any], run: TrainingRun
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], list[dict[str, float]]]:
        """Fit a logistic regression with each C; returns the best, and the history.

        `features` (N, F) are those of the items `train` and `valid`. The result has a score,
        weights (K, F) and intercepts (K,). The score is accuracy on `valid`, or with `folds` that
        of cross-validation on `train`; of equal ones the smallest C is best. The history has a row
        for each C. Its steps and epochs count the solver's iterations. Also prints the rows. Raises
        WxbError if the training records have one class only.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import StratifiedKFold, cross_val_score

        settings: params.Regression = run.settings
        splits = {"train": run.train, "valid": run.valid}
        labels = {s: np.array([item["labels"] for item in items]) for s, items in splits.items()}
        known = labels["valid"] != IGNORED
        sizes = np.unique(labels["train"], return_counts=True)[1]
        if len(sizes) < 2:
            raise WxbError("all training records have one class; add records of another")
        # A fold needs a record of a class to predict it.
        folds, splitter = min(settings.folds or 0, int(sizes.max())), None
        if folds > 1:
            splitter = StratifiedKFold(folds, shuffle=True, random_state=run.seed)
        fits: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
        history: list[dict[str, float]] = []
        steps = 0
        options = settings.model_dump(include={"class_weight", "max_iter", "tol"})
        for strength in track(sorted(settings.C), run.label, len(settings.C), unit="C"):
            solver = LogisticRegression(C=strength, random_state=run.seed, **options)
            solver.fit(features["train"], labels["train"])
            coef, intercept = by_class(solver.coef_), by_class(solver.intercept_)
            logits = {split: rows @ coef.T + intercept for split, rows in features.items()}
            predicted = self.summarize(logits["valid"], labels["valid"])
            metrics = self.compute_metrics(predicted, labels["valid"])
            score, further = metrics[self.BEST.key], {}
            if splitter:
                data = features["train"], labels["train"]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of classes with fewer records than folds
                    by_fold = cross_val_score(solver, *data, cv=splitter, scoring=self.BEST.key)
                score = float(np.nan_to_num(by_fold).mean())  # nan: a fold without a class
                further = {f"folds_{self.BEST.key}": score}
            steps += int(solver.n_iter_.max())
            row = {
                "step": steps,
                "epoch": steps,
                "C": strength,
                "loss": cross_entropy(logits["train"], labels["train"]),
                "valid_loss": cross_entropy(logits["valid"][known], labels["valid"][known]),
                **{f"valid_{name}": value for name, value in metrics.items()},
                **further,
            }
            print(row, flush=True)
            history.append(row)
            fits.append((score, coef, intercept))
        return *max(fits, key=lambda fit: fit[0]), history  # the first of equal ones


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
