"""Live progress of a run: a table in a terminal of 80 columns."""

import io
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from tests import demo
from tests.commands import Terminal, wxb
from tests.project_copy import ROOT
from wxb.cli import watch
from wxb.core.errors import WxbError
from wxb.project.watching import Running, State

LONG = "train@ner-decoder-bidirectional-pretrained"
WAITING = [f"evaluate@experiment-{number}" for number in range(20)]
METRICS = {"loss": "0.123", "valid_f1": "0.721"}
TRAINING = Running(LONG, LONG, 600, 1200, "step", 90.0, METRICS, epochs=4)
READING = Running("download@pii", "download@pii", 70, None, "record", 2.0)


def shown(state):
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    console.print(watch.render_state(state))
    return console.file.getvalue().splitlines()


def test_two_jobs_fit_a_terminal_of_80_columns():
    lines = shown(State([TRAINING, READING], WAITING, [], ["tokenize@a"], 65.0))
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) < 12
    text = " ".join(" ".join(lines).split())
    for part in ("2 running, 20 waiting, 1 done; 1 min 05 s", "50%", "1 min 30 s"):
        assert part in text
    for part in ("train@ner-decoder-bidirectional", "epoch 3 of 4", "step 600 of 1,200"):
        assert part in text
    for part in ("loss 0.123", "valid f1 0.721", "record 70", "experiment-7 and 12 more"):
        assert part in text


def test_a_failed_stage_and_its_cause_are_last(folder):
    Path("logs").mkdir()
    Path("logs/train@a.log").write_text("step 3\ntrain@a: loss is not finite\n\n")
    lines = shown(State([], ["evaluate@a"], ["train@a"], []))
    assert "1 failed" in lines[0]
    assert lines[-1] == "failed: train@a: loss is not finite (logs/train@a.log)"
    Path("logs/train@a.log").write_text("")
    assert "killed" in " ".join(shown(State([], [], ["train@a"], [])))


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Running("train@a"), "no progress reported yet"),
        (Running("train@a", "train@a", 9, 9, "step", epochs=3), "epoch 3 of 3, step 9 of 9"),
        (Running("a", "a (seed 2)", 0, 9, "step", epochs=3), "epoch 1 of 3, step 0 of 9"),
        (Running("a", "a: calibrate", 1, 3, "batch", epochs=4), "calibrate, batch 1 of 3"),
    ],
)
def test_progress_has_the_epoch_or_the_name_of_the_step(stage, text):
    assert watch.describe_progress(stage) == text


def test_an_unknown_study_is_an_error():
    with pytest.raises(WxbError, match="did you mean 'ner'"):
        watch.watch("nerr")


# A run that ends after SIGINT, as Snakemake does.
RUN = """
import signal, sys, time
try:
    print("started", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ended", file=sys.stderr)
    sys.exit(7)
"""
MAIN = "from wxb.cli.app import main; main()"


@pytest.fixture
def folder(cwd, monkeypatch):
    """A folder with params.yaml alone, without stages of DVC."""
    demo.write(cwd)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_without_a_terminal_a_run_prints_its_own_output(folder):
    code = "import sys; print('arguments', sys.argv[1:]); sys.exit(3)"
    result = wxb("watch", "ner", "--", sys.executable, "-c", code, "-n", path=[ROOT])
    assert (result.returncode, result.stdout) == (3, "arguments ['-n']\n")
    result = wxb("watch", "ner", "--", "no-such-program", path=[ROOT])
    assert (result.returncode, "no-such-program" in result.stderr) == (1, True)


def test_ctrl_c_ends_the_run_and_its_log_is_complete(folder):
    terminal = Terminal(sys.executable, "-c", MAIN, "watch", "ner", "--", sys.executable, "-c", RUN)
    try:
        terminal.wait_for("\x1b[?25l")  # Rich hides the cursor
        while "\n" not in Path("logs/run.log").read_text():
            time.sleep(0.1)
        terminal.wait_for("logs/run.log", typing="\x03")
        assert terminal.process.wait(30) == 7
    finally:
        terminal.close()
    assert Path("logs/run.log").read_text() == "started\nended\n"


def test_a_watch_ends_when_nothing_has_run_for_a_while(monkeypatch):
    clock = iter([0.0, 29.0, 100.0, 129.0, 131.0, 0.0])
    idle, active = State([], ["b"], [], []), State([TRAINING], ["b"], [], [])
    states = iter([idle, idle, active, idle, idle, idle])
    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=clock.__next__, sleep=id))
    watcher = SimpleNamespace(refresh=states.__next__)
    assert [*watch._states(watcher)] == [idle, idle, active, idle, idle]


def test_the_live_view_does_not_wrap_stdout():
    """Colorama would wrap Rich's stdout for ever, and its reset at exit be printed as text."""
    before = sys.stdout
    with watch._live(Console(file=io.StringIO(), force_terminal=True)):
        assert sys.stdout is before
