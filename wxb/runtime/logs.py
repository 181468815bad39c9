"""Where the output of a stage goes: to its log, while progress stays on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from wxb.core.progress import Progress


@contextmanager
def diverted_to(log: Path) -> Iterator[TextIO]:
    """Send all output, that of libraries included, to the log; yield the terminal."""
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
def discarded() -> Iterator[None]:
    """Discard progress and standard output, not standard error."""
    with Path(os.devnull).open("w", encoding="utf-8") as Progress.console:
        os.dup2(Progress.console.fileno(), 1)
        yield
