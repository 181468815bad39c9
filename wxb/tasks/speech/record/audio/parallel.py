"""One thing done to many recordings, on as many CPUs as there are for this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import TypeVar

from wxb.core.progress import tracked

FEW = 200  # recordings, for which it is not worth while to start processes
CHUNK = 16  # recordings that a process is given at a time
HELD = 64  # chunks under way or waiting to be taken

J = TypeVar("J")
R = TypeVar("R")


def each(work: Callable[[J], R], jobs: Sequence[J], label: str) -> Iterator[R]:
    """What `work` gives for each job, in order; shows progress.

    Few results wait to be taken, however many jobs there are.
    """
    yield from tracked(_done(work, jobs), label, len(jobs), unit="file")


def _done(work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
    processes = len(os.sched_getaffinity(0))
    if processes == 1 or len(jobs) <= FEW:
        yield from map(work, jobs)
        return
    for start in range(0, len(jobs), CHUNK * HELD):
        yield from _pool(processes).map(work, jobs[start : start + CHUNK * HELD], chunksize=CHUNK)


@cache
def _pool(processes: int) -> ProcessPoolExecutor:
    """Processes that stay to the end of this one: they import much before they begin."""
    # A forked process could inherit a lock that a thread of this one holds.
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
