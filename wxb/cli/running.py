"""Run a command line so that errors which a user can fix print one line, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from wxb.core.errors import WxbError, storage_error

NO_INPUT = 2  # exit code of a benchmark without its input, as of wrong arguments


@contextmanager
def one_line_errors(name: str) -> Iterator[None]:
    """A WxbError or a full, read-only or forbidden disk ends the program with exit code 1."""
    try:
        yield
    except WxbError as error:
        _exit(name, str(error), 1)
    except OSError as error:
        if (line := storage_error(error)) is None:
            raise
        _exit(name, line, 1)


def run_benchmark(app: typer.Typer) -> None:
    """Run a script of benchmarks/; a WxbError or an absent file ends it with exit code 2."""
    name = Path(sys.argv[0]).stem
    try:
        app()
    except WxbError as error:
        _exit(name, str(error), NO_INPUT)
    except FileNotFoundError as error:
        absent = error.filename or error
        _exit(name, f"{absent} does not exist; benchmarks/README.md says what writes it", NO_INPUT)


def _exit(name: str, line: str, code: int) -> NoReturn:
    print(f"{name}: {line}", file=sys.stderr)
    sys.exit(code)
