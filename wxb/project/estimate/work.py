"""How much a training has to go through: updates, and the tokens of a batch.

Where the stages before it have run, their data tell; else the parameters say how much there is at
most.
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

VALID = 0.1  # of the records, where nothing says how many are validated on


@dataclass(frozen=True)
class Work:
    """Batches of one pass, passes, and the tokens that an item of a batch takes, padding included.

    `items` are those of training themselves, where they are made.
    """

    batches: int
    epochs: int
    batch_size: int
    accumulation: int
    length: int
    valid: int  # items that each epoch ends with
    counted: bool  # from data, not from what parameters allow
    items: Sequence[Any] = ()
    predicted: float = 1.0  # share of tokens whose logits are computed, of a model that writes
    processes: int = 1  # which share a batch
    fsdp: bool = False  # and the model

    @property
    def part(self) -> int:
        """What of a batch each process takes."""
        return self.batch_size // self.processes

    @property
    def steps(self) -> int:
        """Batches of all passes: each is read forward and backward."""
        return self.batches * self.epochs

    @property
    def updates(self) -> int:
        """Changes of the weights."""
        return self.epochs * -(-self.batches // self.accumulation)


def of_experiment(params: Params, name: str) -> Work:
    """What the experiment trains on. Raises WxbError where nobody knows how many records."""
    experiment = params.experiments[name]
    settings: Any = experiment.training
    accumulation = getattr(settings, "gradient_accumulation", 1)
    items = _items(params, name)
    if items:
        lengths = np.array([np.size(item["input_ids"]) for item in items])
        valid = _labelled(params, experiment.corpus)[1]
        labels = [item["labels"] for item in items if np.ndim(item.get("labels", 0))]
        asked = sum(int((row != IGNORED).sum()) for row in labels)
        predicted = asked / lengths.sum() if labels else 1.0
        count, length = len(items), _padded(lengths, settings.batch_size)
    else:
        count, valid = _labelled(params, experiment.corpus)
        length, predicted = experiment.longest_input or 512, 1.0
    return Work(
        batches=-(-count // settings.batch_size),
        epochs=experiment.longest_training or 1,
        batch_size=settings.batch_size,
        accumulation=accumulation,
        length=length,
        valid=valid,
        counted=bool(items),
        items=items,
        predicted=min(1.0, predicted),
        processes=getattr(settings, "processes", 1),
        fsdp=getattr(settings, "fsdp", False),
    )


def of_backbone(params: Params, name: str) -> Work | None:
    """What pretraining a backbone reads; None where it isn't pretrained here."""
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
        counted=True,
        processes=settings.processes,
        fsdp=settings.fsdp,
    )


def _items(params: Params, name: str) -> Sequence[Any]:
    """The items of training, where features and targets are made; none where items are no texts."""
    experiment = params.experiments[name]
    files = [folder / "train.arrow" for folder in (paths.features(name), paths.targets(name))]
    backbone = paths.model(experiment.backbone)
    if not all(path.exists() for path in [*files, backbone]):
        return ()
    labels = read_json(paths.targets(name) / paths.LABELS)
    method = tasks.method_of(experiment, labels, tokenizers.load(backbone))
    records = clean.labelled(
        paths.clean(experiment.corpus) / "train.parquet", tasks.get(experiment.task).record
    )
    items = method.dataset(files[0], files[1], records)
    return items if "input_ids" in items[0] else ()


def _padded(lengths: Any, batch_size: int) -> int:
    """The mean of what batches are padded to, where those of one length share one."""
    ordered = np.sort(lengths)
    return round(float(np.mean(ordered[batch_size - 1 :: batch_size])))


def _labelled(params: Params, corpus: str) -> tuple[int, int]:
    """The records to train and to validate on."""
    path = paths.clean(corpus) / paths.PROFILE
    if path.is_file():
        splits = read_json(path)["splits"]
        return splits["train"]["labelled"], splits["valid"]["labelled"]
    block = params.corpora[corpus]
    total = getattr(block.generate, "labelled", None) or block.max_records
    if total is None:
        raise WxbError(
            f"how many records corpora.{corpus} has nobody knows yet; run"
            f" `dvc repro preprocess@{corpus}`, then ask again"
        )
    valid = round(total * (block.split.valid or VALID))
    held_out = sum(other.share or 0 for other in (block.split.further or {}).values())
    return round(total * (1 - (block.split.test or 0) - held_out)) - valid, valid
