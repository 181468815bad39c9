"""The state of a run: which stages run, wait, failed and are done."""

import os
import time

import pytest

from tests import demo
from tests.repository import write
from wxb.core import paths, progress
from wxb.core.errors import WxbError
from wxb.project import engines, watching
from wxb.project.engines import Stage
from wxb.project.status import LOCKFILE
from wxb.project.watching import Running, Watch
from wxb.runtime import locks

CHAIN = {"train@a": (), "train@b": (), "evaluate@a": ("train@a",), "report@ner": ("evaluate@a",)}
PARAMS = demo.params()


@pytest.fixture
def run(cwd, monkeypatch):
    """A run with settable due and running stages; each plan finds another dvc.lock."""

    class Run:
        due: frozenset[str] | set[str] = frozenset(CHAIN)
        running: tuple[str, ...] = ()
        plans = 0

        @classmethod
        def plan(cls):
            cls.plans += 1
            return [Stage(name, upstream, name in cls.due) for name, upstream in CHAIN.items()]

        @staticmethod
        def finish(stage):
            cost = write(paths.cost(*stage.split("@")), "")
            later = time.time() + 1  # the clock of files is behind by up to a tick of the kernel
            os.utime(cost, (later, later))

    monkeypatch.setattr(watching, "PAUSE", 0.0)
    monkeypatch.setattr(engines, "plan", Run.plan)
    monkeypatch.setattr(locks, "running_stages", lambda: Run.running)
    return Run


def names(state):
    return [[running.stage for running in state.running], *map(list, state[1:4])]


def test_a_stage_waits_runs_and_is_done_or_failed(run):
    watch = Watch(PARAMS)
    assert names(watch.refresh()) == [[], [*CHAIN], [], []]
    run.running = ("train@a", "train@b")
    assert names(watch.refresh()) == [["train@a", "train@b"], ["evaluate@a", "report@ner"], [], []]
    run.running = ("evaluate@a",)
    run.finish("train@a")  # train@b ended without its cost
    assert names(watch.refresh()) == [["evaluate@a"], ["report@ner"], ["train@b"], ["train@a"]]
    run.running, run.due = (), set()  # report@ner need not run: its inputs kept their bytes
    state = watch.refresh(has_ended=True)
    assert names(state) == [[], [], [], [*CHAIN]]
    assert state.is_complete


def test_the_run_is_planned_again_only_after_changes(run, monkeypatch):
    watch = Watch(PARAMS)
    watch.refresh()
    watch.refresh()
    assert run.plans == 1
    LOCKFILE.write_text("changed")
    watch.refresh()
    assert run.plans == 2
    monkeypatch.setattr(watching, "PAUSE", 1000.0)
    LOCKFILE.write_text("changed again")
    watch.refresh()
    assert run.plans == 2
    watch.refresh(has_ended=True)
    assert run.plans == 3


def test_a_plan_that_fails_while_dvc_writes_is_retried(run, monkeypatch):
    def fail():
        raise engines.PlanError("DVC cannot read this project")

    watch = Watch(PARAMS)
    watch.refresh()
    LOCKFILE.write_text("{")
    with monkeypatch.context() as patch:
        patch.setattr(engines, "plan", fail)
        assert len(watch.refresh().waiting) == 4
        with pytest.raises(WxbError, match="cannot read"):
            Watch(PARAMS).refresh()
    run.due = {"report@ner"}
    assert watch.refresh().waiting == ["report@ner"]


def test_a_study_has_the_stages_that_its_page_depends_on(run):
    assert Watch(PARAMS, "ner").refresh().waiting == ["train@a", "evaluate@a", "report@ner"]


def test_progress_is_that_of_the_running_process(run):
    stage = "train@ner-encoder"
    lock, path = locks.LOCKS / f"{stage}.lock", progress.PROGRESS_FOLDER / f"{stage}.json"
    note = {"caption": stage, "done": 600, "total": 1200, "unit": "step", "seconds": 30.0}
    write(path, {"pid": os.getpid(), **note})
    assert watching._progress(stage, PARAMS) == Running(stage)
    write(lock, str(os.getpid()))
    running = watching._progress(stage, PARAMS)
    epochs = PARAMS.experiments["ner-encoder"].training.epochs
    assert running == Running(stage, **note, epochs=epochs)
    assert running.seconds_left == 30.0
    assert running._replace(first=300).seconds_left == 60.0  # 300 of an interrupted run
    assert running._replace(seconds=0.4).seconds_left is None  # too early to say
    assert running._replace(total=None).seconds_left is None
    lock.write_text("1")
    assert watching._progress(stage, PARAMS) == Running(stage)
