"""The states of the stages of a run."""

import json
import os
from pathlib import Path

import pytest

from tests.commands import sleeping_process
from wxb.core import paths, progress
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.project import dag, engines, staleness, watching
from wxb.project.engines import Stage
from wxb.project.watching import Running, State, Watch
from wxb.runtime import engine, locks, run_note

HOME = Path(__file__).resolve().parents[2]
CHAIN = {"train@a": (), "train@b": (), "evaluate@a": ("train@a",), "report@ner": ("evaluate@a",)}


@pytest.fixture
def run(monkeypatch):
    """A run with settable due and running stages."""

    class Run:
        due: frozenset[str] | set[str] = frozenset(CHAIN)
        running: tuple[str, ...] = ()
        plans = 0

        @classmethod
        def plan(cls):
            cls.plans += 1
            return [Stage(name, upstream, name in cls.due) for name, upstream in CHAIN.items()]

    monkeypatch.setattr(watching, "PAUSE", 0.0)
    monkeypatch.setattr(watching, "SHARE", float("inf"))
    monkeypatch.setattr(engines, "plan", Run.plan)
    monkeypatch.setattr(staleness, "running", lambda: [*Run.running])
    return Run


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(watching.time, "monotonic", lambda: Clock.now)
    return Clock


def names(state: State):
    return [[running.stage for running in state.running], *map(list, state[1:4])]


def test_a_stage_waits_runs_and_is_done(run, clock):
    watch = Watch(load(HOME / "params.yaml"))
    assert names(watch.refresh()) == [[], [*CHAIN], [], []]
    run.running = ("train@a", "train@b")
    assert names(watch.refresh()) == [["train@a", "train@b"], ["evaluate@a", "report@ner"], [], []]
    run.running, run.due = ("evaluate@a",), {"evaluate@a", "report@ner", "train@b"}
    state = watch.refresh()  # DVC may be saving the outputs of train@b
    assert names(state) == [["evaluate@a"], ["report@ner"], [], ["train@a"]]
    assert (state.saving, state.total) == (["train@b"], 4)
    assert names(watch.refresh(has_ended=True))[2] == ["train@b"]
    clock.now += watching.SAVING + 1
    assert names(watch.refresh()) == [["evaluate@a"], ["report@ner"], ["train@b"], ["train@a"]]
    run.running, run.due = (), set()  # the others need not run: their inputs kept their bytes
    state = watch.refresh()
    assert names(state) == [[], [], [], [*CHAIN]]
    assert state.is_over


def test_the_run_is_planned_again_only_after_changes(run, tmp_path, monkeypatch):
    watch = Watch(load(HOME / "params.yaml"))
    monkeypatch.chdir(tmp_path)
    watch.refresh()
    watch.refresh()
    assert run.plans == 1
    run.running = ("train@a",)
    watch.refresh()
    assert run.plans == 2
    for plans, file in enumerate((dag.LOCKFILE, engine.RWLOCK), start=3):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed")
        watch.refresh()
        watch.refresh()
        assert run.plans == plans


def test_a_stage_that_ends_during_a_plan_is_not_running(run, monkeypatch):
    watch = Watch(load(HOME / "params.yaml"))
    watch.refresh()

    def plan():
        run.running = ("train@b",)
        return run.plan()

    monkeypatch.setattr(engines, "plan", plan)
    run.running = ("train@a",)
    state = watch.refresh()
    assert names(state) == [["train@b"], ["evaluate@a", "report@ner"], [], []]
    assert state.saving == ["train@a"]


def test_a_plan_that_fails_while_dvc_writes_is_retried(run, monkeypatch):
    watch = Watch(load(HOME / "params.yaml"))
    watch.refresh()

    def fail():
        raise engines.PlanError("DVC cannot read this project")

    monkeypatch.setattr(engines, "plan", fail)
    run.running = ("train@a",)
    assert names(watch.refresh())[0] == ["train@a"]
    with pytest.raises(WxbError, match="cannot read this project"):
        Watch(load(HOME / "params.yaml")).refresh()
    monkeypatch.setattr(engines, "plan", run.plan)
    run.due = {"report@ner"}
    assert names(watch.refresh())[1:] == [["report@ner"], [], ["train@b", "evaluate@a"]]


def test_a_study_has_the_stages_that_its_page_depends_on(run):
    state = Watch(load(HOME / "params.yaml"), "ner").refresh()
    assert state.waiting == ["train@a", "evaluate@a", "report@ner"]
    run.due = set()
    assert Watch(load(HOME / "params.yaml")).refresh().is_over


@pytest.fixture
def write_progress(tmp_path, monkeypatch):
    """A function that writes the lock and the progress of a running stage."""
    monkeypatch.chdir(tmp_path)

    def write(stage, *, pid=None, **content):
        lock, path = locks.LOCKS / f"{stage}.lock", progress.PROGRESS_FOLDER / f"{stage}.json"
        for file in (lock, path):
            file.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text(str(os.getpid()))
        note = {"pid": pid or os.getpid(), "label": stage, "done": 0, "total": None}
        path.write_text(json.dumps({**note, "unit": "step", "seconds": 0.0, **content}))

    return write


def test_progress_has_epoch_and_time_left(run, write_progress):
    params = load(HOME / "params.yaml")
    epochs = params.experiments["ner-encoder"].training.epochs
    write_progress("train@ner-encoder", done=600, total=1200, seconds=30.0, metrics={"loss": "0.1"})
    running = watching._progress("train@ner-encoder", params)
    assert (running.share, running.seconds_left, running.epochs) == (0.5, 30.0, epochs)
    assert running.epoch == 1 + epochs // 2
    assert running._replace(seconds=0.4).seconds_left is None  # too early to say
    write_progress("pretrain@encoder", done=1200, total=1200, seconds=30.0)
    running = watching._progress("pretrain@encoder", params)
    assert (running.share, running.seconds_left, running.epoch) == (1.0, 0.0, None)


def test_the_last_step_is_of_the_last_epoch():
    assert Running("train@a", "train@a", 9, 9, "step", epochs=3).epoch == 3
    assert Running("train@a", "train@a (seed 2)", 0, 9, "step", epochs=3).epoch == 1
    assert Running("train@a", "train@a: calibrate", 9, 9, "batch", epochs=3).epoch is None


def test_progress_of_an_earlier_run_is_ignored(run, write_progress):
    params = load(HOME / "params.yaml")
    write_progress("train@ner-encoder", pid=-1, done=600, total=1200)
    assert watching._progress("train@ner-encoder", params) == Running("train@ner-encoder")
    assert watching._progress("train@never", params) == Running("train@never")


def test_a_stage_without_a_total_has_no_share():
    running = Running("download@pii", "download@pii", 5, None, "record", 2.0)
    assert (running.share, running.seconds_left, running.epoch) == (None, None, None)


def test_another_watcher_shows_the_same_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = load(HOME / "params.yaml")
    first = Watch(params, "ner")
    first.refresh()
    first.share()
    cost = paths.cost("train", "a")
    cost.parent.mkdir(parents=True)
    cost.write_text('{"seconds": 10.0}')
    run.running = ("evaluate@a",)  # no plan since: train@a is done, as it has a cost
    for watch in (first, Watch(params)):
        assert names(watch.refresh()) == [["evaluate@a"], ["report@ner"], [], ["train@a"]]
    run_note.PATH.write_text(run_note.PATH.read_text().replace(str(os.getpid()), "99999999"))
    assert run_note.read() is None


def test_a_stage_whose_dvc_has_begun_is_starting(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    watch = Watch(load(HOME / "params.yaml"))
    watch.share()
    assert names(watch.refresh())[:2] == [[], [*CHAIN]]
    with sleeping_process(*engines.REPRO[1:], "train@b"), sleeping_process("train@a"):
        state = watch.refresh()
    assert state.running == [Running("train@b", "starting")]
    assert state.waiting == ["train@a", "evaluate@a", "report@ner"]


def test_the_time_left_counts_waiting_stages(run, write_progress):
    watch = Watch(load(HOME / "params.yaml"))
    run.running = ("train@a",)
    write_progress("train@a", done=1, total=3, seconds=10.0)
    assert watch.refresh().seconds_left == 20.0 + 30.0  # train@b as long as train@a
    watch.expected = {"train@a": 3.0, "train@b": 4.0}
    assert watch.refresh().seconds_left == 20.0 + 40.0  # on a machine ten times slower
    watch.expected = {}
    cost = paths.cost("train", "c")
    cost.parent.mkdir(parents=True)
    cost.write_text('{"seconds": 7.0}')
    assert watch.refresh().seconds_left == 20.0 + (30.0 + 7.0) / 2
    run.running = ("train@a", "train@b")
    assert watch.refresh().seconds_left == (20.0 + (30.0 + 7.0) / 2) / 2
