import os
from pathlib import Path

import pytest

from wxb.core.progress import Progress
from wxb.tasks.speech.record.audio import parallel

ROOT = Path(__file__).parents[5]


def squared(number):
    return number * number, os.getpid()


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.slow
def test_all_is_done_in_order_by_several_where_there_is_much(monkeypatch, count):
    monkeypatch.setattr(parallel, "FEW", 10)
    monkeypatch.setattr(parallel, "CHUNK", 4)
    monkeypatch.setattr(parallel, "HELD", 2)
    monkeypatch.syspath_prepend(ROOT)  # new processes look for `squared` there
    monkeypatch.setattr(parallel, "_pool", parallel._pool.__wrapped__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    done = [*parallel.each(squared, range(count), "test")]
    assert [value for value, _ in done] == [n * n for n in range(count)]
    assert (os.getpid() in {process for _, process in done}) == (count == 3)


def test_it_tells_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(Progress, "console", __import__("sys").stderr)
    list(parallel.each(squared, range(5), "hear@test"))
    assert "hear@test: 100%" in capsys.readouterr().err
