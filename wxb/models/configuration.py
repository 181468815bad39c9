"""What the native architectures take from a Hugging Face configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

C = TypeVar("C")

# Hendrycks and Gimpel 2016: exact, and by their approximation with tanh.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
}


def from_hf(cls: type[C], config: Any, **supported: Sequence[Any]) -> C:
    """A dataclass filled with the settings of the same names; the others keep their defaults.

    `supported` are the values that a setting may have, of which the first stands where there is
    none. Raises ValueError with what was found where it is another.
    """
    for name, values in supported.items():
        found = getattr(config, name, values[0])
        if found not in values:
            expected = " or ".join(map(repr, values))
            raise ValueError(f"{name}: found {found!r}; this architecture takes {expected}")
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: getattr(config, name) for name in names if hasattr(config, name)})
