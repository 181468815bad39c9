"""The project's root folder."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wxb
from wxb.core.errors import WxbError
from wxb.core.params import PARAMS
from wxb.project import conflicts

CODE = Path(wxb.__file__).parent


def find_root() -> Path | None:
    """The nearest folder with a params.yaml, from the working folder upward; None if there is none.

    Relative (`Path()`) if it is the working folder, else absolute.
    """
    cwd = Path.cwd()
    for folder in (cwd, *cwd.parents):
        if (folder / PARAMS).is_file():
            return folder if folder != cwd else Path()
    return None


def require_own_code() -> None:
    """Raise WxbError in a project that has code of its own, if this process imports another's."""
    root = find_root()
    own = root / CODE.name if root is not None else CODE
    if (own / "__init__.py").is_file() and not own.samefile(CODE):
        raise WxbError(
            f"{own.resolve()} is the code of this project, but this environment imports {CODE}."
            f" Run `make .venv/run` in {own.resolve().parent}, and use its .venv"
        )


def at_root(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command change to the project's root before it runs.

    Arguments that are paths still refer to the folder from which the command was called.
    The command raises WxbError for a merge conflict in the project.
    """

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> Any:
        cwd, root = Path.cwd(), find_root()
        if root:
            os.chdir(root)
            for name, value in arguments.items():
                if isinstance(value, Path):
                    arguments[name] = Path(os.path.relpath(cwd / value, root))
            conflicts.require_none()
        return command(**arguments)

    return wrapper
