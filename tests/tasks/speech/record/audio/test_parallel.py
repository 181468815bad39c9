import os
from pathlib import Path

import pytest

from wxb.core.progress import Progress
from wxb.tasks.speech.record.audio import parallel

ROOT = Path(__file__).parents[5]


def squared(value):
    return value * value, os.getpid()


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.slow
def test_many_jobs_are_done_in_order_by_other_processes(monkeypatch, count):
    monkeypatch.setattr(parallel, "MAX_SERIAL", 10)
    monkeypatch.setattr(parallel, "CHUNK", 4)
    monkeypatch.setattr(parallel, "MAX_CHUNKS", 2)
    monkeypatch.syspath_prepend(ROOT)  # new processes look for `squared` there
    monkeypatch.setattr(parallel, "_pool", parallel._pool.__wrapped__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    results = [*parallel.map_parallel(squared, range(count), "test")]
    assert [value for value, _ in results] == [n * n for n in range(count)]
    assert (os.getpid() in {process for _, process in results}) == (count == 3)


def test_progress_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(Progress, "console", __import__("sys").stderr)
    list(parallel.map_parallel(squared, range(5), "tokenize@test"))
    assert "tokenize@test: 100%" in capsys.readouterr().err
