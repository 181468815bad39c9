import io
import json
import os

import pytest

from wxb.core import progress
from wxb.core.progress import Progress, followed, stage_of, tracked


@pytest.fixture
def console(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(Progress, "console", out)
    return out


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless told."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(progress.time, "monotonic", lambda: Clock.now)
    return Clock


def test_a_line_tells_label_share_counts_and_figures(console, clock):
    bar = Progress("train@a", 200)
    clock.now += 10
    bar.at(80, loss=0.31, rate="1e-3")
    (line,) = console.getvalue().splitlines()
    for part in ("train@a:", " 40%", "80/200", "8.00step/s", "loss=0.31, rate=1e-3"):
        assert part in line


def test_lines_keep_their_distance_but_the_last_is_always_printed(console, clock):
    bar = Progress("train@a", 100)
    for done in range(1, 101):
        clock.now += 0.2
        bar.at(done)
    counts = [line.split("| ")[1].split("/")[0] for line in console.getvalue().splitlines()]
    assert counts[-1] == "100"
    assert len(counts) in (4, 5)


def test_quick_work_prints_one_line(console, clock):
    bar = Progress("a", 3)
    for done in (1, 2, 3):
        bar.at(done)
    assert console.getvalue().count("\n") == 1


def test_lines_are_whole(console, clock):
    list(tracked("abc", "a", 3))
    assert console.getvalue().endswith("\n")
    assert "\r" not in console.getvalue()


def test_tracked_passes_items_on_lazily(console, clock):
    items = tracked(iter(range(10**9)), "a", 10**9)
    assert [next(items), next(items)] == [0, 1]


def test_an_unknown_total_is_counted_only(console, clock):
    for _ in tracked(range(2), "read", unit="line"):
        clock.now += 6
    lines = console.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1line", "2line"]
    assert "%" not in console.getvalue()


def test_a_single_item_is_no_progress(console, clock):
    assert list(tracked("a", "a", 1)) == ["a"]
    assert console.getvalue() == ""


def test_who_follows_is_told_of_every_step_in_place_of_lines(console, clock):
    steps = []
    with followed(lambda *step: steps.append(step)):
        list(tracked("abc", "a", 3))
    assert (steps, console.getvalue()) == ([(1, 3), (2, 3), (3, 3)], "")
    list(tracked("ab", "a", 2))
    assert console.getvalue().count("\n") == 1


def test_nothing_to_do_prints_nothing(console, clock):
    assert list(tracked([], "a", 0)) == []
    assert console.getvalue() == ""


@pytest.mark.parametrize(
    ("command", "stage"),
    [
        (["python", "-m", "stages.train", "ner-encoder"], "train@ner-encoder"),
        (["python", "-m", "pytest", "tests"], ""),
        (["python", "-m", "stages.train"], ""),
        (["wxb", "mask"], ""),
    ],
)
def test_a_stage_is_known_by_its_command(command, stage):
    assert stage_of(command) == stage


def test_a_stage_notes_how_far_it_is_and_nobody_else_does(console, clock, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Progress("elsewhere", 9).at(1)
    assert not progress.NOTES.exists()
    monkeypatch.setattr(progress.sys, "orig_argv", ["python", "-m", "stages.train", "a"])
    bar = Progress("train@a", 200)
    note = progress.NOTES / "train@a.json"
    for done, noted in ((1, 1), (2, 1), (3, 3)):  # at 0, 0.7 and 1.4 seconds
        bar.at(done, loss="0.310")
        assert json.loads(note.read_text())["done"] == noted
        clock.now += 0.7
    assert json.loads(note.read_text()) == {
        "pid": os.getpid(),
        "label": "train@a",
        "done": 3,
        "total": 200,
        "unit": "step",
        "seconds": 1.4,
        "figures": {"loss": "0.310"},
    }
    assert [*progress.NOTES.iterdir()] == [note]


def test_no_work_fails_because_it_cannot_be_noted(console, clock, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress.sys, "orig_argv", ["python", "-m", "stages.train", "a"])
    (tmp_path / ".wxb").write_text("a file")
    assert list(tracked("abc", "train@a", 3)) == [*"abc"]
