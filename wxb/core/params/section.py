"""Base types of the blocks of params.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0)]


def _check_name(name: str) -> str:
    if not name or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
        raise ValueError("a name is made of ASCII letters, digits, '-' and '_'")
    return name


Name = Annotated[str, AfterValidator(_check_name)]


class Section(BaseModel):
    """A block of params.yaml: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class OneOf:
    """Annotation for a block with several variants, selected by the value of a key.

    `variants` is called when the schema is built, so that a folder can add one. A variant may have
    such an annotation itself, with another key.
    """

    def __init__(self, key: str, variants: Callable[[], Mapping[str, Any]]) -> None:
        self.key, self.variants = key, variants

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The tagged union of the variants."""
        choices = {tag: handler.generate_schema(cls) for tag, cls in self.variants().items()}
        return core_schema.tagged_union_schema(choices, discriminator=self.key)


def flatten(block: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested block by dotted key; an empty block counts as a value."""
    values: dict[str, Any] = {}
    for key, value in block.items():
        if isinstance(value, Mapping) and value:
            values |= flatten(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
