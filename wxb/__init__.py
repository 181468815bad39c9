"""Wx+b: train and compare models reproducibly, from raw records to a table of results.

`load` returns the predictor of a trained experiment, `WxbError` is what the user can repair, and
`followed` reports how far a prediction is. Applications (wxb/masking is one) use these.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wxb.core.errors import WxbError as WxbError
    from wxb.core.progress import followed as followed
    from wxb.project.trained import load as load

# Nothing phones home; a model or data set is fetched only where params.yaml names one on the hub.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")

# Imported at first use: most stages do without.
PUBLIC = {
    "load": "wxb.project.trained",
    "WxbError": "wxb.core.errors",
    "followed": "wxb.core.progress",
}


def __getattr__(name: str) -> object:
    """A name of PUBLIC, from its module."""
    if name in PUBLIC:
        return getattr(import_module(PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
