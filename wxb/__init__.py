"""Wx+b: train and compare models reproducibly, from raw records to a table of results.

Applications, such as wxb/masking, use three names. `load` returns the predictor of a trained
experiment. `WxbError` is an error that the user can fix. `progress_callback` reports the progress
of predictions.
"""

import logging
import os
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wxb.core.errors import WxbError as WxbError
    from wxb.core.progress import progress_callback as progress_callback
    from wxb.project.trained import load as load

# No telemetry. Models and data sets are downloaded only if params.yaml names them.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")

# On import, bitsandbytes warns about an optional kernel, which it would download.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

# peft uses an old name of transformers; users cannot fix that.
warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)

# Imported at first use, as most stages do not need them.
PUBLIC = {
    "load": "wxb.project.trained",
    "WxbError": "wxb.core.errors",
    "progress_callback": "wxb.core.progress",
}


def __getattr__(name: str) -> object:
    """Import a name of PUBLIC from its module."""
    if name in PUBLIC:
        return getattr(import_module(PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
