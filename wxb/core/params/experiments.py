"""The blocks of `experiments` and `studies`: what is trained, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveInt, model_validator

from wxb.core import paths
from wxb.core.params.section import Fraction, Name, PositiveFloat, Section

Seed = Annotated[int, Field(ge=0)]


class LowRank(Section):
    """LoRA's matrices (Hu et al. 2021), beside the named linear layers; names as in peft."""

    r: PositiveInt
    alpha: PositiveInt
    dropout: Fraction = 0.0
    target_modules: Annotated[list[str], Field(min_length=1)]


class Tuning(Section):
    """What of the backbone learns: all of it, or LoRA's matrices beside it.

    With `four_bit` the backbone beside them is kept in 4 bits (QLoRA: Dettmers et al. 2023). Of a
    `frozen` one nothing learns: it is what others are compared with.
    """

    lora: LowRank | None = None
    frozen: bool = False
    four_bit: bool = False
    gradient_checkpointing: bool = False
    neftune_alpha: PositiveFloat | None = None
    neftune_padded: bool = False  # as its authors' code: noise by the length of the batch

    @model_validator(mode="after")
    def _four_bits_stay_frozen(self) -> Tuning:
        if self.four_bit and self.lora is None:
            raise ValueError("weights in 4 bits cannot learn: `four_bit` needs `lora`")
        return self

    @model_validator(mode="after")
    def _frozen_alone(self) -> Tuning:
        if self.frozen and (self.lora or self.gradient_checkpointing or self.neftune_alpha):
            raise ValueError("nothing learns where `frozen` is set: leave the rest of `tuning` out")
        return self


class Encoding(Section):
    """How much of a text is read: so many tokens, special ones included."""

    max_length: PositiveInt


class Prediction(Section):
    """How inputs are predicted.

    `only_page` are the values without which nothing is lacking but on the page: those of any use
    outside the DAG.
    """

    only_page: ClassVar[Mapping[str, Any]] = {}

    batch_size: PositiveInt = 32


class Experiment(Section):
    """Corpus + task and method + backbone + how it is tuned; a row of its study's table.

    The backbone may be another experiment of the same method: then this one goes on from its model.

    Settings are grouped by the first stage that reads them, so that a change reruns no more than it
    must: `encoding` by tokenize or align, `model`, `tuning` and `training` by train, `prediction`
    by evaluate. The forms of the groups are the method's; `training` is a form of `Training` where
    the Trainer fits. `architecture` is the code that a
    change of makes it stale: that of its backbone, the folder wxb/models where none is native, or
    its __init__.py where the method needs none.
    """

    slow: ClassVar[bool] = False  # longer to train and evaluate than others: begun first

    study: Name
    corpus: Name
    task: str
    method: str
    backbone: Name
    architecture: str
    encoding: Section
    model: Section
    tuning: Tuning
    training: Section
    prediction: Section

    @model_validator(mode="after")
    def _four_bits_stay_whole(self) -> Experiment:
        if self.tuning.four_bit and getattr(self.training, "fsdp", False):
            raise ValueError(
                "tuning.four_bit and training.fsdp exclude each other: weights in 4 bits are not"
                " divided (accelerate leaves them out), so each process would keep them all"
            )
        return self

    @property
    def traits(self) -> list[str]:
        """What sets its model apart from the plain one of its method, in words."""
        return []

    @property
    def longest_training(self) -> int | None:
        """How many epochs it may learn for, if it learns in such."""
        return getattr(self.training, "epochs", None)

    @property
    def longest_input(self) -> int | None:
        """How many tokens the backbone reads at a time, if that is set; compared with its own."""
        return getattr(self.encoding, "max_length", None)


class Study(Section):
    """Experiments scored on the same test records, in the order of the table."""

    task: str
    title: str
    seed: Seed | Annotated[list[Seed], Field(min_length=1)]  # a list: one training for each
    experiments: Annotated[list[Name], Field(min_length=1)]

    @property
    def seeds(self) -> list[int]:
        """The seeds that each experiment is trained with."""
        return self.seed if isinstance(self.seed, list) else [self.seed]

    def folder(self, seed: int) -> str:
        """Where in the folder of an experiment lies what is of this seed: of the first, on top."""
        return "" if seed == self.seeds[0] else f"{paths.SEED}{seed}"

    @model_validator(mode="after")
    def _each_seed_once(self) -> Study:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"found seeds {self.seeds}; expected each once")
        return self
