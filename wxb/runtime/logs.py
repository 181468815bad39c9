"""Redirect the output of a stage to its log; progress stays on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from wxb.core.progress import Progress


@contextmanager
def redirect_to(log: Path) -> Iterator[TextIO]:
    """Redirect standard output and error, including those of C libraries, to a new log.

    Yields the terminal, which Progress then prints to.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with open(terminal, "w", encoding="utf-8", closefd=True) as console:  # noqa: PTH123
        Progress.console = console
        yield console


@contextmanager
def discard() -> Iterator[None]:
    """Discard progress and standard output, but not standard error."""
    with Path(os.devnull).open("w", encoding="utf-8") as Progress.console:
        os.dup2(Progress.console.fileno(), 1)
        yield
