"""The base classes of methods and of their trained models; stages call nothing else of a method.

A method is a folder `wxb/tasks/<task>/<method>/` whose module `method` has a class `Method`. Its
defaults are for texts with one label each. Torch is imported where a model is needed, so that the
stages before training start at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wxb.core import paths
from wxb.core.files import read_json, write_json
from wxb.core.params.experiments import Prediction
from wxb.core.progress import tracked
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import (
    IGNORED,
    Columns,
    Encoded,
    read_columns,
    read_encoded,
    write_encoded,
)
from wxb.corpora.text.tokenizers import SavedTokenizer, special_tokens
from wxb.metrics import Metric

if TYPE_CHECKING:
    import torch

    from wxb.training.run import TrainingRun

ACCURACY = Metric("accuracy", "accuracy")

Items = Sequence[Mapping[str, NDArray[Any]]]  # arrays by the names of the model's inputs


@dataclass(frozen=True)
class Method(ABC):
    """A method of a task, for one experiment: from records to a trained model."""

    experiment: Any  # its block of params.yaml
    labels: Sequence[str]  # those of training, as profile.json has them
    tokenizer: Any

    TARGETS: ClassVar[Sequence[str]] = ("labels",)  # the columns of an item that are not inputs
    BEST: ClassVar[Metric] = ACCURACY  # of validation records: it picks the best checkpoint
    Predictor: ClassVar[type[Trained]]

    @classmethod
    def with_vocabulary(cls, experiment: Any, labels: Sequence[str], tokenizer: Any) -> Self:
        """The method with the tokenizer of its model, which `align` and training use."""
        method = cls(experiment, labels, tokenizer)
        return replace(method, tokenizer=method.vocabulary())

    def vocabulary(self) -> Any:
        """The tokenizer with the tokens that the method adds; none by default."""
        return self.tokenizer

    def encode(self, records: Sequence[Record], path: Path, *, label: str) -> None:
        """Write the encoded inputs of records to a file, which is named after their split.

        By default these are the tokens of their texts, with character offsets.
        """
        texts = [record.input for record in records]
        write_encoded(path, tokenizers.encode(self.tokenizer, texts, label=label))

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """Targets of the encoded records in a file, where each begins, and counts of their gold.

        The counts are by alignment status. By default the target is the number of the record's
        label; a label that training lacks is lost, and is not learned.
        """
        number = {label: index for index, label in enumerate(self.labels)}
        gold = [number.get(record.gold, IGNORED) for records in chunks for record in records]
        lost = gold.count(IGNORED)
        account = {"gold": len(gold), "kept": len(gold) - lost, "lost": lost}
        return {"labels": np.array(gold, np.int64)}, np.arange(len(gold) + 1), account

    def dataset(self, features: Path, targets: Path, records: Sequence[Record]) -> Items:
        """The items to train on, of the encoded records and targets in two files.

        By default one item a text: its `input_ids` and the number of its label.
        """
        length = self.experiment.encoding.max_length
        items = inputs(read_encoded(features), self.tokenizer, length)
        columns, _ = read_columns(targets, ["labels"])
        return [{**item, "labels": n} for item, n in zip(items, columns["labels"], strict=True)]

    @abstractmethod
    def build(self, backbone: Path) -> Any:
        """The model that training starts from; seed torch before, new weights are random."""

    def collator(self) -> Callable[[Sequence[Any]], dict[str, Any]]:
        """A function that makes a batch of items; by default it pads to the longest."""
        return collator(self.tokenizer)

    @staticmethod
    def summarize(logits: Any, labels: Any) -> Any:
        """What `compute_metrics` needs of a batch: the likeliest class (...) of logits (..., K)."""
        return logits.argmax(-1)

    @staticmethod
    def compute_metrics(predicted: Any, labels: Any) -> dict[str, float]:
        """Metrics of validation records while training, BEST among them: accuracy by default."""
        known = labels != IGNORED
        return {ACCURACY.key: float((predicted == labels)[known].mean())}

    def training_run(
        self, train: Items, valid: Items, *, seed: int, checkpoints: Path, label: str
    ) -> TrainingRun:
        """The training of the experiment with one seed."""
        from wxb.training.run import TrainingRun

        return TrainingRun(
            self.experiment.training,
            train=train,
            valid=valid,
            collate=self.collator(),
            seed=seed,
            checkpoints=checkpoints,
            label=label,
            targets=self.TARGETS,
            compute_metrics=self.compute_metrics,
            summarize=self.summarize,
            best=self.BEST,
        )

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Any, list[dict[str, float]]]:
        """The trained model and its history: at least `step` and `epoch` of its last row.

        The Trainer fits it by default.
        """
        from transformers import set_seed

        from wxb.training import trainer

        set_seed(run.seed)
        model = self.build(backbone)
        return model, trainer.fit(model, run)


def inputs(encoded: Encoded, tokenizer: Any, max_length: int) -> list[dict[str, NDArray[np.int32]]]:
    """One item a text: its `input_ids` with the special tokens around, `max_length` at most.

    Longer texts are truncated.
    """
    before, after = special_tokens(tokenizer)
    room = max_length - len(before) - len(after)
    return [
        {"input_ids": np.concatenate([before, encoded.ids[start:stop][:room], after])}
        for start, stop in zip(encoded.splits[:-1], encoded.splits[1:], strict=True)
    ]


def collator(tokenizer: Any) -> Callable[[Sequence[Any]], dict[str, torch.Tensor]]:
    """A function that pads items to the longest of a batch."""
    from wxb.training.batches import collate

    return partial(collate, pad=tokenizer.pad_token_id)


def in_batches(lengths: Sequence[int] | NDArray[np.int64], size: int) -> list[list[int]]:
    """The indices of items, `size` at a time: those of about one length share a batch."""
    order: list[int] = np.argsort(lengths, kind="stable").tolist()
    return [order[start : start + size] for start in range(0, len(order), size)]


def summarize_tokens(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The likeliest token at every label (B, T): `logits` (N, V) are of the N labels that count."""
    predicted = labels.new_full(labels.shape, IGNORED)
    predicted[labels != IGNORED] = logits.argmax(-1)
    return predicted


class Trained(ABC):
    """A trained model with its tokenizer, ready to predict."""

    files: ClassVar[Sequence[str]] = ()  # suffixes of its inputs if they are files; else texts
    prediction: Any = Prediction()  # settings of that name; a task has its own form

    def __init__(self, model: Any, tokenizer: Any, **settings: Any) -> None:
        """`settings` are those that `load` needs, by their names in the file."""
        self.model, self.tokenizer, self.settings = self.ready(model), tokenizer, settings

    def ready(self, model: Any) -> Any:
        """The model on the device where it predicts."""
        import torch

        return model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    @classmethod
    def from_training(cls, model: Any, method: Method, targets: Path) -> Self:
        """A model that was just trained on the targets in a file."""
        encoding = method.experiment.encoding.model_dump()
        return cls(model, method.tokenizer, labels=list(method.labels), **encoding)

    @classmethod
    def load(cls, folder: Path, prediction: Prediction | None = None) -> Self:
        """Load a folder that `save` wrote; without settings of prediction it has their defaults."""
        settings, tokenizer = read_json(folder / paths.SETTINGS), SavedTokenizer(folder)
        predictor = cls(cls.load_model(folder, settings, tokenizer), tokenizer, **settings)
        predictor.prediction = prediction or cls.prediction
        return predictor

    @classmethod
    @abstractmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """The model that its `save_pretrained` wrote."""

    def save(self, folder: Path, experiment: Any, *, updates: int, examples: int) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's or peft's layout.

        `updates` of the weights were made in training, from so many `examples`, each pass counted.
        """
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        own = self.own_settings(experiment)
        settings = {
            "task": experiment.task,
            "method": experiment.method,
            **{name: value for name, value in self.settings.items() if name not in own},
            "four_bit": experiment.tuning.four_bit,
            "training": {"updates": updates, "examples": examples},
            **own,
        }
        write_json(folder / paths.SETTINGS, settings)

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """Settings that `load` needs of models of this method."""
        return {}

    def predict(self, inputs: Sequence[Any], /, *, label: str = "predict") -> list[Any]:
        """A prediction for each input; shows progress under a label.

        Raises TypeError for one input instead of a list: each of its characters would be one.
        """
        if isinstance(inputs, (str, bytes, Path)):
            raise TypeError(
                f"predict: found one input ({type(inputs).__name__}); expected a list of them:"
                " predict([input])[0]"
            )
        return self.predictions(inputs, label=label)

    @abstractmethod
    def predictions(self, inputs: Sequence[Any], /, *, label: str) -> list[Any]:
        """What `predict` returns."""

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Choose settings on validation records, such as a threshold; none by default."""
        return

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """Scores that need the model as well as its predictions; none by default."""
        return {}

    def size(self, *, trainable: bool = False) -> int:
        """Number of parameters, shared ones once; only trainable ones if `trainable`."""
        from wxb.training.backbones.size import parameters

        return parameters(self.model, trainable=trainable)

    def describe(self, given: Any, prediction: Any) -> dict[str, Any]:
        """The prediction for an input as JSON, for programs."""
        return {"prediction": prediction}

    def show(self, given: Any, prediction: Any) -> str:
        """The prediction for an input in a line, for people."""
        return str(prediction)

    def outputs(self, items: Items, *, label: str) -> list[dict[str, NDArray[Any]]]:
        """The outputs of the model for each item with `input_ids`: arrays (...) of its (B, ...)."""
        import torch

        collate, device = collator(self.tokenizer), next(self.model.parameters()).device
        lengths = [len(item["input_ids"]) for item in items]
        batches = in_batches(lengths, self.prediction.batch_size)
        outputs: list[dict[str, NDArray[Any]]] = [{} for _ in items]
        for indices in tracked(batches, label, len(batches), unit="batch"):
            batch = {k: v.to(device) for k, v in collate([items[i] for i in indices]).items()}
            with torch.inference_mode():
                output = self.model(**batch)
            for name, values in output.items():
                for index, value in zip(indices, values.float().cpu().numpy(), strict=True):
                    outputs[index][name] = value
        return outputs
