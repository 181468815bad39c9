"""What becomes of the stages of a run, looked at from beside it."""

import json
import os
from pathlib import Path

import pytest

from wxb.core import progress
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.project import dag, engines, staleness, watching
from wxb.project.engines import Stage
from wxb.project.watching import Running, State, Watch

HOME = Path(__file__).resolve().parents[2]
CHAIN = {"train@a": (), "train@b": (), "evaluate@a": ("train@a",), "report@ner": ("evaluate@a",)}


@pytest.fixture
def run(monkeypatch):
    """A run whose due and running stages are as they are set."""

    class Run:
        due: frozenset[str] | set[str] = frozenset(CHAIN)
        running: tuple[str, ...] = ()
        asked = 0

        @classmethod
        def plan(cls):
            cls.asked += 1
            return [Stage(name, upstream, name in cls.due) for name, upstream in CHAIN.items()]

    monkeypatch.setattr(watching, "PAUSE", 0.0)
    monkeypatch.setattr(watching, "SHARE", float("inf"))
    monkeypatch.setattr(engines, "plan", Run.plan)
    monkeypatch.setattr(staleness, "running", lambda: [*Run.running])
    return Run


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless told."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(watching.time, "monotonic", lambda: Clock.now)
    return Clock


def names(state: State):
    return [[one.stage for one in state.running], *map(list, state[1:])]


def test_a_stage_waits_runs_and_is_done(run, clock):
    watch = Watch(load(HOME / "params.yaml"))
    assert names(watch.look()) == [[], [*CHAIN], [], []]
    run.running = ("train@a", "train@b")
    assert names(watch.look()) == [["train@a", "train@b"], ["evaluate@a", "report@ner"], [], []]
    run.running, run.due = ("evaluate@a",), {"evaluate@a", "report@ner", "train@b"}
    state = watch.look()  # DVC may be saving what train@b has made
    assert names(state) == [["train@b", "evaluate@a"], ["report@ner"], [], ["train@a"]]
    assert state.running[0].label == "train@b: saving"
    clock.now += watching.SAVING + 1
    assert names(watch.look()) == [["evaluate@a"], ["report@ner"], ["train@b"], ["train@a"]]
    run.running, run.due = (), set()  # the rest needed no run: its inputs kept their bytes
    state = watch.look()
    assert names(state) == [[], [], [], [*CHAIN]]
    assert state.over


def test_dvc_is_asked_when_something_has_changed_only(run, tmp_path, monkeypatch):
    watch = Watch(load(HOME / "params.yaml"))
    monkeypatch.chdir(tmp_path)
    watch.look()
    watch.look()
    assert run.asked == 1
    run.running = ("train@a",)
    watch.look()
    assert run.asked == 2
    for number, file in enumerate((dag.LOCKFILE, dag.RWLOCK), start=3):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed")
        watch.look()
        watch.look()
        assert run.asked == number


def test_what_dvc_cannot_read_while_it_writes_is_asked_again(run, monkeypatch):
    watch = Watch(load(HOME / "params.yaml"))
    watch.look()

    def fail():
        raise engines.PlanError("DVC cannot read this project")

    monkeypatch.setattr(engines, "plan", fail)
    run.running = ("train@a",)
    assert names(watch.look())[0] == ["train@a"]
    with pytest.raises(WxbError, match="cannot read this project"):
        Watch(load(HOME / "params.yaml")).look()
    monkeypatch.setattr(engines, "plan", run.plan)
    run.due = {"report@ner"}
    assert names(watch.look())[1:] == [["report@ner"], [], ["train@b", "evaluate@a"]]


def test_a_study_has_the_stages_that_lead_to_it(run):
    state = Watch(load(HOME / "params.yaml"), "ner").look()
    assert state.waiting == ["train@a", "evaluate@a", "report@ner"]
    run.due = set()
    assert Watch(load(HOME / "params.yaml")).look().over


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """Notes of a stage that runs, as it would leave them."""
    monkeypatch.chdir(tmp_path)

    def note(stage, *, by=None, **content):
        lock, path = staleness.LOCKS / f"{stage}.lock", progress.NOTES / f"{stage}.json"
        for file in (lock, path):
            file.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text(str(os.getpid()))
        told = {"pid": by or os.getpid(), "label": stage, "done": 0, "total": None}
        path.write_text(json.dumps({**told, "unit": "step", "seconds": 0.0, **content}))

    return note


def test_progress_is_told_with_epoch_and_time_left(run, noted):
    params = load(HOME / "params.yaml")
    epochs = params.experiments["ner-encoder"].training.epochs
    noted("train@ner-encoder", done=600, total=1200, seconds=30.0, figures={"loss": "0.1"})
    told = watching._told("train@ner-encoder", params)
    assert (told.share, told.left, told.epochs) == (0.5, 30.0, epochs)
    assert told.epoch == 1 + epochs // 2
    assert told._replace(seconds=0.4).left is None  # too early to say
    noted("pretrain@encoder", done=1200, total=1200, seconds=30.0)
    told = watching._told("pretrain@encoder", params)
    assert (told.share, told.left, told.epoch) == (1.0, 0.0, None)


def test_the_last_step_is_of_the_last_epoch():
    assert Running("train@a", "train@a", 9, 9, "step", epochs=3).epoch == 3
    assert Running("train@a", "train@a (seed 2)", 0, 9, "step", epochs=3).epoch == 1
    assert Running("train@a", "train@a: calibrate", 9, 9, "batch", epochs=3).epoch is None


def test_the_note_of_an_earlier_run_tells_nothing(run, noted):
    params = load(HOME / "params.yaml")
    noted("train@ner-encoder", by=-1, done=600, total=1200)
    assert watching._told("train@ner-encoder", params) == Running("train@ner-encoder")
    assert watching._told("train@never", params) == Running("train@never")


def test_a_stage_without_a_total_has_no_share():
    told = Running("download@pii", "download@pii", 5, None, "record", 2.0)
    assert (told.share, told.left, told.epoch) == (None, None, None)
