"""Wx+b: train and compare models reproducibly, from raw records to a table of results."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wxb.project.trained import load as load

# Nothing phones home; a model or data set is fetched only where params.yaml names one on the hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")


def __getattr__(name: str) -> object:
    """`wxb.load`, imported when it is asked for: most stages do without it."""
    if name == "load":
        from wxb.project.trained import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
