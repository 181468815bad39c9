import io
import json
import os

import pytest

from wxb.core import progress
from wxb.core.progress import Progress, progress_callback, track


@pytest.fixture
def console(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(Progress, "console", out)
    return out


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(progress.time, "monotonic", lambda: Clock.now)
    return Clock


def test_a_line_has_label_share_counts_and_metrics(console, clock):
    bar = Progress("train@a", 200)
    clock.now += 10
    bar.update(80, loss=0.31, rate="1e-3")
    (line,) = console.getvalue().splitlines()
    for part in ("train@a:", " 40%", "80/200", "8.00step/s", "loss=0.31, rate=1e-3"):
        assert part in line


def test_lines_are_printed_every_few_seconds_and_at_the_end(console, clock):
    bar = Progress("train@a", 100)
    for done in range(1, 101):
        clock.now += 0.2
        bar.update(done)
    counts = [line.split("| ")[1].split("/")[0] for line in console.getvalue().splitlines()]
    assert counts[-1] == "100"
    assert len(counts) in (4, 5)


def test_the_callback_gets_every_step_and_no_line_is_printed(console, clock):
    steps = []
    with progress_callback(lambda *step: steps.append(step)):
        list(track("abc", "a", 3))
        list(track("a", "a", 1))
    assert (steps, console.getvalue()) == ([(1, 3), (2, 3), (3, 3), (1, 1)], "")
    list(track("a", "a", 1))
    list(track("ab", "a", 2))
    assert console.getvalue().count("\n") == 1


def test_only_stages_write_their_progress_to_a_file(console, clock, cwd, monkeypatch):
    Progress("elsewhere", 9).update(1)
    assert not progress.PROGRESS_FOLDER.exists()
    monkeypatch.setattr(Progress, "stage", "train@a")
    bar = Progress("train@a", 200)
    file = progress.PROGRESS_FOLDER / "train@a.json"
    for done, written in ((1, 1), (2, 1), (3, 3)):  # at 0, 0.7 and 1.4 seconds
        bar.update(done, loss="0.310")
        assert json.loads(file.read_text())["done"] == written
        clock.now += 0.7
    assert json.loads(file.read_text()) == {
        "pid": os.getpid(),
        "caption": "train@a",
        "done": 3,
        "first": 0,
        "total": 200,
        "unit": "step",
        "seconds": 1.4,
        "metrics": {"loss": "0.310"},
    }
    assert [*progress.PROGRESS_FOLDER.iterdir()] == [file]


def test_a_progress_file_that_cannot_be_written_is_no_error(console, clock, cwd, monkeypatch):
    monkeypatch.setattr(Progress, "stage", "train@a")
    (cwd / ".wxb").write_text("a file")
    assert list(track("abc", "train@a", 3)) == [*"abc"]
