"""Base types of the blocks of params.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, core_schema

Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # NumPy's range


def _check_name(name: str) -> str:
    if not name or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
        raise ValueError("a name is made of ASCII letters, digits, '-' and '_'")
    if name.startswith("-"):
        raise ValueError("a name cannot start with '-': commands would read an option")
    if len(name) > 100:
        raise ValueError(f"a name has at most 100 characters; found {len(name)}")
    return name


def _check_label(label: str) -> str:
    if not label or label != label.strip() or not label.isprintable():
        raise ValueError(f"expected a printable name without outer white space; found {label!r}")
    return label


Name = Annotated[str, AfterValidator(_check_name)]
Label = Annotated[str, AfterValidator(_check_label)]  # a class, a type of span, a language


class Section(BaseModel):
    """A block of params.yaml: immutable, without unknown keys."""

    # Schemas are built at the first validation: the classes of tasks derive from classes here, and
    # a block that only `Params` validates needs none of its own.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_flag(cls, value: Any, field: ValidationInfo) -> Any:
        """Refuse true and false as numbers."""
        assert field.field_name is not None
        if isinstance(value, bool) and not _allows_flag(cls, field.field_name):
            raise ValueError(f"found {str(value).lower()}; expected no flag")
        return value


class OneOf:
    """Annotation for a block with several variants, selected by the value of a key.

    `key` may also be a function from the block to the name of a variant. `variants` is called when
    the schema is built, so that a folder can add one. A variant may have such an annotation itself,
    with another key.
    """

    def __init__(
        self, key: str | Callable[[Any], str], variants: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.key, self.variants = key, variants

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The tagged union of the variants."""
        choices = {tag: handler.generate_schema(cls) for tag, cls in self.variants().items()}
        return core_schema.tagged_union_schema(choices, discriminator=self.key)


def _allows_flag(section: type[BaseModel], field: str) -> bool:
    """Whether a field may be true or false."""
    annotation = str(section.model_fields[field].annotation)
    return any(name in annotation for name in ("bool", "Any", "True", "False"))


def flatten(block: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested block by dotted key; an empty block counts as a value."""
    values: dict[str, Any] = {}
    for key, value in block.items():
        if isinstance(value, Mapping) and value:
            values |= flatten(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
