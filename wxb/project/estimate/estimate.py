"""What each training of an experiment will take, here and on GPUs that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params, read_yaml
from wxb.project.estimate import pace, shape, work
from wxb.project.estimate.shape import ADAM, WEIGHT, Shape
from wxb.project.estimate.work import Work

GPUS = Path(__file__).with_name("gpus.yaml")
UTILISATION = 0.35  # of a GPU's peak that training of transformers reaches (PaLM: 0.46; most: less)
LAUNCH = 0.02  # seconds that an update takes at least: a small model leaves a GPU waiting
PROCESS = 600 * 2**20  # bytes of Python, torch and transformers themselves, on a CPU
CHECKPOINTS = 2  # that a training keeps at a time


class Estimate(NamedTuple):
    """One stage: counts, bytes, seconds. `seconds` is None where nobody timed anything.

    `memory` is that of each process; `gpus` are as many of a kind as there are processes.
    """

    stage: str
    parameters: int
    trainable: int
    updates: int
    length: int
    counted: bool
    flops: float
    memory: int
    model_bytes: int
    checkpoint_bytes: int
    seconds: float | None
    how: str
    gpus: dict[str, float | None]  # seconds; None where it does not fit
    measured: Mapping[str, Any] | None  # what it cost here the last time


def of(params: Params, name: str, *, timed: bool = True) -> Iterator[Estimate]:
    """The pretraining and the training of an experiment of params.yaml.

    Raises WxbError where its method trains without steps.
    """
    origin = params.experiments[name].backbone
    if origin in params.backbones and (todo := work.of_backbone(params, origin)):
        yield _estimate(params, "pretrain", origin, shape.of_backbone(params, origin), todo, timed)
    todo = work.of_experiment(params, name)
    model = shape.of_experiment(params, name, todo.predicted)
    yield _estimate(params, "train", name, model, todo, timed)


def _estimate(
    params: Params, verb: str, name: str, model: Shape, todo: Work, timed: bool
) -> Estimate:
    batch = model.training_flops(todo.batch_size, todo.length)
    validating = todo.epochs * todo.valid / todo.batch_size / 3  # forward alone
    flops = batch * (todo.steps + validating)
    activations = model.activations(todo.part, todo.length)
    kept = (model.weights + model.learning) / (todo.processes if todo.fsdp else 1)
    memory = round(kept) + activations
    saved = WEIGHT * model.trainable
    cost = paths.cost(verb, name)
    found = pace.of(params, name, model, todo) if timed else None
    seeds = 1 if verb == "pretrain" else len(params.studies[params.experiments[name].study].seeds)
    passes = todo.steps + validating
    seconds = found and pace.start_up() + seeds * (found.besides + found.batch * passes)
    return Estimate(
        stage=f"{verb}@{name}",
        parameters=model.parameters,
        trainable=model.trainable,
        updates=seeds * todo.updates,
        length=todo.length,
        counted=todo.counted,
        flops=seeds * flops,
        memory=memory + PROCESS,
        model_bytes=seeds * saved,
        checkpoint_bytes=CHECKPOINTS * (saved + ADAM * model.trainable),
        seconds=seconds,
        how=found.how if found else "",
        gpus={
            gpu: max(
                seeds * flops / (todo.processes * facts["teraflops"] * 1e12 * UTILISATION),
                seeds * todo.steps * LAUNCH,
            )
            if memory < facts["memory"] * 2**30
            else None
            for gpu, facts in read_yaml(GPUS).items()
        },
        measured=read_json(cost) if cost.is_file() else None,
    )
