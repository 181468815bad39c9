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
from wxb.corpora.text.encoded import IGNORED, Encoded, read_columns, read_encoded, slice_texts
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.metrics import DIGITS
from wxb.tasks import methods
from wxb.tasks.classification import params
from wxb.tasks.classification.metrics import calibration
from wxb.tasks.classification.metrics.calibration import cross_entropy
from wxb.tasks.classification.record.leakage import leakage_spans
from wxb.tasks.methods import Trained, inputs

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun

SHOWN = 24  # spans of a text in its evidence
PROBABILITY = 6  # significant digits

WeightedSpan = tuple[int, int, float]  # start and end in the text, and the weight


class Prediction(NamedTuple):
    """The likeliest class, the probabilities of all classes, and evidence if requested.

    The weights of `evidence` are contributions to the likeliest class minus the second likeliest.
    """

    label: str
    probabilities: Mapping[str, float]
    evidence: tuple[WeightedSpan, ...] | None = None


class Classifier(Trained):
    """A trained classifier, whose model returns one logit per class as `logits`."""

    prediction = params.Prediction(explained=0)

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of the logits."""
        labels: list[str] = self.settings["labels"]
        return labels

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Prediction]:
        """A prediction for each text; the first `prediction.explained` ones have evidence."""
        encoded = self.read(texts)
        logits = self.logits(encoded, texts, label=label)
        probabilities = softmax(logits / self.settings.get("temperature", 1.0), axis=1)
        count = min(self.prediction.explained, len(texts))
        evidence: list[tuple[WeightedSpan, ...] | None] = [None] * len(texts)
        if count:
            explained = slice_texts(encoded, 0, count), texts[:count], logits[:count]
            evidence[:count] = map(top_spans, self.weighted_spans(*explained))
        return [
            Prediction(
                self.labels[row.argmax()],
                {
                    name: float(f"{p:.{PROBABILITY}g}")
                    for name, p in zip(self.labels, row.tolist(), strict=True)
                },
                spans,
            )
            for row, spans in zip(probabilities, evidence, strict=True)
        ]

    def read(self, texts: Sequence[str]) -> Encoded:
        """The tokens of texts without leakage, not truncated."""
        encoded = encode(self.tokenizer, texts)
        return without_leakage_tokens(encoded, texts, self.settings["leakage"])

    def truncated(self, encoded: Encoded) -> Encoded:
        """The tokens that a network reads."""
        settings = self.settings
        return truncate(encoded, self.tokenizer, settings["max_length"], settings["keep"])

    def logits(self, encoded: Encoded, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts and their tokens."""
        length = self.settings["max_length"]
        items = inputs(self.truncated(encoded), self.tokenizer, length)
        logits = [output["logits"] for output in self.outputs(items, label=label)]
        return np.array(logits, np.float64).reshape(-1, len(self.labels))

    def weighted_spans(
        self, encoded: Encoded, texts: Sequence[str], logits: NDArray[np.float64]
    ) -> Iterable[list[WeightedSpan]]:
        """The words of each text, weighted by gradient times embedding.

        The gradient is that of the largest logit minus the second largest (Simonyan et al. 2013;
        Kindermans et al. 2016). The weights of the tokens of a word are summed.
        """
        import torch

        from wxb.training.batches import collate

        encoded = self.truncated(encoded)
        items = inputs(encoded, self.tokenizer, self.settings["max_length"])
        leading = len(special_tokens(self.tokenizer)[0])
        device = next(self.model.parameters()).device
        embed = self.model.get_input_embeddings()
        for item, text, (start, stop) in zip(items, texts, pairwise(encoded.splits), strict=True):
            batch = collate([item], self.tokenizer.pad_token_id)
            embeddings: list[Any] = []
            hook = embed.register_forward_hook(
                lambda module, args, output, outputs=embeddings: outputs.append(output)
            )
            try:
                with torch.enable_grad():
                    output = self.model(**{name: value.to(device) for name, value in batch.items()})
                    best, second = _two_largest(output["logits"][0])
                    (gradient,) = torch.autograd.grad(best - second, embeddings[0])
            finally:
                hook.remove()
            weights = (gradient * embeddings[0]).sum(dim=-1)[0].detach().float().cpu().numpy()
            tokens = zip(
                encoded.starts[start:stop].tolist(),
                encoded.ends[start:stop].tolist(),
                weights[leading : leading + stop - start].tolist(),
                strict=True,
            )
            yield sum_by_word(text, tokens)

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Set the temperature that minimizes the cross-entropy of validation records."""
        texts = [record.input for record in records]
        logits = self.logits(self.read(texts), texts, label=label)
        class_ids = {name: index for index, name in enumerate(self.labels)}
        known = [index for index, record in enumerate(records) if record.gold in class_ids]
        gold = np.array([class_ids[records[index].gold] for index in known], np.int64)
        self.settings["temperature"] = calibration.temperature(logits[known], gold)

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """The temperature, and the calibration error without it."""
        temperature = self.settings["temperature"]
        probabilities = np.array([[*p.probabilities.values()] for p in predictions])
        logs = np.log(np.maximum(probabilities.reshape(-1, len(self.labels)), 1e-300))
        confidences = softmax(temperature * logs, axis=1).max(axis=1)
        pairs = zip(records, predictions, strict=True)
        right = np.array([record.gold == prediction.label for record, prediction in pairs])
        sums = calibration.histogram(right, confidences).sum(axis=0)
        uncalibrated = round(float(calibration.error(sums)), DIGITS)
        return {"temperature": temperature, "ece_uncalibrated": uncalibrated}

    def describe(self, input_: str, prediction: Prediction) -> dict[str, Any]:
        """The class, the probabilities in descending order, and the evidence, if any, as JSON."""
        ranked = sorted(prediction.probabilities.items(), key=lambda item: (-item[1], item[0]))
        result: dict[str, Any] = {"label": prediction.label, "probabilities": dict(ranked)}
        if prediction.evidence is not None:
            result["evidence"] = [
                {"start": start, "end": end, "text": input_[start:end], "weight": weight}
                for start, end, weight in prediction.evidence
            ]
        return result

    def show(self, input_: str, prediction: Prediction) -> str:
        """The class, its probability and the text, in a line."""
        return f"{prediction.label} {prediction.probabilities[prediction.label]:.3f}\t{input_}"


class Weights(NamedTuple):
    """The weights (K, F) of a logistic regression and its intercepts (K,); 1 row for two classes.

    For two classes scikit-learn keeps the weights of the second only.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]

    def logits(self, features: Any) -> NDArray[np.float64]:
        """Logits (N, K) of features (N, F)."""
        logits: NDArray[np.float64] = features @ by_class(self.coef).T + by_class(self.intercept)
        return logits


def by_class(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (K, ...) as they are; of two classes, (1, ...) split in halves: (2, ...)."""
    return values if len(values) > 1 else np.concatenate([-values / 2, values / 2])


class Method(methods.Method):
    """A method that reads texts without leakage, unless the encoding keeps it."""

    def read(self, features: Path, records: Iterable[Record]) -> Encoded:
        """The tokens of records without leakage, not truncated; `features` has all tokens."""
        texts, leakage = [record.input for record in records], self.experiment.encoding.leakage
        return without_leakage_tokens(read_encoded(features), texts, leakage)

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> methods.Items:
        """One item per text: its `input_ids` and the index of its class as `labels`."""
        encoding, encoded = self.experiment.encoding, self.read(features, records)
        encoded = truncate(encoded, self.tokenizer, encoding.max_length, encoding.keep)
        items = inputs(encoded, self.tokenizer, encoding.max_length)
        columns, _ = read_columns(targets, self.TARGETS)
        return methods.with_labels(items, columns["labels"])

    def fit_regression(
        self, features: Mapping[str, Any], run: TrainingRun
    ) -> tuple[float, Weights, list[dict[str, float]]]:
        """The best of the logistic regressions with each C, by its score and weights; the history.

        `features` (N, F) are those of the items `train` and `valid`. The score is accuracy on
        `valid`, or with `folds` that of cross-validation on `train`; of equal ones the smallest C
        is best. The history has a row for each C. Its steps and epochs count the solver's
        iterations. Also prints the rows. Raises WxbError if the training records have one class
        only.
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
        history: list[dict[str, float]] = []
        best: tuple[float, Weights] | None = None
        steps = 0
        for strength in track(sorted(settings.C), run.label, len(settings.C), unit="C"):
            solver = LogisticRegression(
                C=strength,
                class_weight=settings.class_weight,
                max_iter=settings.max_iter,
                tol=settings.tol,
                random_state=run.seed,
            ).fit(features["train"], labels["train"])
            weights = Weights(solver.coef_, solver.intercept_)
            logits = {split: weights.logits(vectors) for split, vectors in features.items()}
            predicted = self.summarize(logits["valid"], labels["valid"])
            metrics = self.compute_metrics(predicted, labels["valid"])
            score, further = metrics[self.BEST.key], {}
            # A fold needs a record of a class to predict it.
            if settings.folds and (folds := min(settings.folds, int(sizes.max()))) > 1:
                splitter = StratifiedKFold(folds, shuffle=True, random_state=run.seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of classes with fewer records than folds
                    by_fold = cross_val_score(
                        solver,
                        features["train"],
                        labels["train"],
                        cv=splitter,
                        scoring=self.BEST.key,
                    )
                score = float(np.nan_to_num(by_fold).mean())  # nan: a fold without a class
                further = {f"folds_{self.BEST.key}": score}
            steps += int(solver.n_iter_.max())
            history.append(
                {
                    "step": steps,
                    "epoch": steps,
                    "C": strength,
                    "loss": cross_entropy(logits["train"], labels["train"]),
                    "valid_loss": cross_entropy(logits["valid"][known], labels["valid"][known]),
                    **{f"valid_{name}": value for name, value in metrics.items()},
                    **further,
                }
            )
            print(history[-1], flush=True)
            if best is None or score > best[0]:
                best = score, weights
        assert best is not None
        return *best, history


def without_leakage_tokens(encoded: Encoded, texts: Sequence[str], leakage: str) -> Encoded:
    """The tokens that touch no span of leakage; all tokens if `leakage` is "kept"."""
    if leakage == "kept":
        return encoded
    mask = np.ones(len(encoded.ids), bool)
    for text, (first, stop) in zip(texts, pairwise(encoded.splits), strict=True):
        starts, ends = encoded.starts[first:stop], encoded.ends[first:stop]
        for start, end in leakage_spans(text):
            mask[first:stop] &= (starts >= end) | (ends <= start)
    return _select(encoded, mask)


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
    return _select(encoded, mask)


def _select(encoded: Encoded, mask: NDArray[np.bool_]) -> Encoded:
    """The tokens for which a mask is true."""
    ids, starts, ends = (values[mask] for values in encoded[:3])
    counts = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    return Encoded(ids, starts, ends, counts[encoded.splits])


def sum_by_word(text: str, tokens: Iterable[WeightedSpan]) -> list[WeightedSpan]:
    """The spans of tokens, with those inside one word merged and their weights summed."""
    words: list[WeightedSpan] = []
    for start, end, weight in tokens:
        if words and words[-1][1] >= start and _is_inside_word(text, start):
            first, last, total = words[-1]
            words[-1] = (first, max(last, end), total + weight)
        elif end > start:
            words.append((start, end, weight))
    return words


def _is_inside_word(text: str, index: int) -> bool:
    """Whether an index is between two ASCII letters or digits."""
    return index > 0 and all(c.isalnum() and c.isascii() for c in text[index - 1 : index + 1])


def top_spans(spans: Sequence[WeightedSpan]) -> tuple[WeightedSpan, ...]:
    """The SHOWN spans with the largest absolute weights, rounded, in the order of the text."""
    largest = sorted(spans, key=lambda span: (-abs(span[2]), span[0]))[:SHOWN]
    return tuple((start, end, round(weight, 4)) for start, end, weight in sorted(largest) if weight)


def _two_largest(logits: Any) -> Any:
    """The largest logit and the next; 0 if there is no next."""
    values, _ = logits.topk(min(2, len(logits)))
    return values[0], (values[1] if len(values) > 1 else 0.0)
