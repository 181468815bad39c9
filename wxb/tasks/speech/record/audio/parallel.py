"""Process many recordings in parallel, on all CPUs that this process may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import TypeVar

from wxb.core.progress import track

MAX_SERIAL = 200  # jobs, for which starting processes takes longer
CHUNK = 16  # jobs that a process gets at a time
MAX_CHUNKS = 64  # that are queued at a time

J = TypeVar("J")
R = TypeVar("R")


def map_parallel(work: Callable[[J], R], jobs: Sequence[J], label: str) -> Iterator[R]:
    """The result of `work` for each job, in order; shows progress.

    With several CPUs and more than MAX_SERIAL jobs, starts processes that live until this one ends.
    `work` and jobs must then be picklable. Only some results are in memory at a time.
    """
    yield from track(_results(work, jobs), label, len(jobs), unit="file")


def _results(work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
    processes = len(os.sched_getaffinity(0))
    if processes == 1 or len(jobs) <= MAX_SERIAL:
        yield from map(work, jobs)
        return
    queued = CHUNK * MAX_CHUNKS
    for start in range(0, len(jobs), queued):
        yield from _pool(processes).map(work, jobs[start : start + queued], chunksize=CHUNK)


@cache
def _pool(processes: int) -> ProcessPoolExecutor:
    """A pool that is kept until this process ends, since its processes take seconds to start."""
    # A forked process could inherit a lock that a thread of this process holds.
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
