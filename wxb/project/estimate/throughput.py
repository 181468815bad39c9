"""Measure how fast this machine trains, with a few updates."""

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
from wxb.core.progress import progress_callback
from wxb.corpora.text import tokenizers
from wxb.project.estimate.shape import Shape
from wxb.project.estimate.work import Work
from wxb.training.trainer import LOGS

MAX_SECONDS = 20.0  # of all trials
# Batches of two trials; their difference in time divided by their difference in batches is the time
# of a batch. Each logs as often as a full training: for small models, logging takes as long.
FEW, MORE = LOGS, 4 * LOGS
MATRIX = 2048  # rows and columns of the matrices that are multiplied for models too large to try
UTILISATION = 0.5  # the share of that FLOP rate that such a model reaches


class Throughput(NamedTuple):
    """Seconds of a batch forward and backward, seconds of overhead, and how they were measured."""

    batch: float
    overhead: float
    method: str


def measure(params: Params, name: str, shape: Shape, work: Work) -> Throughput:
    """Measure a training for up to MAX_SECONDS, or estimate that of a large model from its FLOPs.

    Sets the number of torch's threads.
    """
    torch.set_num_threads(params.threads)
    fits = shape.weight_bytes + shape.optimizer_bytes < psutil.virtual_memory().available / 2
    flops = shape.training_flops(work.batch_size_per_process, work.length)
    rate = _flop_rate()
    if not fits or flops / rate > MAX_SECONDS / 4:
        return Throughput(seconds_by_flops(flops), 0.0, "by FLOPs")
    if work.items:
        return Throughput(*_from_training(params, name, work), "tried")
    return Throughput(_from_random_data(shape, work), 0.0, "tried on random data")


@cache
def import_seconds() -> float:
    """CPU seconds to import, in a new process, the training modules imported here; cached."""
    packages = ("wxb.training.backbones", "wxb.tasks", "wxb.training")
    names = ", ".join(sorted(name for name in sys.modules if name.startswith(packages)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import stages, {names}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _clock() -> float:
    """A clock in seconds: of this process on a CPU, so that other processes do not matter."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return time.monotonic()
    return time.process_time() / torch.get_num_threads()


def _from_training(params: Params, name: str, work: Work) -> tuple[float, float]:
    """Seconds of a batch and of overhead, from training on random items of the experiment."""
    experiment = params.experiments[name]
    batch_size = work.batch_size_per_process
    changes = {"epochs": 1, "processes": 1, "fsdp": False, "batch_size": batch_size}
    settings = experiment.training.model_copy(update=changes)
    experiment = experiment.model_copy(update={"training": settings})
    backbone = paths.model(experiment.backbone)
    labels = read_json(paths.targets(name) / paths.LABELS)
    method = tasks.method_of(experiment, labels, tokenizers.load(backbone))
    order = np.random.default_rng(0).permutation(len(work.items))

    def seconds(batches: int) -> float:
        indices = np.resize(order, batches * batch_size)
        items = [work.items[int(index)] for index in indices]
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
            start = _clock()
            training_run = method.training_run(
                items, items[:1], seed=0, checkpoints=Path(folder), label="estimate"
            )
            method.fit(backbone, training_run)
            return _clock() - start

    with progress_callback(lambda done, total: None):
        if seconds(2) > MAX_SECONDS / 4:  # the first call prepares everything
            return seconds(2) / 2, 0.0
        few = seconds(FEW)
        batch = max(0.0, seconds(MORE) - few) / (MORE - FEW)
        return batch, max(0.0, few - FEW * batch)


def _from_random_data(shape: Shape, work: Work) -> float:
    """Seconds of a batch of random tokens through this model with random weights."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = shape.model.to_empty(device=device).train()
    for values in (*model.parameters(), *model.buffers()):
        # Integer buffers are positions and segments: zeros are valid.
        values.data.normal_(std=0.02) if values.is_floating_point() else values.data.zero_()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable)
    ids = torch.randint(10, 100, (work.batch_size_per_process, work.length), device=device)
    times: list[float] = []
    begin = time.monotonic()
    while len(times) < 3 or (len(times) < FEW and time.monotonic() - begin < MAX_SECONDS / 4):
        start = _clock()
        shape.loss(ids).backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(_clock() - start)
    return float(np.median(times[1:]))


def seconds_by_flops(flops: float) -> float:
    """Seconds of a model's FLOPs on this machine, from the speed of multiplying large matrices."""
    return flops / _flop_rate() / UTILISATION


@cache
def _flop_rate() -> float:
    """FLOPs per second of multiplying large matrices in float32."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    left, right = torch.rand(2, MATRIX, MATRIX, device=device)
    (left @ right).sum().item()
    start = _clock()
    (left @ right).sum().item()
    return 2.0 * MATRIX**3 / (_clock() - start)
