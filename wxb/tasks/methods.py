"""The base classes of methods and of their trained models, which stages call.

A method is a folder `wxb/tasks/<task>/<method>/` whose module `method` has a class `Method`. The
defaults are for texts with one label each. Functions that need a model import torch, so that the
stages before training start fast.
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
from wxb.core.progress import track
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


class LazyItems(Sequence[Mapping[str, NDArray[Any]]]):
    """Items that a function makes of their indices on each access; slices are lazy, too."""

    def __init__(
        self, indices: Sequence[int], item: Callable[[int], Mapping[str, NDArray[Any]]]
    ) -> None:
        self.indices, self.item = indices, item

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        """One item, or those of a slice. Raises IndexError beyond the last."""
        if isinstance(index, slice):
            return LazyItems(self.indices[index], self.item)
        return self.item(self.indices[index])


@dataclass(frozen=True)
class Method(ABC):
    """A method of a task, set up for one experiment: from records to a trained model."""

    experiment: Any  # its block of params.yaml
    labels: Sequence[str]  # the labels of the training records, in the order of profile.json
    tokenizer: Any

    TARGETS: ClassVar[Sequence[str]] = ("labels",)  # the columns of an item that are not inputs
    BEST: ClassVar[Metric] = ACCURACY  # the validation metric that picks the best checkpoint
    Predictor: ClassVar[type[Trained]]

    @classmethod
    def with_vocabulary(cls, experiment: Any, labels: Sequence[str], tokenizer: Any) -> Self:
        """The method with `vocabulary()` as its tokenizer."""
        method = cls(experiment, labels, tokenizer)
        return replace(method, tokenizer=method.vocabulary())

    def vocabulary(self) -> Any:
        """The tokenizer, to which a method may add its own tokens; none by default."""
        return self.tokenizer

    def encode(self, chunks: Iterable[Sequence[Record]], path: Path, *, label: str) -> None:
        """Write the encoded inputs of records to the file `path`, whose stem is the split's name.

        By default these are the tokens of their texts, with character offsets. `label` names the
        progress of slower methods.
        """
        texts = ([record.input for record in records] for records in chunks)
        write_encoded(path, (tokenizers.encode(self.tokenizer, chunk) for chunk in texts))

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The targets of records, the index where each record's begin, and counts of their gold.

        `path` is the file that `encode` wrote. The counts are by alignment status. By default the
        target is the index of the record's label; a label that training lacks counts as lost and
        its target is IGNORED.
        """
        index_of = {label: index for index, label in enumerate(self.labels)}
        gold = [index_of.get(record.gold, IGNORED) for records in chunks for record in records]
        lost = gold.count(IGNORED)
        counts = {"gold": len(gold), "kept": len(gold) - lost, "lost": lost}
        return {"labels": np.array(gold, np.int64)}, np.arange(len(gold) + 1), counts

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> Items:
        """The training items, from the files that `encode` (features) and `align` (targets) wrote.

        A method that needs no texts does not read `records`, which may be many.
        By default one item per text: its `input_ids` and the index of its label.
        """
        length = self.experiment.encoding.max_length
        items = inputs(read_encoded(features), self.tokenizer, length)
        columns, _ = read_columns(targets, ["labels"])
        return with_labels(items, columns["labels"])

    @abstractmethod
    def build(self, backbone: Path) -> Any:
        """A new model on a backbone; its new weights are random, so seed torch before."""

    def collator(self) -> Callable[[Sequence[Any]], dict[str, Any]]:
        """A function that makes a batch of items; by default it pads to the longest."""
        return collator(self.tokenizer)

    @staticmethod
    def summarize(logits: Any, labels: Any) -> Any:
        """The part of a batch's output that `compute_metrics` needs.

        By default the class (...) with the highest of logits (..., K).
        """
        return logits.argmax(-1)

    @staticmethod
    def compute_metrics(predicted: Any, labels: Any) -> dict[str, float]:
        """Validation metrics during training, including BEST; by default accuracy.

        `predicted` is what `summarize` returned.
        """
        counted = labels != IGNORED
        return {ACCURACY.key: float((predicted == labels)[counted].mean())}

    def training_run(
        self, train: Items, valid: Items, *, seed: int, checkpoints: Path, label: str
    ) -> TrainingRun:
        """The settings and data of training with one seed, for `fit`."""
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
        """Train a model; returns it with its history, whose last row has `step` and `epoch`.

        By default `build`s it after seeding torch, and trains it with the Trainer.
        """
        from transformers import set_seed

        from wxb.training import trainer

        set_seed(run.seed)
        model = self.build(backbone)
        return model, trainer.fit(model, run)


def inputs(encoded: Encoded, tokenizer: Any, max_length: int) -> LazyItems:
    """One item per text: `input_ids` with special tokens, truncated to `max_length` in all."""
    before, after = special_tokens(tokenizer)
    room = max_length - len(before) - len(after)

    def item(index: int) -> dict[str, NDArray[np.int32]]:
        start, stop = encoded.splits[index : index + 2]
        return {"input_ids": np.concatenate([before, encoded.ids[start:stop][:room], after])}

    return LazyItems(range(len(encoded.splits) - 1), item)


def with_labels(items: Items, labels: NDArray[Any]) -> LazyItems:
    """The items with a label each. Raises ValueError if their numbers differ."""
    if len(items) != len(labels):
        raise ValueError(f"found {len(labels)} labels of {len(items)} items")
    return LazyItems(range(len(items)), lambda index: {**items[index], "labels": labels[index]})


def collator(tokenizer: Any) -> Callable[[Sequence[Any]], dict[str, torch.Tensor]]:
    """A function that pads items to the longest of a batch; only a call of it imports torch."""
    return partial(_collate, tokenizer=tokenizer)


def _collate(items: Sequence[Any], tokenizer: Any) -> dict[str, torch.Tensor]:
    from wxb.training.batches import collate

    return collate(items, tokenizer.pad_token_id)


def batches_by_length(lengths: Sequence[int] | NDArray[np.int64], size: int) -> list[list[int]]:
    """Batches of `size` indices of items, sorted by length, so that little is padded."""
    order: list[int] = np.argsort(lengths, kind="stable").tolist()
    return [order[start : start + size] for start in range(0, len(order), size)]


def summarize_tokens(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The most likely token at each label (B, T), IGNORED where the label is.

    `logits` (N, V) are those of the N other labels.
    """
    predicted = labels.new_full(labels.shape, IGNORED)
    predicted[labels != IGNORED] = logits.argmax(-1)
    return predicted


class Trained(ABC):
    """A trained model with its tokenizer, ready to predict."""

    files: ClassVar[Sequence[str]] = ()  # suffixes of its inputs if they are files; else texts
    prediction: Any = Prediction()  # the experiment's `prediction` settings

    def __init__(self, model: Any, tokenizer: Any, **settings: Any) -> None:
        """`settings` are those that `save` writes and `load_model` needs."""
        self.model, self.tokenizer, self.settings = self.ready(model), tokenizer, settings

    def ready(self, model: Any) -> Any:
        """A network in evaluation mode, on the GPU if there is one; other models as they are."""
        if not hasattr(model, "eval"):
            return model
        import torch

        return model.eval().to("cuda" if torch.cuda.is_available() else "cpu")

    @classmethod
    def from_training(cls, model: Any, method: Method, targets: Path) -> Self:
        """The predictor of a newly trained model; `targets` is the file that `align` wrote."""
        encoding = method.experiment.encoding.model_dump()
        return cls(model, method.tokenizer, labels=list(method.labels), **encoding)

    @classmethod
    def load(cls, folder: Path, prediction: Prediction | None = None) -> Self:
        """Load a folder that `save` wrote; by default with default `prediction` settings."""
        settings = read_json(folder / paths.SETTINGS, finite=True)
        tokenizer = SavedTokenizer(folder)
        predictor = cls(cls.load_model(folder, settings, tokenizer), tokenizer, **settings)
        predictor.prediction = prediction or cls.prediction
        return predictor

    @classmethod
    @abstractmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder with these settings."""

    def save(self, folder: Path, experiment: Any, *, updates: int, examples: int) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's or peft's layout.

        `updates` and `examples` are the numbers of optimizer steps and of training items over all
        epochs, for the settings.
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
        """Further settings that `load_model` needs for this method; none by default."""
        return {}

    def predict(self, inputs: Sequence[Any], /, *, label: str = "predict") -> list[Any]:
        """One prediction per input, in their order; shows progress under a label.

        Raises TypeError for a single input instead of a list of inputs.
        """
        if isinstance(inputs, (str, bytes, Path)):
            raise TypeError(
                f"predict: found one input ({type(inputs).__name__}); expected a list of them:"
                " predict([input])[0]"
            )
        return self.predictions(inputs, label=label)

    @abstractmethod
    def predictions(self, inputs: Sequence[Any], /, *, label: str) -> list[Any]:
        """One prediction per input, in their order: the part of `predict` that a task defines."""

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Set what is chosen on validation records, such as a threshold; nothing by default."""
        return

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """Metrics that need the model, not only its predictions; none by default."""
        return {}

    def size(self, *, trainable: bool = False) -> int:
        """Number of parameters, shared ones once; only trainable ones if `trainable`."""
        from wxb.training.backbones.tuning import parameter_count

        return parameter_count(self.model, trainable=trainable)

    def describe(self, input_: Any, prediction: Any) -> dict[str, Any]:
        """The prediction for an input as a JSON object."""
        return {"prediction": prediction}

    def show(self, input_: Any, prediction: Any) -> str:
        """The prediction for an input as text for the terminal: its `text`, if it has one."""
        return str(getattr(prediction, "text", prediction))

    def outputs(self, items: Items, *, label: str) -> list[dict[str, NDArray[Any]]]:
        """The model's outputs for each item with `input_ids`, without the batch dimension.

        Items are batched by length; shows progress.
        """
        import torch

        collate, device = collator(self.tokenizer), next(self.model.parameters()).device
        lengths = [len(item["input_ids"]) for item in items]
        batches = batches_by_length(lengths, self.prediction.batch_size)
        outputs: list[dict[str, NDArray[Any]]] = [{} for _ in items]
        for indices in track(batches, label, len(batches), unit="batch"):
            batch = {k: v.to(device) for k, v in collate([items[i] for i in indices]).items()}
            with torch.inference_mode():
                output = self.model(**batch)
            for name, values in output.items():
                for index, value in zip(indices, values.float().cpu().numpy(), strict=True):
                    outputs[index][name] = value
        return outputs
