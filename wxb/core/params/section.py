"""What the blocks of params.yaml are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0)]


def _is_name(name: str) -> str:
    if not name or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
        raise ValueError("a name is made of ASCII letters, digits, '-' and '_'")
    return name


Name = Annotated[str, AfterValidator(_is_name)]


class Section(BaseModel):
    """A block of params.yaml: immutable, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class OneOf:
    """Annotates a block that has one of several forms, told apart by the value of a key.

    The forms are found when the schema is made, so that a folder can add one. A form may itself
    be annotated so, by another key.
    """

    def __init__(self, key: str, forms: Callable[[], Mapping[str, Any]]) -> None:
        self.key, self.forms = key, forms

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The union of the forms, by their tags."""
        choices = {tag: handler.generate_schema(form) for tag, form in self.forms().items()}
        return core_schema.tagged_union_schema(choices, discriminator=self.key)


def flat(block: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a block by dotted key; an empty block is a value."""
    values: dict[str, Any] = {}
    for key, value in block.items():
        if isinstance(value, Mapping) and value:
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
