"""Progress of long work, as whole lines: readable on a terminal that several jobs share.

A stage of the pipeline notes its progress in a file, too, where `wxb watch` finds it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_NOTES = 1.0
NOTES = Path(".wxb/progress")


class Progress:
    """Prints a line such as `train@NAME:  40%|████    | 80/200 [...]` now and then.

    `console` is shared by all: a stage diverts standard error to its log and points it at the
    terminal.
    """

    console: TextIO = sys.stderr
    follower: Callable[[int, int | None], None] | None = None  # is told in place of the console

    def __init__(self, label: str, total: int | None, unit: str = "step") -> None:
        self.label, self.total, self.unit = label, total, unit
        self.started = self.printed = time.monotonic()
        self.noted = self.started - SECONDS_BETWEEN_NOTES
        self.stage = stage_of(sys.orig_argv)

    def at(self, done: int, **figures: float | str) -> None:
        """Tell that `done` units are finished; the last one is always printed."""
        if Progress.follower:
            Progress.follower(done, self.total)
            return
        now = time.monotonic()
        if self.stage and now - self.noted >= SECONDS_BETWEEN_NOTES:
            self.noted = now
            self._note(NOTES / f"{self.stage}.json", done, now - self.started, figures)
        if done != self.total and now - self.printed < SECONDS_BETWEEN_LINES:
            return
        self.printed = now
        line = tqdm.format_meter(
            done,
            self.total,
            now - self.started,
            prefix=self.label,
            unit=self.unit,
            postfix=", ".join(f"{key}={value}" for key, value in figures.items()),
            ncols=110,
        )
        print(line, file=self.console, flush=True)

    def _note(self, path: Path, done: int, seconds: float, figures: dict[str, float | str]) -> None:
        """Replace the file as a whole: whoever reads it may do so at any moment."""
        content = {
            "pid": os.getpid(),
            "label": self.label,
            "done": done,
            "total": self.total,
            "unit": self.unit,
            "seconds": round(seconds, 1),
            "figures": figures,
        }
        draft = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # no work fails because nobody can watch it
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(content), encoding="utf-8")
            draft.replace(path)


def stage_of(command: Sequence[str]) -> str:
    """The stage that a process runs (`train@NAME`), by its command line; empty for any other."""
    if len(command) < 4 or command[1] != "-m" or not command[2].startswith("stages."):
        return ""
    return f"{command[2].removeprefix('stages.')}@{command[3]}"


@contextmanager
def followed(follower: Callable[[int, int | None], None]) -> Iterator[None]:
    """Tell `follower` how many units of how many are done meanwhile, and print no line."""
    before, Progress.follower = Progress.follower, follower
    try:
        yield
    finally:
        Progress.follower = before


def tracked(
    items: Iterable[T], label: str, total: int | None = None, *, unit: str = "record"
) -> Iterator[T]:
    """Pass items on and show how many went by; of a single one there is nothing to show."""
    if total == 1:
        yield from items
        return
    progress = Progress(label, total, unit)
    for done, item in enumerate(items, start=1):
        yield item
        progress.at(done)
