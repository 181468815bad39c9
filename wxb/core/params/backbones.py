"""The blocks of `backbones`."""

from os.path import expanduser
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from wxb.core.packages import PACKAGES
from wxb.core.params.section import Commit, Fraction, Name, Section
from wxb.core.params.training import Pretraining


class Tokenizer(Section):
    """A tokenizer to train on the inputs of a corpus, on its gold, or on both.

    Only tasks whose gold is text have `gold` in `texts`.
    """

    kind: Literal["wordpiece", "byte-level-bpe", "words"]
    vocabulary: Annotated[int, Field(ge=300)]
    texts: list[Literal["input", "gold"]] = Field(default=["input"], min_length=1)


class Architecture(Section):
    """The sizes of a model to train from scratch, by Hugging Face's names."""

    multiples: ClassVar = {
        "hidden_size": "num_attention_heads",
        "num_attention_heads": "num_key_value_heads",
    }

    model_type: Literal["bert", "llama"]
    hidden_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    num_key_value_heads: PositiveInt | None = None
    intermediate_size: PositiveInt
    max_position_embeddings: PositiveInt
    dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _only_llama_groups_heads(self) -> Self:
        if self.num_key_value_heads is not None and self.model_type != "llama":
            raise ValueError("num_key_value_heads is for model_type llama only")
        return self


class Backbone(Section):
    """A tokenizer and a model: trained here, or a checkpoint of a package, file, folder or the hub.

    Methods with their own model need the tokenizer only.
    """

    corpus: Name
    objective: Literal["mlm+nsp", "causal-lm", "none"]
    tokenizer: Tokenizer | None = None
    architecture: Architecture | None = None
    checkpoint: Annotated[str, AfterValidator(expanduser)] | None = None
    revision: Commit | None = None
    pretraining: Pretraining | None = None

    @property
    def is_tokenizer_only(self) -> bool:
        """Whether it has neither an architecture nor a checkpoint."""
        return self.architecture is None and self.checkpoint is None

    @property
    def is_local(self) -> bool:
        """Whether its checkpoint is an existing folder or file."""
        name = self.checkpoint or ""
        return bool(name) and name not in PACKAGES and Path(name).exists()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse missing keys, `checkpoint` with `architecture`, too many tokens to pretrain."""
        has_one = (self.tokenizer is None) != (self.checkpoint is None)
        if not has_one or (self.checkpoint and self.architecture):
            raise ValueError(
                "give either `tokenizer` and `architecture`, or `tokenizer` alone if the method has"
                " its own model, or `checkpoint`"
            )
        if self.tokenizer and self.tokenizer.kind == "words" and not self.is_tokenizer_only:
            raise ValueError("tokenizer.kind words is for backbones without `architecture`")
        if self.revision is not None and self.checkpoint in (None, *PACKAGES):
            raise ValueError("`revision` pins a `checkpoint` of the hub: add one, or remove it")
        if (self.objective == "none") != (self.pretraining is None):
            raise ValueError("`pretraining` settings go with an objective other than none")
        if self.pretraining and self.is_tokenizer_only:
            raise ValueError("a tokenizer has no weights to pretrain: give `architecture`")
        if self.architecture and self.pretraining:
            longest = self.architecture.max_position_embeddings
            if self.pretraining.max_length > longest:
                raise ValueError(f"pretraining.max_length is over {longest} positions")
        return self
