"""Base types of the blocks of params.yaml."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from wxb.core.errors import choices

Fraction = Annotated[float, Field(ge=0, lt=1)]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]  # of the hub
PositiveFloat = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # NumPy's range
JOINERS = dict.fromkeys((0x200C, 0x200D))  # zero-width characters of names, as of emoji


def _check_name(name: str) -> str:  # 1 to 100 ASCII letters, digits, - and _, not - first
    # Commands read -x as an option, and folders of further seeds begin with seed-.
    if not re.fullmatch(r"(?!seed-)\w[\w-]{0,99}", name, re.ASCII):
        raise ValueError(
            "a name is made of 1 to 100 ASCII letters, digits, '-' and '_', and does not start"
            " with '-' or 'seed-'"
        )
    return name


def _check_printable(label: str) -> str:  # also refuses empty labels and outer white space
    if not label or label != label.strip() or not label.translate(JOINERS).isprintable():
        raise ValueError(f"expected a printable name without outer white space; found {label!r}")
    return label


Name = Annotated[str, AfterValidator(_check_name)]
Label = Annotated[str, AfterValidator(_check_printable)]  # a class, a type of span, a language


class Section(BaseModel):
    """A block of params.yaml: immutable, without unknown keys, types as in the file."""

    # Schemas are built at the first validation: the classes of tasks derive from classes here, and
    # a block that only `Params` validates needs none of its own.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )

    multiples: ClassVar[Mapping[str, str]] = {}  # keys whose values are multiples of others'

    @model_validator(mode="after")
    def _check_divisibility(self) -> Self:
        for key, divisor in self.multiples.items():
            value, part = getattr(self, key), getattr(self, divisor)
            if part and value % part:
                raise ValueError(f"{key} {value} is not a multiple of {divisor} {part}")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _list_valid_keys(
        cls, block: Any, validate: pydantic.ModelWrapValidatorHandler[Self]
    ) -> Self:
        """Add the valid keys to the errors of unknown keys."""
        try:
            return validate(block)
        except ValidationError as error:
            faults: list[Any] = error.errors()
            for fault in faults:
                if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
                    hint = choices(fault["loc"][0], cls.model_fields)
                    fault["type"] = "value_error"
                    fault["ctx"] = {"error": ValueError(f"unknown key{hint}")}
            raise ValidationError.from_exception_data(cls.__name__, faults) from None


def flatten(block: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested block by dotted key; an empty block counts as a value."""
    values: dict[str, Any] = {}
    for key, value in block.items():
        if isinstance(value, Mapping) and value:
            values |= flatten(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
