"""The blocks of `lessons`, one form for each module in wxb/lessons."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params.section import Fraction, PositiveFloat, Section
from wxb.core.params.training import Training


class Lesson(Section):
    """A small study of one stage, made from what is at `path` and its own code."""

    title: str
    lesson: str  # the module in wxb/lessons
    path: str


class GatesLesson(Lesson):
    """How long logic gates are learnt, and by how large an MLP."""

    lesson: Literal["gates"]
    epochs: PositiveInt
    learning_rate: PositiveFloat
    hidden: PositiveInt
    widths: Annotated[list[PositiveInt], Field(min_length=1)]
    starts: PositiveInt


class ImageSplit(Section):
    """Which shares of all pictures test and validate; the rest is for training."""

    test: Annotated[float, Field(gt=0, lt=1)] | None
    valid: Annotated[float, Field(gt=0, lt=1)]

    @model_validator(mode="after")
    def _some_to_train_on(self) -> ImageSplit:
        if (self.test or 0) + self.valid >= 1:
            raise ValueError("test + valid must stay below 1: the rest is for training")
        return self


class ImagesLesson(Lesson):
    """Pictures, and the network that learns to name them."""

    lesson: Literal["images"]
    source: Literal["digits", "cifar-10", "folder"]
    split: ImageSplit
    widths: Annotated[list[PositiveInt], Field(min_length=1)]
    dropout: Fraction = 0.0
    training: Training

    @model_validator(mode="after")
    def _one_test_set(self) -> ImagesLesson:
        if (self.source == "cifar-10") != (self.split.test is None):
            raise ValueError(
                "`split.test` is a share of digits or of a folder, and null for cifar-10, which has"
                " test pictures of its own"
            )
        return self


class AttentionLesson(Lesson):
    """A sentence, and the trained model whose attention to it is shown."""

    lesson: Literal["attention"]
    sentence: Annotated[str, Field(min_length=1)]
    layers: PositiveInt  # the last so many
    positions: PositiveInt
    width: Annotated[int, Field(ge=2, multiple_of=2)]


# By their `lesson`, which tells what the other keys are.
LESSONS: dict[str, type[Lesson]] = {
    get_args(block.model_fields["lesson"].annotation)[0]: block
    for block in (GatesLesson, ImagesLesson, AttentionLesson)
}
