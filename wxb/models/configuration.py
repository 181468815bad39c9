"""Settings that native architectures read from a Hugging Face configuration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Self

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

# Hendrycks and Gimpel 2016: exact, and approximated with tanh.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
}


@dataclass(frozen=True)
class Config:
    """The shape of an architecture, with the names and values of Hugging Face's configuration."""

    supported: ClassVar[Mapping[str, Sequence[Any]]] = {}  # values of settings; the default first

    @classmethod
    def from_hf(cls, config: Any) -> Self:
        """The shape of a configuration of transformers; fields that it lacks keep their defaults.

        Raises ValueError if a setting that `config` has is not among its `supported` values.
        """
        for name, values in cls.supported.items():
            value = getattr(config, name, values[0])
            if value not in values:
                expected = " or ".join(map(repr, values))
                raise ValueError(f"{name}: found {value!r}; this architecture supports {expected}")
        names = [field.name for field in fields(cls)]
        return cls(**{name: getattr(config, name) for name in names if hasattr(config, name)})
