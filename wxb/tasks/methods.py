"""The base classes of methods and of their predictors, which stages call.

A method is a module `wxb/tasks/<task>/<method>.py` with the class of its blocks in params.yaml and
one subclass of `Method`: of `Network` if it trains a network, of `HeadMethod` if this is a backbone
with a head, of `GeneratorMethod` if it is a causal language model, of `FittedMethod` if it fits a
model that is no network. Functions import torch if they need it, as it slows the stages before.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from wxb import tasks
from wxb.core import paths, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params import experiments
from wxb.core.pretrained import WEIGHTS
from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import (
    IGNORED,
    Encoded,
    RaggedColumns,
    read_columns,
    read_encoded,
    write_encoded,
)
from wxb.corpora.text.tokenizers import SavedTokenizer, max_text_tokens, special_tokens

Item = Mapping[str, NDArray[Any]]  # arrays by the names of the model's inputs
Items = Sequence[Item]
Chunks = Iterable[Sequence[Record]]
# The targets of records, the index where each record's begin, and counts of their gold by status.
Alignment = tuple[*RaggedColumns, dict[str, int]]
History = list[dict[str, float]]  # a row for each logged step
Texts = Mapping[str, Sequence[str]]  # by split
Labels = Mapping[str, NDArray[Any]]  # indices of labels, or numbers (N,), by split
LENGTHS = ("max_length", "keep")  # settings of `inputs`


class SplitFiles(NamedTuple):
    """The files that `encode` and `targets` wrote for a split, and a function for its records."""

    features: Path
    targets: Path
    read_records: Callable[[], Iterable[Record]]


@dataclass(frozen=True)
class LazyItems(Sequence[Item]):
    """Items that a function makes of their indices on each access; slices are lazy, too."""

    indices: Sequence[int]
    item: Callable[[int], Item]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        """One item, or those of a slice. Raises IndexError beyond the last."""
        if isinstance(index, slice):
            return LazyItems(self.indices[index], self.item)
        return self.item(self.indices[index])


class Predictor(ABC):
    """A trained model with its tokenizer and its settings, ready to predict."""

    file_suffixes: ClassVar[Sequence[str]] = ()  # of its inputs if they are files; else texts
    hub_task: ClassVar[str] = "other"  # the name of its task on the hub, for model cards
    example: ClassVar[str] = "..."  # an input of `predict` as Python, for model cards
    prediction: Any = experiments.Prediction()  # the experiment's `prediction` settings

    def __init__(self, model: Any, tokenizer: Any, **settings: Any) -> None:
        """`settings` are those that `save` writes. A network moves to the GPU, if there is one."""
        if hasattr(model, "eval"):  # a network
            import torch

            model = model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
        self.model, self.tokenizer, self.settings = model, tokenizer, settings

    @classmethod
    def load(cls, folder: Path, prediction: experiments.Prediction | None = None) -> Self:
        """Load a folder that `save` wrote; by default with default `prediction` settings."""
        settings = read_json(folder / paths.SETTINGS)
        tokenizer = SavedTokenizer(folder)
        predictor = cls(cls.load_model(folder, settings, tokenizer), tokenizer, **settings)
        predictor.prediction = prediction or cls.prediction
        return predictor

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load what `save_model` wrote, with these settings: by default the method's `MODEL`."""
        method: Any = tasks.get(settings["task"]).method(settings["method"])
        return method.MODEL.from_pretrained(folder)

    def save_model(self, folder: Path) -> None:
        """Write the model for `load_model`."""
        self.model.save_pretrained(folder)

    def save(self, folder: Path) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's or peft's layout."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save_model(folder)
        self.tokenizer.save_pretrained(folder)
        write_json(folder / paths.SETTINGS, self.settings)

    def predict(self, inputs: Iterable[Any], /, *, caption: str = "predict") -> list[Any]:
        """One prediction per input, in their order; `caption` names the progress.

        Raises TypeError for a single input, a table or None instead of a list of inputs, and for
        one that is no text, or no file if the model reads files. Lone surrogates become `?`.
        """
        if isinstance(inputs, str | bytes | Path | Mapping | None) or hasattr(inputs, "columns"):
            raise TypeError(
                f"predict: found one input ({type(inputs).__name__}); expected a list of them:"
                " predict([input])[0], or predict(table[column])"
            )
        inputs = [*inputs]  # a pandas Series finds items by its index
        types = (str, bytes, Path) if self.file_suffixes else str
        if wrong := [index for index, item in enumerate(inputs) if not isinstance(item, types)]:
            raise TypeError(
                f"predict: found {type(inputs[wrong[0]]).__name__} at {wrong[:3]}; expected"
                f" {'paths or bytes' if self.file_suffixes else 'texts'}: leave such inputs out"
            )
        if not self.file_suffixes:  # lone surrogates become question marks
            inputs = [text.encode("utf-8", "replace").decode() for text in inputs]
        return self.predictions(inputs, caption=caption)

    @abstractmethod
    def predictions(self, inputs: Sequence[Any], /, *, caption: str) -> list[Any]:
        """One prediction per input, in their order: the part of `predict` that a task defines."""

    def test(
        self, records: Sequence[Record], scorer: Any, vocabulary: Any, caption: str
    ) -> tuple[list[Any], dict[str, float], float]:
        """Predict records: the `Scorer.rows`, the metrics that need the model, and the seconds."""
        start = time.monotonic()
        predictions = self.predict([record.input for record in records], caption=caption)
        seconds = time.monotonic() - start
        rows = scorer.rows(records, predictions, vocabulary)
        return rows, self.model_metrics(records, predictions), seconds

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Choose settings on validation records: a threshold, examples or, by default, none."""
        return

    def model_metrics(self, records: Sequence[Record], predictions: Any) -> dict[str, float]:
        """Metrics that need the model, not only its predictions; none by default."""
        return {}

    def size(self, *, trainable: bool = False) -> int:
        """Number of parameters, shared ones once; if `trainable`, without frozen ones."""
        if isinstance(self.model, FittedModel):
            return self.model.size(trainable=trainable)
        from wxb.training.backbones.tuning import parameter_count

        if not (trainable and self.settings.get("frozen")):
            return parameter_count(self.model, trainable=trainable)
        parts = self.model.named_children()
        return sum(parameter_count(part) for name, part in parts if name != "backbone")

    def output_fields(self, input_: Any, prediction: Any) -> dict[str, Any]:
        """The prediction for an input as a JSON object, by default `{"prediction": ...}`."""
        return {"prediction": prediction}

    def as_text(self, input_: Any, prediction: Any) -> str:
        """The prediction for an input as text for the terminal: its attribute `text` if any."""
        return str(getattr(prediction, "text", prediction))

    def outputs(self, items: Items, *, caption: str) -> list[dict[str, NDArray[Any]]]:
        """Float32 outputs of a network for each item, padded as in its batch; shows progress."""
        import torch

        lengths = [len(item["input_ids"]) for item in items]
        batches = batches_by_length(lengths, self.prediction.batch_size)
        outputs: list[dict[str, NDArray[Any]]] = [{} for _ in lengths]
        for indices in track(batches, caption, len(batches), unit="batch"):
            with torch.inference_mode():
                output = self.model(**self.batch([items[index] for index in indices]))
            for name, values in output.items():
                for index, value in zip(indices, values.float().cpu().numpy(), strict=True):
                    outputs[index][name] = value
        return outputs

    def text_outputs(self, texts: Sequence[str], *, caption: str) -> list[dict[str, NDArray[Any]]]:
        """Outputs of a network for each text, truncated by the settings `max_length` and `keep`."""
        lengths = {key: self.settings[key] for key in LENGTHS if key in self.settings}
        items = inputs(tokenizers.encode(self.tokenizer, texts), self.tokenizer, **lengths)
        return self.outputs(items, caption=caption)

    def batch(self, items: Items, *, side: Literal["left", "right"] = "right") -> dict[str, Any]:
        """A batch of items as `wxb.training.batches.collate` makes it, on the model's device."""
        from wxb.training.batches import collate

        device = next(self.model.parameters()).device
        batch = collate(items, self.tokenizer.pad_token_id, side=side)
        return {name: values.to(device) for name, values in batch.items()}


class GeneratorPredictor(Predictor):
    """A trained causal language model."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the generator that `save` wrote to a folder."""
        from wxb.training.backbones.generator import Generator

        four_bit = settings["four_bit"]
        return Generator.from_pretrained(folder, vocabulary=len(tokenizer), four_bit=four_bit)


@dataclass
class FittedModel:
    """A model that is no network. Subclasses are dataclasses of NumPy arrays and JSON values."""

    infinite: ClassVar[Sequence[str]] = ()  # the arrays that may have infinite values

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fields that are arrays."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: np.ascontiguousarray(v) for k, v in values.items() if isinstance(v, np.ndarray)}

    def size(self, *, trainable: bool = False) -> int:
        """Number of parameters: by default all values of the arrays."""
        return sum(array.size for array in self.arrays.values())

    def save_pretrained(self, folder: Path) -> None:
        """Write the arrays as safetensors, and each other field to its file `<field>.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays = self.arrays
        save_file(arrays, folder / WEIGHTS)
        for name in {field.name for field in fields(self)} - {*arrays}:
            write_json(folder / f"{name}.json", getattr(self, name))

    @classmethod
    def from_pretrained(cls, folder: Path) -> Self:
        """Load a model; WxbError for missing, unknown or non-finite arrays (except `infinite`)."""
        file, names = folder / WEIGHTS, {field.name for field in fields(cls)}
        arrays = load_file(file)
        values = {n: read_json(path) for n in names if (path := folder / f"{n}.json").exists()}
        missing = names - {*arrays, *values}
        pretrained.require_no_faults(file, missing=missing, unexpected={*arrays} - names)
        pretrained.require_finite(file, {k: arrays[k] for k in {*arrays} - {*cls.infinite}})
        return cls(**arrays, **values)


@dataclass(frozen=True)
class Method(ABC):
    """A method of a task, set up for one experiment: from records to a trained model."""

    experiment: experiments.Experiment  # its block; a method annotates the class of its own
    labels: Sequence[str]  # the labels of the training records, in the order of labels.json
    tokenizer: Any  # of the backbone

    PREDICTOR: ClassVar[type[Predictor]]

    def __post_init__(self) -> None:
        """Check the tokenizer; a method that needs further tokens adds them to it, in place."""
        if self.experiment.required_weights == "decoder" and self.tokenizer.eos_token_id is None:
            raise WxbError(
                f"the tokenizer of backbone {self.experiment.backbone!r} has no end of text; use"
                " `tokenizer: {kind: byte-level-bpe, ...}` or a decoder's checkpoint"
            )

    def encode(self, chunks: Chunks, path: Path, *, caption: str) -> None:
        """Write the encoded inputs of records to the file `path`, whose stem is the split's name.

        By default an empty file, as `items` reads records. `caption` names the progress.
        """
        path.touch()

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The targets of records, whose `features` `encode` wrote; by default only counts."""
        count = sum(map(len, chunks))
        return {}, np.zeros(1, np.int64), {"gold": count, "kept": count}

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """The training items of a split, from the files of `encode` and `targets`.

        By default the records. A method that needs no texts does not read them, as they may be
        many. Raises ValueError if the files do not match.
        """
        return [*records]

    @abstractmethod
    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[Any, History]:
        """Train a model on the items of two splits.

        Training resumes from the last of the `checkpoints`. Returns the model and its history,
        whose last row has `step` and `epoch`.
        """

    def train_predictor(
        self, backbone: Path, train: SplitFiles, valid: SplitFiles, *, caption: str, **options: Any
    ) -> tuple[Predictor, History]:
        """Train and calibrate a predictor; also returns its history. `options` as in `train`.

        If several processes train together, each calibrates: they have the same model.
        """
        items, valid_items = (self.items(f, t, read()) for f, t, read in (train, valid))
        model, history = self.train(backbone, items, valid_items, caption=caption, **options)
        last = history[-1]
        counts = {"updates": int(last["step"]), "examples": round(last["epoch"] * len(items))}
        predictor = self.predictor(model, train.targets, **counts)
        predictor.calibrate([*valid.read_records()], caption=f"{caption}: calibrate")
        return predictor, history

    def predictor_settings(self, targets: Path) -> dict[str, Any]:
        """Settings of a predictor: by default `labels` and `encoding`; `targets` is a file."""
        return {"labels": list(self.labels), **self.experiment.encoding.model_dump()}

    def model_settings(self, targets: Path) -> dict[str, Any]:
        """Further settings, which `load_model` needs; none by default."""
        return {}

    def predictor(self, model: Any, targets: Path, **counts: int) -> Predictor:
        """The predictor of a trained model; `targets` is the file of the training targets.

        `counts` are `updates` of the optimizer and training `examples`, which `evaluate` needs.
        """
        experiment = self.experiment
        settings = {
            "task": experiment.task,
            "method": experiment.method,
            **self.predictor_settings(targets),
            "four_bit": experiment.tuning.four_bit,
            "training": counts,
            **self.model_settings(targets),
            **({"frozen": True} if experiment.tuning.frozen else {}),
        }
        return self.PREDICTOR(model, self.tokenizer, **settings)


class Network(Method):
    """A method that trains a network with the Trainer; by default on texts with a label or number.

    Without labels, gold is a number: METRIC may be "loss".
    """

    experiment: experiments.Network

    TARGETS: ClassVar[Sequence[str]] = ("labels",)  # the columns of an item that are not inputs
    METRIC: ClassVar[str] = "accuracy"  # its highest value picks the checkpoint, or lowest "loss"

    def encode(self, chunks: Chunks, path: Path, *, caption: str) -> None:
        """Write token ids with character offsets, not truncated and without special tokens."""
        texts = ([record.input for record in records] for records in chunks)
        write_encoded(path, (tokenizers.encode(self.tokenizer, chunk) for chunk in texts))

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The index of each record's label, as `label_targets`; also counts truncated texts."""
        columns, row_splits, counts = label_targets(self, chunks)
        lengths = np.diff(read_encoded(features).row_splits)
        truncated = int(np.count_nonzero(lengths > self.max_text_tokens()))
        return columns, row_splits, {**counts, "text_truncated": truncated}

    def max_text_tokens(self) -> int:
        """The maximum number of tokens of a text, without special tokens."""
        return max_text_tokens(self.tokenizer, self.experiment.encoding.max_length)

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """Truncated `input_ids` and `labels` (index or number) by record; reads no `records`."""
        settings = self.experiment.encoding.model_dump(include={*LENGTHS})
        items = inputs(read_encoded(features), self.tokenizer, **settings)
        labels = read_columns(targets, ["labels"])[0]["labels"]
        if len(items) != len(labels):
            raise ValueError(f"found {len(labels)} labels of {len(items)} items")
        return LazyItems(items.indices, lambda index: {**items[index], "labels": labels[index]})

    @abstractmethod
    def new_model(self, backbone: Path) -> Any:
        """A new model on a backbone; its new weights are random, so seed torch before."""

    @staticmethod
    def summarize(outputs: Any, labels: Any) -> Any:
        """What `compute_metrics` needs of a batch; `outputs` are the model's, without the loss.

        By default the argmax (...) of `outputs` with one axis more than labels, else `outputs`.
        """
        return outputs.argmax(-1) if outputs.ndim > labels.ndim else outputs

    @staticmethod
    def compute_metrics(predicted: Any, labels: Any) -> dict[str, float]:
        """Metrics of outputs of `summarize`, with METRIC; by default accuracy without IGNORED."""
        counted = labels != IGNORED
        return {"accuracy": float((predicted == labels)[counted].mean())}

    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[Any, History]:
        """Seed torch, make a `new_model` and train it with the Trainer; WxbError without items."""
        from transformers import set_seed

        from wxb.training.batches import collate
        from wxb.training.trainer import fit

        for split, items in {"training": train, "validation": valid}.items():
            if not len(items):
                lengths = self.experiment.encoding.model_dump(include={"window", "max_length"})
                cure = f"raise the lengths of `encoding`: {lengths}"
                raise WxbError(f"all {split} records are too long; {cure}")
        set_seed(seed)
        model = self.new_model(backbone)
        history = fit(
            model,
            self.experiment.training,
            train,
            valid,
            collate=partial(collate, pad=self.tokenizer.pad_token_id),
            seed=seed,
            checkpoints=checkpoints,
            caption=caption,
            targets=self.TARGETS,
            metric=self.METRIC,
            compute_metrics=lambda r: self.compute_metrics(r.predictions, r.label_ids),
            summarize=self.summarize,
        )
        return model, history


class HeadPredictor(Predictor):
    """A trained backbone with the head of its method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder."""
        from wxb.training.backbones.headed import WithHead

        method: Any = tasks.get(settings["task"]).method(settings["method"])
        head = partial(method.HEAD, len(settings["labels"]), **settings["head"])
        return WithHead.from_pretrained(folder, head=head, four_bit=settings["four_bit"])


class HeadMethod(Network):
    """Trains a backbone and `HEAD(classes, width, **model)`, with the experiment's `model`.

    The head is a module. It gets hidden states (B, T, width), their mask (B, T) and, in training,
    labels (B,), and returns outputs by name, with a `loss` if it gets labels.
    """

    HEAD: ClassVar[Callable[..., Any]]

    def new_model(self, backbone: Path) -> Any:
        """The backbone, adapted by the experiment's `tuning`, with a random head."""
        from wxb.training.backbones.headed import WithHead

        head = partial(self.HEAD, len(self.labels), **self.experiment.model.model_dump())
        return WithHead.from_backbone(backbone, self.experiment.tuning, head=head)

    def model_settings(self, targets: Path) -> dict[str, Any]:
        """The experiment's `model` settings, as `head`."""
        return {"head": self.experiment.model.model_dump()}


class GeneratorMethod(Network):
    """Trains a causal language model on the labels of tokens, such as those of answers."""

    def new_model(self, backbone: Path) -> Any:
        """The language model of a backbone; the embeddings of added tokens are random."""
        from wxb.training.backbones.generator import Generator

        tuning, size = self.experiment.tuning, len(self.tokenizer)
        return Generator.from_backbone(backbone, tuning, vocabulary=size)

    @staticmethod
    def summarize(outputs: Any, labels: Any) -> Any:
        """The most likely token at each label (B, T), IGNORED where the label is.

        `outputs` (N, V) are the logits of the N other labels.
        """
        predicted = labels.new_full(labels.shape, IGNORED)
        predicted[labels != IGNORED] = outputs.argmax(-1)
        return predicted


class FittedMethod(Method):
    """Fits a `MODEL` to texts with a label or number."""

    MODEL: ClassVar[type[FittedModel]]

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The index of each record's label, as `label_targets`."""
        return label_targets(self, chunks)

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """Each text of `records` with its label of `targets`: an index or IGNORED, or a number."""
        columns, _ = read_columns(targets, ["labels"])
        texts = (record.input for record in records)
        return [*zip(texts, columns["labels"].tolist(), strict=True)]

    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[Any, History]:
        """The model and history that `fit` returns; `backbone` and `checkpoints` are not used."""
        splits = {"train": train, "valid": valid}
        texts = {split: [text for text, _ in items] for split, items in splits.items()}
        labels = {split: np.array([label for _, label in items]) for split, items in splits.items()}
        return self.fit(texts, labels, seed=seed, caption=caption)

    @abstractmethod
    def fit(self, texts: Texts, labels: Labels, *, seed: int, caption: str) -> tuple[Any, History]:
        """A MODEL of the split `train`, and its history as `train` returns it."""


def label_targets(method: Method, chunks: Chunks) -> Alignment:
    """The index of each record's label, IGNORED if not in training; without labels, the number."""
    gold = [record.gold for records in chunks for record in records]
    if method.labels:
        index_of = {label: index for index, label in enumerate(method.labels)}
        gold = [index_of.get(label, IGNORED) for label in gold]
    lost = gold.count(IGNORED) if method.labels else 0
    counts = {"gold": len(gold), "kept": len(gold) - lost, "lost": lost}
    dtype = np.int64 if method.labels else np.float32
    return {"labels": np.array(gold, dtype)}, np.arange(len(gold) + 1), counts


def inputs(encoded: Encoded, tokenizer: Any, max_length: int, keep: str = "start") -> LazyItems:
    """One item per text: `input_ids` with special tokens, truncated to `max_length` in all.

    `keep` is "start", or "ends" for a quarter from the start and the rest from the end.
    """
    before, after = special_tokens(tokenizer)
    room = max_text_tokens(tokenizer, max_length)
    head = room // 4 if keep == "ends" else room

    def item(index: int) -> dict[str, NDArray[np.int32]]:
        start, stop = encoded.row_splits[index : index + 2]
        tail = max(start + head, stop - (room - head))
        parts = encoded.ids[start:stop][:head], encoded.ids[tail:stop]
        return {"input_ids": np.concatenate([before, *parts, after])}

    return LazyItems(range(len(encoded.row_splits) - 1), item)


def batches_by_length(lengths: Sequence[int] | NDArray[np.int64], size: int) -> list[list[int]]:
    """Batches of `size` indices of items, the shortest first, so that little is padded."""
    order: list[int] = np.argsort(lengths, kind="stable").tolist()
    return [order[start : start + size] for start in range(0, len(order), size)]
