"""The work of a training: its batches, updates and tokens.

They come from the data if the stages before training have run, else from params.yaml as upper
bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import IGNORED

VALID = 0.1  # share of validation records if params.yaml sets none


@dataclass(frozen=True)
class Work:
    """Sizes of a training."""

    batches: int  # of one epoch
    epochs: int
    batch_size: int
    accumulation: int
    length: int  # tokens of an item, padding included
    valid: int  # items validated on after each epoch
    is_exact: bool  # `length` and counts come from data, not from upper bounds
    items: Sequence[Any] = ()  # training items, if they exist
    predicted_share: float = 1.0  # share of tokens whose logits a generative model computes
    processes: int = 1  # that divide each batch
    fsdp: bool = False  # the processes divide the model, too

    @property
    def batch_size_per_process(self) -> int:
        """Items of a batch in each process."""
        return self.batch_size // self.processes

    @property
    def steps(self) -> int:
        """Batches of all epochs, each with a forward and a backward pass."""
        return self.batches * self.epochs

    @property
    def updates(self) -> int:
        """Optimizer updates of all epochs."""
        return self.epochs * -(-self.batches // self.accumulation)


def experiment_work(params: Params, name: str) -> Work:
    """The work of training an experiment.

    Raises WxbError if it is not trained in steps, or the number of records is unknown.
    """
    experiment = params.experiments[name]
    settings: Any = experiment.training
    if not hasattr(settings, "batch_size"):
        raise WxbError(
            f"experiments.{name}: cannot estimate the method {experiment.method}; `wxb estimate`"
            " supports models that are trained in steps"
        )
    accumulation = getattr(settings, "gradient_accumulation", 1)
    items = _items(params, name)
    if items:
        lengths = np.array([np.size(item["input_ids"]) for item in items])
        _, valid = _labelled(params, experiment.corpus)
        labels = [item["labels"] for item in items if np.ndim(item.get("labels", 0))]
        predicted = sum(int((row != IGNORED).sum()) for row in labels)
        share = predicted / lengths.sum() if labels else 1.0
        count, length = len(items), _padded(lengths, settings.batch_size)
    else:
        count, valid = _labelled(params, experiment.corpus)
        length, share = experiment.max_length or 512, 1.0
    return Work(
        batches=-(-count // settings.batch_size),
        epochs=experiment.max_epochs or 1,
        batch_size=settings.batch_size,
        accumulation=accumulation,
        length=length,
        valid=valid,
        is_exact=bool(items),
        items=items,
        predicted_share=min(1.0, share),
        processes=getattr(settings, "processes", 1),
        fsdp=getattr(settings, "fsdp", False),
    )


def backbone_work(params: Params, name: str) -> Work | None:
    """The work of pretraining a backbone; None if it is not pretrained here."""
    settings = params.backbones[name].pretraining
    if settings is None:
        return None
    return Work(
        batches=settings.steps,
        epochs=1,
        batch_size=settings.batch_size,
        accumulation=1,
        length=settings.max_length,
        valid=0,
        is_exact=True,
        processes=settings.processes,
        fsdp=settings.fsdp,
    )


def _items(params: Params, name: str) -> Sequence[Any]:
    """The training items of tokens; empty if their files do not exist, or for other inputs."""
    experiment = params.experiments[name]
    files = [folder / "train.arrow" for folder in (paths.features(name), paths.targets(name))]
    backbone = paths.model(experiment.backbone)
    if not all(path.exists() for path in [*files, backbone]):
        return ()
    labels = read_json(paths.targets(name) / paths.LABELS)
    method = tasks.method_of(experiment, labels, tokenizers.load(backbone))
    records = clean.iter_labelled(
        paths.clean(experiment.corpus) / "train.parquet", tasks.get(experiment.task).record
    )
    items = method.dataset(files[0], files[1], records)
    return items if "input_ids" in items[0] else ()


def _padded(lengths: Any, batch_size: int) -> int:
    """The mean padded length of batches, if items are batched by length."""
    ordered = np.sort(lengths)
    return round(float(np.mean(ordered[batch_size - 1 :: batch_size])))


def _labelled(params: Params, corpus: str) -> tuple[int, int]:
    """The numbers of labelled records for training and for validation."""
    path = paths.clean(corpus) / paths.PROFILE
    if path.is_file():
        splits = read_json(path)["splits"]
        return splits["train"]["labelled"], splits["valid"]["labelled"]
    block = params.corpora[corpus]
    total = getattr(block.generate, "labelled", None) or block.max_records
    if total is None:
        raise WxbError(
            f"corpora.{corpus}: the number of records is unknown; run"
            f" `dvc repro preprocess@{corpus}`, then try again"
        )
    valid = round(total * (block.split.valid or VALID))
    held_out = sum(other.share or 0 for other in (block.split.further or {}).values())
    return round(total * (1 - (block.split.test or 0) - held_out)) - valid, valid
