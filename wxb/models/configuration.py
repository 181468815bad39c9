"""Settings that native architectures read from a Hugging Face configuration."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

C = TypeVar("C")

# Hendrycks and Gimpel 2016: exact, and approximated with tanh.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
}


def from_hf(cls: type[C], config: Any, **supported: Sequence[Any]) -> C:
    """Build a dataclass from the settings of the same names; other fields keep their defaults.

    Raises ValueError if a setting that `config` has is not among its `supported` values.
    """
    for name, values in supported.items():
        value = getattr(config, name, values[0])
        if value not in values:
            expected = " or ".join(map(repr, values))
            raise ValueError(f"{name}: found {value!r}; this architecture supports {expected}")
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: getattr(config, name) for name in names if hasattr(config, name)})
