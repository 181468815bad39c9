"""What the blocks of params.yaml are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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
