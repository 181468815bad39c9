"""The project's root folder."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wxb.core.params import PARAMS


def find_root() -> Path | None:
    """The nearest folder with a params.yaml, from the working folder upward; None if there is none.

    Relative (`Path()`) if it is the working folder, else absolute.
    """
    cwd = Path.cwd()
    for folder in (cwd, *cwd.parents):
        if (folder / PARAMS).is_file():
            return folder if folder != cwd else Path()
    return None


def at_root(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command change to the project's root before it runs.

    Arguments that are paths still refer to the folder from which the command was called.
    """

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> Any:
        cwd, root = Path.cwd(), find_root()
        if root:
            os.chdir(root)
            for name, value in arguments.items():
                if isinstance(value, Path):
                    arguments[name] = Path(os.path.relpath(cwd / value, root))
        return command(**arguments)

    return wrapper
