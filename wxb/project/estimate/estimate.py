"""Estimate the trainings of an experiment, on this machine and on the GPUs of gpus.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params, read_yaml
from wxb.project.estimate.shape import ADAM, WEIGHT, Shape, backbone_shape, experiment_shape
from wxb.project.estimate.work import Work, backbone_work, experiment_work

GPUS = Path(__file__).with_name("gpus.yaml")
UTILISATION = 0.35  # share of a GPU's peak in training transformers (PaLM: 0.46; most: less)
LAUNCH = 0.02  # least seconds of an update: small models leave a GPU idle
PROCESS = 600 * 2**20  # bytes of Python, torch and transformers on a CPU
CHECKPOINTS = 2  # kept at a time during training


class Estimate(NamedTuple):
    """The estimate of one stage: counts, bytes and seconds.

    `memory` is that of each process; the times of `gpus` are for one GPU per process.
    """

    stage: str
    parameters: int
    trainable: int
    updates: int
    length: int
    is_exact: bool  # `length` comes from tokenized data
    flops: float
    memory: int
    model_bytes: int
    checkpoint_bytes: int
    seconds: float | None  # on this machine; None if not timed
    method: str  # how `seconds` was measured
    gpus: dict[str, float | None]  # seconds; None if the model does not fit
    last_cost: Mapping[str, Any] | None  # of the last run here


def estimates(params: Params, name: str, *, timed: bool = True) -> Iterator[Estimate]:
    """Yield the estimate of an experiment's pretraining, if there is one, and of its training.

    With `timed`, trains for some seconds to measure this machine, and sets the number of torch's
    threads. May download the configuration and tokenizer of a checkpoint. Raises WxbError for a
    method that does not train on tokens in steps, and if the number of records is unknown.
    """
    origin = params.experiments[name].backbone
    if origin in params.backbones and (work := backbone_work(params, origin)):
        shape = backbone_shape(params, origin)
        yield _estimate(params, "pretrain", origin, shape, work, timed)
    work = experiment_work(params, name)
    shape = experiment_shape(params, name, work.predicted_share)
    yield _estimate(params, "train", name, shape, work, timed)


def _estimate(
    params: Params, verb: str, name: str, shape: Shape, work: Work, timed: bool
) -> Estimate:
    batch_flops = shape.training_flops(work.batch_size, work.length)
    validation = work.epochs * work.valid / work.batch_size / 3  # forward passes only
    passes = work.steps + validation
    flops = batch_flops * passes
    activations = shape.activation_bytes(work.batch_size_per_process, work.length)
    state = (shape.weight_bytes + shape.optimizer_bytes) / (work.processes if work.fsdp else 1)
    memory = round(state) + activations
    model_bytes = WEIGHT * shape.trainable
    cost = paths.cost(verb, name)
    speed = None
    if timed:
        from wxb.project.estimate import throughput  # imports the training libraries

        speed = throughput.measure(params, name, shape, work)
    seeds = 1 if verb == "pretrain" else len(params.studies[params.experiments[name].study].seeds)
    seconds = None
    if speed:
        seconds = throughput.import_seconds() + seeds * (speed.overhead + speed.batch * passes)
    return Estimate(
        stage=f"{verb}@{name}",
        parameters=shape.parameters,
        trainable=shape.trainable,
        updates=seeds * work.updates,
        length=work.length,
        is_exact=work.is_exact,
        flops=seeds * flops,
        memory=memory + PROCESS,
        model_bytes=seeds * model_bytes,
        checkpoint_bytes=CHECKPOINTS * (model_bytes + ADAM * shape.trainable),
        seconds=seconds,
        method=speed.method if speed else "",
        gpus={
            gpu: max(
                seeds * flops / (work.processes * facts["teraflops"] * 1e12 * UTILISATION),
                seeds * work.steps * LAUNCH,
            )
            if memory < facts["memory"] * 2**30
            else None
            for gpu, facts in read_yaml(GPUS).items()
        },
        last_cost=read_json(cost) if cost.is_file() else None,
    )
