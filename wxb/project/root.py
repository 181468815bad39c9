"""The project's root folder, and what keeps commands from reading it."""

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wxb
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import PARAMS

CODE = Path(wxb.__file__).parent
MERGED = (PARAMS, Path("dvc.yaml"), Path("dvc.lock"), paths.METRICS, paths.HEADLINES, paths.STUDIES)
MARKER = re.compile(rb"^<{7} ", re.MULTILINE)  # of git, around both sides of a merge


def find_root() -> Path | None:
    """The nearest folder upward with params.yaml, `Path()` if it is this one; None without one."""
    for folder in (Path(), *Path.cwd().parents):
        if (folder / PARAMS).is_file():
            return folder
    return None


def require_own_code() -> None:
    """Raise WxbError if the project has its own code, but this process imports another copy."""
    root = find_root()
    own = root / CODE.name if root is not None else CODE
    if (own / "__init__.py").is_file() and not own.samefile(CODE):
        raise WxbError(
            f"{own.resolve()} is the code of this project, but this environment imports {CODE}."
            f" Run `make .venv/run` in {own.resolve().parent}, and use its .venv"
        )


def require_no_braces_or_conflicts() -> None:
    """Raise WxbError if the project's path has braces, or a file of MERGED has a merge conflict."""
    if {*"{}"} & {*str(Path.cwd())}:
        raise WxbError(f"{Path.cwd()}: DVC and Snakemake cannot read paths with braces; move it")
    files = [file for path in MERGED for file in (path, *sorted(path.rglob("*.*")))]
    if names := [str(f) for f in files if f.is_file() and MARKER.search(f.read_bytes())]:
        raise WxbError(
            f"merge conflict in {', '.join(names)}. Edit params.yaml and dvc.yaml; keep either side"
            " of dvc.lock and results, as by `git checkout --ours dvc.lock reports`; then run it"
        )


def at_root(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command change to the project's root before it runs, if there is one.

    Takes keyword arguments only. A Path among them, unlike a str, still refers to the folder of the
    call. In a project, it raises WxbError as `require_no_braces_or_conflicts` does.
    """

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> Any:
        cwd, root = Path.cwd(), find_root()
        if root:
            os.chdir(root)
            for name, value in arguments.items():
                if isinstance(value, Path):
                    arguments[name] = Path(os.path.relpath(cwd / value, root))
            require_no_braces_or_conflicts()
        return command(**arguments)

    return wrapper
