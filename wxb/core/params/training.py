"""How models learn: what fine-tuning and pretraining share, and what each has besides."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params.section import Fraction, PositiveFloat, Section

# For each learning rate schedule: the options it needs, and those it may have.
SCHEDULES: dict[str, tuple[set[str], set[str]]] = {
    "linear": (set(), set()),
    "cosine": (set(), set()),
    "cosine_with_restarts": (set(), {"num_cycles"}),
    "step": ({"step_size", "gamma"}, set()),
    "reduce_lr_on_plateau": (set(), {"factor", "patience", "threshold", "min_lr"}),
    "constant": (set(), set()),
}


class Optimisation(Section):
    """What fine-tuning and pretraining share. Names follow transformers where it has one.

    An update reads `batch_size` items, times `gradient_accumulation` where there is such: of
    several `processes`, each with a GPU of its own if there are any, each takes its part of them.
    With `fsdp` each also keeps a part of the model only (torch's fully sharded data parallel).
    """

    batch_size: PositiveInt
    processes: PositiveInt = 1
    fsdp: bool = False
    learning_rate: PositiveFloat
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup_ratio: Fraction = 0.1
    schedule: Literal[
        "linear", "cosine", "cosine_with_restarts", "step", "reduce_lr_on_plateau", "constant"
    ] = "cosine"
    schedule_options: dict[str, int | float] = Field(default={})
    max_grad_norm: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _parts_of_a_batch(self) -> Self:
        if self.batch_size % self.processes:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of processes {self.processes},"
                " which divide it among them"
            )
        if self.fsdp and self.processes == 1:
            raise ValueError("fsdp is set, and processes is 1: a model is divided among several")
        return self

    @model_validator(mode="after")
    def _options_of_schedule(self) -> Self:
        required, optional = SCHEDULES[self.schedule]
        given = set(self.schedule_options)
        if not required <= given <= required | optional:
            raise ValueError(
                f"schedule {self.schedule} takes schedule_options"
                f" {sorted(required | optional)}; found {sorted(given)}"
            )
        if self.schedule == "reduce_lr_on_plateau" and self.warmup_ratio:
            raise ValueError("reduce_lr_on_plateau has no warm-up: set warmup_ratio to 0")
        return self


class Training(Optimisation):
    """Fine-tuning of one experiment.

    With `bf16` a CPU multiplies matrices in bfloat16, weights staying in float32; a GPU always does
    that is able to.
    """

    epochs: PositiveInt
    gradient_accumulation: PositiveInt = 1
    early_stopping_patience: PositiveInt = 3
    bf16: bool = False


class Pretraining(Optimisation):
    """Pretraining of one backbone; every update reads `batch_size` documents."""

    steps: PositiveInt
    max_length: PositiveInt
    copying: Fraction = 0.0
    checkpoints: PositiveInt = 4
