"""Progress of long work, printed as whole lines, so that several jobs can share a terminal.

Pipeline stages also write their progress to a file, which `wxb watch` reads.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_WRITES = 1.0
PROGRESS_FOLDER = Path(".wxb/progress")


class Progress:
    """Prints a line such as `train@NAME:  40%|████    | 80/200 [...]` every few seconds.

    `console` is the stream of all instances. A stage redirects standard error to its log, and sets
    `console` to the terminal and `stage` to its name.
    """

    stage: str = ""
    console: TextIO = sys.stderr
    callback: Callable[[int, int | None], None] | None = None

    def __init__(self, caption: str, total: int | None, unit: str = "step", first: int = 0) -> None:
        """`first` of the `total` were done by an interrupted run."""
        self.caption, self.total, self.unit, self.first = caption, total, unit, first
        self.start = self.last_line = time.monotonic()
        self.last_write = self.start - SECONDS_BETWEEN_WRITES

    def update(self, done: int, **metrics: float | str) -> None:
        """Print at intervals and at `total`, and write the stage's file at intervals.

        Does neither if `total` is 1. If `callback` is set, always calls that instead.
        """
        if Progress.callback:
            Progress.callback(done, self.total)
            return
        if self.total == 1:
            return
        now = time.monotonic()
        if self.stage and now - self.last_write >= SECONDS_BETWEEN_WRITES:
            self.last_write = now
            self._write(done, now - self.start, metrics)
        if done != self.total and now - self.last_line < SECONDS_BETWEEN_LINES:
            return
        self.last_line = now
        line = tqdm.format_meter(
            done,
            self.total,
            now - self.start,
            initial=self.first,
            prefix=self.caption,
            unit=self.unit,
            postfix=", ".join(f"{key}={value}" for key, value in metrics.items()),
            ncols=110,
        )
        print(line, file=self.console, flush=True)

    def _write(self, done: int, seconds: float, metrics: dict[str, float | str]) -> None:
        """Replace the progress file atomically, as readers poll it; ignores OSError."""
        path = PROGRESS_FOLDER / f"{self.stage}.json"
        content = {"pid": os.getpid(), "caption": self.caption, "unit": self.unit, "done": done}
        content |= {"first": self.first, "total": self.total, "seconds": round(seconds, 1)}
        content["metrics"] = metrics
        draft = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # a progress file that cannot be written must not stop the work
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(content), encoding="utf-8")
            draft.replace(path)


@contextmanager
def progress_callback(callback: Callable[[int, int | None], None]) -> Iterator[None]:
    """Call `callback(done, total)` at each progress update instead of printing a line."""
    previous, Progress.callback = Progress.callback, callback
    try:
        yield
    finally:
        Progress.callback = previous


def track(
    items: Iterable[T], caption: str, total: int | None = None, *, unit: str = "record"
) -> Iterator[T]:
    """Yield the items and print progress: counts if `total` is None, nothing if it is 1."""
    progress = Progress(caption, total, unit)
    for done, item in enumerate(items, start=1):
        yield item
        progress.update(done)
