"""The blocks `training` and `pretraining`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt

from wxb.core.params.section import Fraction, PositiveFloat, Section


class Optimisation(Section):
    """Settings of fine-tuning and pretraining, by transformers' names if it has one.

    `batch_size` items are divided among the `processes`, each with its own GPU if the machine has
    GPUs. `bf16` multiplies matrices in bfloat16 on a CPU or GPU with instructions for it, in
    float32 on others; weights are in float32.
    """

    multiples: ClassVar = {"batch_size": "processes"}

    batch_size: PositiveInt
    processes: PositiveInt = 1
    learning_rate: PositiveFloat
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup_ratio: Fraction = 0.1
    schedule: Literal["linear", "cosine", "constant"] = "cosine"  # after warm-up
    max_grad_norm: PositiveFloat = 1.0
    bf16: bool = False


class Training(Optimisation):
    """Settings of fine-tuning; an update uses `gradient_accumulation` batches."""

    epochs: PositiveInt
    gradient_accumulation: PositiveInt = 1
    early_stopping_patience: PositiveInt = 3


class Pretraining(Optimisation):
    """Settings of pretraining; each update uses `batch_size` documents."""

    steps: PositiveInt
    max_length: PositiveInt
    checkpoints: PositiveInt = 4
