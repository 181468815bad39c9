"""Progress of long work, as whole lines: readable on a terminal that several jobs share."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 5.0


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

    def at(self, done: int, **figures: float | str) -> None:
        """Tell that `done` units are finished; the last one is always printed."""
        if Progress.follower:
            Progress.follower(done, self.total)
            return
        now = time.monotonic()
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
