"""The blocks of `experiments` and `studies`: what is trained, and what is compared."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from wxb.params.section import Fraction, Name, PositiveFloat, Section
from wxb.params.training import Training

SEED = "seed-"  # begins the folder of another seed than a study's first
Seed = Annotated[int, Field(ge=0)]


class Head(Section):
    """The tagging head: one projection shared by the BIO, start and end classifiers."""

    projection: PositiveInt
    dropout: Fraction = 0.1


class WordFeatures(Section):
    """A table of embeddings for the letters of words, which helps where training texts are few."""

    rows: Annotated[int, Field(ge=2)]
    width: PositiveInt
    window: Annotated[int, Field(ge=0)]
    dropout: Fraction = 0.0


class LowRank(Section):
    """LoRA's matrices (Hu et al. 2021), beside the named linear layers; names as in peft."""

    r: PositiveInt
    alpha: PositiveInt
    dropout: Fraction = 0.0
    target_modules: Annotated[list[str], Field(min_length=1)]


class Tuning(Section):
    """What of the backbone learns: all of it, or LoRA's matrices beside it.

    With `four_bit` the backbone beside them is kept in 4 bits (QLoRA: Dettmers et al. 2023).
    """

    lora: LowRank | None = None
    four_bit: bool = False
    gradient_checkpointing: bool = False
    neftune_alpha: PositiveFloat | None = None

    @model_validator(mode="after")
    def _four_bits_stay_frozen(self) -> Tuning:
        if self.four_bit and self.lora is None:
            raise ValueError("weights in 4 bits cannot learn: `four_bit` needs `lora`")
        return self


class Generation(Section):
    """How answers are written."""

    special_tokens: bool = False
    batch_size: PositiveInt = 64


class Experiment(Section):
    """Corpus + task + backbone + how it is tuned; a row of its study's table."""

    study: Name
    corpus: Name
    task: Literal["ner"]
    method: Literal["tagging", "generation"]
    backbone: Name
    max_length: PositiveInt
    stride: Annotated[int, Field(ge=0)]
    implementation: Literal["transformers", "wxb"] = "transformers"
    bidirectional: bool = False
    word_features: WordFeatures | None = None
    head: Head | None
    generation: Generation | None
    tuning: Tuning = Tuning()
    training: Training

    @model_validator(mode="after")
    def _parts_of_task(self) -> Experiment:
        generates = self.method == "generation"
        if (self.head is None) != generates or (self.generation is None) == generates:
            raise ValueError("method tagging needs `head`, and generation `generation`")
        if generates and (self.bidirectional or self.word_features):
            raise ValueError("`bidirectional` and `word_features` are for tagging")
        if self.implementation == "wxb" and (
            generates
            or self.bidirectional
            or self.tuning.lora
            or self.tuning.gradient_checkpointing
        ):
            raise ValueError(
                "implementation wxb is for tagging in full: without `bidirectional`,"
                " `tuning.lora` and `tuning.gradient_checkpointing`"
            )
        if self.stride > self.max_length // 2:
            raise ValueError(
                f"windows of max_length {self.max_length} share at most half of it; found stride"
                f" {self.stride}"
            )
        return self


class Study(Section):
    """Experiments scored on the same test records, in the order of the table."""

    title: str
    seed: Seed | Annotated[list[Seed], Field(min_length=1)]  # a list: one training for each
    experiments: Annotated[list[Name], Field(min_length=1)]

    @property
    def seeds(self) -> list[int]:
        """The seeds that each experiment is trained with."""
        return self.seed if isinstance(self.seed, list) else [self.seed]

    def folder(self, seed: int) -> str:
        """Where in the folder of an experiment lies what is of this seed: of the first, on top."""
        return "" if seed == self.seeds[0] else f"{SEED}{seed}"

    @model_validator(mode="after")
    def _each_seed_once(self) -> Study:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"found seeds {self.seeds}; expected each once")
        return self
