"""How fast this machine trains: a few updates of the very training, timed."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil  # type: ignore[import-untyped]
import torch

from wxb import tasks
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.core.progress import followed
from wxb.corpora.text import tokenizers
from wxb.project.estimate.shape import Shape
from wxb.project.estimate.work import Work
from wxb.training.trainer import LOGS

PATIENCE = 20.0  # seconds that trying may take
# Batches of two trials: what they do not share is the time of a batch. Each logs so often as a
# whole training does, which for a small model takes as long as the batches themselves.
FEW, MORE = LOGS, 4 * LOGS
MATRIX = 2048  # rows and columns of those whose product tells the rate of a model too large to try
UTILISATION = 0.5  # of that rate, by such a model


class Pace(NamedTuple):
    """Seconds of a batch forward and backward, those that come on top, and how they are known."""

    batch: float
    besides: float
    how: str


def of(params: Params, name: str, shape: Shape, work: Work) -> Pace:
    """The pace of a training here: tried, or where it cannot be, by its operations."""
    torch.set_num_threads(params.threads)
    fits = shape.weights + shape.learning < psutil.virtual_memory().available / 2
    flops = shape.training_flops(work.part, work.length)
    rate = _rate()
    if not fits or flops / rate > PATIENCE / 4:
        return Pace(flops / rate / UTILISATION, 0.0, "by operations")
    if work.items and not shape.four_bit:
        return Pace(*_by_training(params, name, work), "tried")
    return Pace(_by_steps(shape, work), 0.0, "tried without its data")


@cache
def start_up() -> float:
    """Seconds that a stage takes to import what trains: what trying has imported here."""
    rooms = ("wxb.training.backbones", "wxb.tasks", "wxb.training")
    names = ", ".join(sorted(name for name in sys.modules if name.startswith(rooms)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import stages, {names}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _clock() -> float:
    """Seconds of work: of a CPU those that this process had it, whatever else runs there."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return time.monotonic()
    return time.process_time() / torch.get_num_threads()


def _by_training(params: Params, name: str, work: Work) -> tuple[float, float]:
    """Seconds of a batch in the stage's own training, on some of its items, and what is besides."""
    experiment = params.experiments[name]
    alone = {"epochs": 1, "processes": 1, "fsdp": False, "batch_size": work.part}
    settings = experiment.training.model_copy(update=alone)
    experiment = experiment.model_copy(update={"training": settings})
    backbone = paths.model(experiment.backbone)
    labels = read_json(paths.targets(name) / paths.LABELS)
    method = tasks.method_of(experiment, labels, tokenizers.load(backbone))
    drawn = np.random.default_rng(0).permutation(len(work.items))

    def seconds(batches: int) -> float:
        chosen = [work.items[int(at)] for at in np.resize(drawn, batches * work.part)]
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
            began = _clock()
            training_run = method.training_run(
                chosen, chosen[:1], seed=0, checkpoints=Path(folder), label="estimate"
            )
            method.fit(backbone, training_run)
            return _clock() - began

    with followed(lambda done, total: None):
        if seconds(2) > PATIENCE / 4:  # the first has all to prepare
            return seconds(2) / 2, 0.0
        few = seconds(FEW)
        batch = max(0.0, seconds(MORE) - few) / (MORE - FEW)
        return batch, max(0.0, few - FEW * batch)


def _by_steps(shape: Shape, work: Work) -> float:
    """Seconds of a batch of random tokens, through a model of this shape with random weights."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = shape.model.to_empty(device=device).train()
    for values in (*model.parameters(), *model.buffers()):
        # Of positions and segments all may be the first.
        values.data.normal_(std=0.02) if values.is_floating_point() else values.data.zero_()
    learnt = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learnt)
    ids = torch.randint(10, 100, (work.part, work.length), device=device)
    times: list[float] = []
    began = time.monotonic()
    while len(times) < 3 or (len(times) < FEW and time.monotonic() - began < PATIENCE / 4):
        start = _clock()
        shape.loss(ids).backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(_clock() - start)
    return float(np.median(times[1:]))


def _rate() -> float:
    """Operations a second of multiplying large matrices, in float32."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    left, right = torch.rand(2, MATRIX, MATRIX, device=device)
    (left @ right).sum().item()
    began = _clock()
    (left @ right).sum().item()
    return 2.0 * MATRIX**3 / (_clock() - began)
