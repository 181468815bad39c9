"""Where the project is that the current folder is in."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wxb.core.params import PARAMS


def root() -> Path | None:
    """The nearest folder with a params.yaml, from the current one up; None where there is none."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PARAMS).is_file():
            return folder if folder != here else Path()
    return None


def at_root(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that works at the project's root, wherever in the project it is called.

    Its arguments that are paths go on meaning what they mean where it is called.
    """

    @functools.wraps(command)
    def moved(**arguments: Any) -> Any:
        here, there = Path.cwd(), root()
        if there:
            os.chdir(there)
            for name, value in arguments.items():
                if isinstance(value, Path):
                    arguments[name] = Path(os.path.relpath(here / value, there))
        return command(**arguments)

    return moved
