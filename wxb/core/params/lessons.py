"""The blocks of `lessons`, one class for each module in wxb/lessons."""

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params.section import Fraction, PositiveFloat, Section
from wxb.core.params.training import Training


class Lesson(Section):
    """A small study of one stage."""

    title: str
    lesson: str  # the module in wxb/lessons
    path: str  # the file or folder that the lesson reads


class GatesLesson(Lesson):
    """Train perceptrons and MLPs on logic gates."""

    lesson: Literal["gates"]
    epochs: PositiveInt
    learning_rate: PositiveFloat
    hidden: PositiveInt
    widths: Annotated[list[PositiveInt], Field(min_length=1)]
    starts: PositiveInt


class ImageSplit(Section):
    """The shares of all pictures for testing and validation; the rest is for training."""

    test: Annotated[float, Field(gt=0, lt=1)] | None  # None: the test pictures of CIFAR-10
    valid: Annotated[float, Field(gt=0, lt=1)]

    @model_validator(mode="after")
    def _leaves_training_pictures(self) -> Self:
        if (self.test or 0) + self.valid >= 1:
            raise ValueError("test + valid must stay below 1: the rest is for training")
        return self


class ImagesLesson(Lesson):
    """Train a convolutional network to classify pictures."""

    lesson: Literal["images"]
    source: Literal["digits", "cifar-10", "folder"]
    split: ImageSplit
    widths: Annotated[list[PositiveInt], Field(min_length=1)]
    dropout: Fraction = 0.0
    training: Training

    @model_validator(mode="after")
    def _test_share_unless_cifar(self) -> Self:
        if (self.source == "cifar-10") != (self.split.test is None):
            raise ValueError("`split.test` is null for cifar-10 alone, which has test pictures")
        return self


class AttentionLesson(Lesson):
    """Show the attention of a trained model to a sentence."""

    lesson: Literal["attention"]
    sentence: Annotated[str, Field(min_length=1)]
    layers: PositiveInt  # counted from the last
    positions: PositiveInt
    width: Annotated[int, Field(ge=2, multiple_of=2)]


AnyLesson = Annotated[GatesLesson | ImagesLesson | AttentionLesson, Field(discriminator="lesson")]
