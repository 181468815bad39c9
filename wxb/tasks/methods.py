"""What a method of a task brings: the stages tokenize, align, train and evaluate call nothing else.

A method is a folder `wxb/tasks/<task>/<method>/` whose module `method` has these names. Below are
what those take whose input is one text, where they have nothing better of their own. Torch is
imported where a model is needed, so that the stages before training start at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from wxb import paths
from wxb.corpora.records import Record
from wxb.files import read_json, write_json
from wxb.metrics import Metric
from wxb.progress import tracked
from wxb.text import tokenizers
from wxb.text.encoded import IGNORED, Columns, Encoded, write_encoded
from wxb.text.tokenizers import SavedTokenizer, special_tokens

if TYPE_CHECKING:
    import torch


class Predictor(Protocol):
    """A trained model, ready to use."""

    model: Any
    files: ClassVar[Sequence[str]]  # suffixes of those that are its inputs; none: texts are

    @classmethod
    def of(
        cls, model: Any, tokenizer: Any, labels: Sequence[str], experiment: Any, targets: Path
    ) -> Self:
        """Of a model that was just trained on the targets in a file."""

    @classmethod
    def load(cls, folder: Path, prediction: Any = None) -> Self:
        """What `save` wrote; `prediction` are the settings of that name, else their defaults."""

    def save(self, folder: Path, experiment: Any, *, updates: int, examples: int) -> None:
        """Write it; `updates` of the weights were made from so many `examples`."""

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Choose what is chosen on validation records, such as a threshold."""

    def predict(self, inputs: Sequence[Any], /, *, label: str = "predict") -> list[Any]:
        """A prediction for each input; shows progress under a label.

        Raises TypeError for one input in the place of a list.
        """

    def size(self, *, trainable: bool = False) -> int:
        """How many numbers the model holds, or how many of them it learned."""

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """Scores that need the model besides its predictions."""

    def describe(self, given: Any, prediction: Any) -> dict[str, Any]:
        """The prediction for an input as JSON, for programs."""

    def show(self, given: Any, prediction: Any) -> str:
        """The prediction for an input in a line, for people."""


class Method(Protocol):
    """The module `method` of a method. `labels` are those of training, as profile.json has them."""

    @property
    def TARGETS(self) -> Sequence[str]:  # noqa: N802
        """The columns of an item that are not inputs."""

    @property
    def BEST(self) -> Metric:  # noqa: N802
        """The metric of validation records that picks the best checkpoint."""

    @property
    def Predictor(self) -> type[Predictor]:  # noqa: N802
        """What uses a trained model."""

    def vocabulary(self, tokenizer: Any, labels: Sequence[str], experiment: Any) -> Any:
        """The tokenizer of the model, with the tokens that the method adds."""

    def encode(
        self,
        records: Sequence[Record],
        tokenizer: Any,
        experiment: Any,
        path: Path,
        *,
        label: str,
    ) -> None:
        """Write the encoded inputs of records to a file, which is named after their split."""

    def aligned(
        self,
        path: Path,
        chunks: Iterable[Sequence[Record]],
        labels: Sequence[str],
        tokenizer: Any,
        experiment: Any,
    ) -> tuple[*Columns, dict[str, int]]:
        """Targets of the encoded records, where each begins, and what became of their gold."""

    def build(self, backbone: Path, labels: Sequence[str], experiment: Any, tokenizer: Any) -> Any:
        """The model that training starts from; `fit` seeds what is random before."""

    def fit(
        self,
        build: Callable[[], Any],
        settings: Any,
        *,
        train: Sequence[Mapping[str, NDArray[Any]]],
        valid: Sequence[Mapping[str, NDArray[Any]]],
        collate: Callable[[Sequence[Any]], dict[str, Any]],
        targets: Sequence[str],
        compute_metrics: Callable[[Any, Any], dict[str, float]],
        summarize: Callable[[Any, Any], Any],
        best: Metric,
        seed: int,
        checkpoints: Path,
        label: str,
    ) -> tuple[Any, list[dict[str, float]]]:
        """The trained model, and its history: at least `step` and `epoch` of its last row."""

    def dataset(
        self,
        features: Path,
        targets: Path,
        tokenizer: Any,
        records: Sequence[Record],
        experiment: Any,
    ) -> Sequence[Mapping[str, NDArray[Any]]]:
        """Items to learn: arrays by the names of the model's inputs."""

    def collator(self, tokenizer: Any) -> Callable[[Sequence[Any]], dict[str, Any]]:
        """What makes a batch of items."""

    def summarize(self, logits: Any, labels: Any) -> Any:
        """What `compute_metrics` needs of a batch."""

    def compute_metrics(self, predicted: Any, labels: Any) -> dict[str, float]:
        """Metrics of validation records while training, BEST among them."""


def vocabulary(tokenizer: Any, labels: Sequence[str], experiment: Any) -> Any:
    """The tokenizer of a model that needs no tokens besides those of its backbone."""
    return tokenizer


def encode(
    records: Sequence[Record], tokenizer: Any, experiment: Any, path: Path, *, label: str
) -> None:
    """Write the tokens of the records' texts, with character offsets."""
    texts = [record.input for record in records]
    write_encoded(path, tokenizers.encode(tokenizer, texts, label=label))


def inputs(encoded: Encoded, tokenizer: Any, max_length: int) -> list[dict[str, NDArray[np.int32]]]:
    """One item a text: its `input_ids` with the special tokens around, `max_length` at most.

    Of a longer text the end is cut off.
    """
    before, after = special_tokens(tokenizer)
    room = max_length - len(before) - len(after)
    return [
        {"input_ids": np.concatenate([before, encoded.ids[start:stop][:room], after])}
        for start, stop in zip(encoded.splits[:-1], encoded.splits[1:], strict=True)
    ]


def collator(tokenizer: Any) -> Callable[[Sequence[Any]], dict[str, torch.Tensor]]:
    """What pads items to the longest of a batch."""
    from wxb.training.batches import collate

    return partial(collate, pad=tokenizer.pad_token_id)


def fit(
    build: Callable[[], Any], settings: Any, *, seed: int, **how: Any
) -> tuple[Any, list[dict[str, float]]]:
    """Fit by the Trainer: `settings` are a form of `Training`, the rest is as in `Method`."""
    from transformers import set_seed

    from wxb.training import trainer

    set_seed(seed)
    model = build()
    return model, trainer.fit(model, settings, seed=seed, **how)


def train(
    method: Method,
    experiment: Any,
    backbone: Path,
    labels: Sequence[str],
    tokenizer: Any,
    items: Mapping[str, Sequence[Mapping[str, NDArray[Any]]]],
    *,
    seed: int,
    checkpoints: Path,
    label: str,
) -> tuple[Any, list[dict[str, float]]]:
    """The model of an experiment, fitted to `items` of `train` and `valid`, and its history."""
    return method.fit(
        partial(method.build, backbone, labels, experiment, tokenizer),
        experiment.training,
        train=items["train"],
        valid=items["valid"],
        collate=method.collator(tokenizer),
        targets=method.TARGETS,
        compute_metrics=method.compute_metrics,
        summarize=method.summarize,
        best=method.BEST,
        seed=seed,
        checkpoints=checkpoints,
        label=label,
    )


def in_batches(lengths: Sequence[int] | NDArray[np.int64], size: int) -> list[list[int]]:
    """The places of items, `size` at a time: those of about one length share a batch."""
    order: list[int] = np.argsort(lengths, kind="stable").tolist()
    return [order[start : start + size] for start in range(0, len(order), size)]


def summarize(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The likeliest class (...) of logits (..., K)."""
    return logits.argmax(-1)


ACCURACY = Metric("accuracy", "accuracy")


def summarize_tokens(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The likeliest token at every label (B, T): `logits` (N, V) are of the N labels that count."""
    predicted = labels.new_full(labels.shape, IGNORED)
    predicted[labels != IGNORED] = logits.argmax(-1)
    return predicted


def token_accuracy(predicted: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    """The share of tokens (N, T) that are right when all before them are, while training."""
    asked = labels != IGNORED
    return {ACCURACY.key: float((predicted == labels)[asked].mean())}


class Trained:
    """A trained model with its tokenizer; what is predicted with it, a task says."""

    files: ClassVar[Sequence[str]] = ()
    batch_size = 32  # items at a time

    def __init__(self, model: Any, tokenizer: Any, **settings: Any) -> None:
        """`settings` are those that `load` needs, by their names in the file."""
        self.model, self.tokenizer, self.settings = self.ready(model), tokenizer, settings

    def ready(self, model: Any) -> Any:
        """The model where it predicts."""
        import torch

        return model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    @classmethod
    def of(
        cls, model: Any, tokenizer: Any, labels: Sequence[str], experiment: Any, targets: Path
    ) -> Self:
        """Of a model that was just trained; its labels and how it reads a text are settings."""
        return cls(model, tokenizer, labels=list(labels), **experiment.encoding.model_dump())

    @classmethod
    def load(cls, folder: Path, prediction: Any = None) -> Self:
        """Load a folder that `save` wrote; of `prediction` only the size of batches counts."""
        settings = read_json(folder / paths.SETTINGS)
        predictor = cls(cls.load_model(folder, settings), SavedTokenizer(folder), **settings)
        if prediction is not None:
            predictor.batch_size = prediction.batch_size
        return predictor

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any]) -> Any:
        """The model that its `save_pretrained` wrote."""
        raise NotImplementedError

    def save(self, folder: Path, experiment: Any, *, updates: int, examples: int) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's or peft's layout.

        `updates` of the weights were made in training, from so many `examples`, each pass counted.
        """
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        settings = {
            "task": experiment.task,
            "method": experiment.method,
            **self.kept(),
            "four_bit": experiment.tuning.four_bit,
            "training": {"updates": updates, "examples": examples},
            **self.own_settings(experiment),
        }
        write_json(folder / paths.SETTINGS, settings)

    def kept(self) -> dict[str, Any]:
        """What `load` needs."""
        return self.settings

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """What `load` needs besides, of models of this method."""
        return {}

    def predict(self, inputs: Sequence[Any], /, *, label: str = "predict") -> list[Any]:
        """A prediction for each input; shows progress under a label.

        Raises TypeError for one input in the place of a list: each of its characters would be one.
        """
        if isinstance(inputs, (str, bytes, Path)):
            raise TypeError(
                f"predict: found one input ({type(inputs).__name__}); expected a list of them:"
                " predict([input])[0]"
            )
        return self.predictions(inputs, label=label)

    def predictions(self, inputs: Sequence[Any], /, *, label: str) -> list[Any]:
        """What `predict` gives."""
        raise NotImplementedError

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Choose nothing: a method with a threshold has its own."""

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """No scores but those of the predictions."""
        return {}

    def size(self, *, trainable: bool = False) -> int:
        """Shared numbers count once."""
        from wxb.backbones.size import parameters

        return parameters(self.model, trainable=trainable)

    def describe(self, given: Any, prediction: Any) -> dict[str, Any]:
        """The prediction as it is."""
        return {"prediction": prediction}

    def show(self, given: Any, prediction: Any) -> str:
        """The prediction as it is."""
        return str(prediction)

    def outputs(
        self, items: Sequence[Mapping[str, NDArray[Any]]], *, label: str
    ) -> list[dict[str, NDArray[Any]]]:
        """What the model gives for each item with `input_ids`: arrays (...) of its (B, ...)."""
        import torch

        collate, device = collator(self.tokenizer), next(self.model.parameters()).device
        batches = in_batches([len(item["input_ids"]) for item in items], self.batch_size)
        found: list[dict[str, NDArray[Any]]] = [{} for _ in items]
        for chosen in tracked(batches, label, len(batches), unit="batch"):
            batch = {k: v.to(device) for k, v in collate([items[at] for at in chosen]).items()}
            with torch.inference_mode():
                given = self.model(**batch)
            for name, values in given.items():
                for at, value in zip(chosen, values.float().cpu().numpy(), strict=True):
                    found[at][name] = value
        return found
