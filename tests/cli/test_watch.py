"""Live progress of a run: a table in a terminal of 80 columns, else lines."""

import io
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from tests.commands import Terminal, wxb
from wxb.cli import watch
from wxb.core.errors import WxbError
from wxb.project.watching import Running, State

ROOT = Path(__file__).parents[2]
LONG = "train@ner-decoder-bidirectional-pretrained"
WAITING = [f"evaluate@experiment-{number}" for number in range(20)]
METRICS = {"loss": "0.123", "valid_f1": "0.721"}
TRAINING = Running(LONG, LONG, 600, 1200, "step", 90.0, METRICS, epochs=4)
READING = Running("download@pii", "download@pii", 70, None, "record", 2.0)
STATE = State([TRAINING, READING], WAITING, [], ["tokenize@a"])


def shown(state, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(watch.render_state(state))
    return console.file.getvalue().splitlines()


def test_two_jobs_fit_a_terminal_of_80_columns():
    lines = shown(STATE)
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) < 12
    text = "\n".join(lines)
    assert lines[0] == "1 of 23 stages done, 2 running, 20 waiting"
    for part in ("train@ner-decoder-bidirectional", "50%", "1 min 30 s left", "epoch 3 of 4"):
        assert part in text
    for part in ("step 600 of 1,200", "loss 0.123", "valid f1 0.721", "record 70"):
        assert part in text
    assert "evaluate@experiment-7 and 12 more" in " ".join(text.split())


def test_a_failed_stage_and_its_cause_are_last(folder):
    Path("logs").mkdir()
    Path("logs/train@a.log").write_text("step 3\ntrain@a: loss is not finite\n\n")
    lines = shown(State([], ["evaluate@a"], ["train@a"], [], elapsed=65.0, seconds_left=600.0))
    assert "1 failed" in lines[0]
    assert lines[1] == "1 min 05 s elapsed, 10 min 00 s left"
    assert lines[-1] == "failed: train@a: loss is not finite (logs/train@a.log)"
    Path("logs/train@a.log").write_text("")
    assert "it may have been killed" in " ".join(shown(State([], [], ["train@a"], [])))


def test_the_scores_of_evaluated_experiments_are_shown(folder):
    metrics = Path("reports/metrics/ner/ner-encoder.json")
    metrics.parent.mkdir(parents=True)
    metrics.write_text('{"f1": 0.8531, "f1_low": 0.8, "f1_high": 0.9, "loss": 1.0}')
    state = State([], [], [], ["train@ner-encoder", "evaluate@ner-encoder"], ["report@ner"])
    assert "f1: ner-encoder 0.853" in shown(state)
    assert shown(state)[0] == "2 of 3 stages done, 0 running, 0 waiting, 1 saving"


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State([], [], [], []), "every stage is up to date"),
        (State([], [], [], ["train@a"]), "all done: 1 stage"),
        (State([], ["b"], [], []), "0 of 1 stages done, 0 running, 1 waiting; nothing runs yet"),
        (State([], ["b"], ["a"], []), "0 of 2 stages done, 0 running, 1 waiting, 1 failed"),
    ],
)
def test_the_headline_counts_stages(state, text):
    assert watch.headline(state) == text


def test_steps_after_training_are_shown_by_name():
    stage = Running("train@a", "train@a: calibrate", 1, 3, "batch", epochs=4)
    assert watch.describe_progress(stage) == "calibrate, batch 1 of 3"


def test_lines_show_changes_once():
    started = State([TRAINING], ["evaluate@a"], [], [])
    later = State([TRAINING._replace(done=700)], ["evaluate@a"], [], [])
    over = State([], [], [], [LONG, "evaluate@a"])
    states = [State([], [LONG, "evaluate@a"], [], []), started, later, over]
    lines = [line.partition(" ")[2] for line in watch.progress_lines(states)]
    assert lines == [
        "0 of 2 stages done, 0 running, 2 waiting; nothing runs yet",
        f"0 of 2 stages done, 1 running, 1 waiting: {LONG}",
        "all done: 2 stages",
    ]


def test_a_stage_without_progress_says_so():
    assert watch.describe_progress(Running("train@a")) == "no progress reported yet"
    assert watch.describe_progress(Running("train@a", "starting")) == "starting"
    assert not watch.times(State([], [], [], [], seconds_left=0.0))


def test_an_unknown_study_is_an_error():
    with pytest.raises(WxbError, match="no study or lesson 'nerr'; did you mean 'ner'"):
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
def folder(tmp_path, monkeypatch):
    """A folder with params.yaml alone, without stages of DVC."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def test_without_a_terminal_a_run_prints_its_own_output(folder):
    code = "import sys; print('arguments', sys.argv[1:]); sys.exit(3)"
    result = wxb(
        "watch",
        "ner",
        "--",
        sys.executable,
        "-c",
        code,
        "-n",
        path=[ROOT],
    )
    assert (result.returncode, result.stdout) == (3, "arguments ['-n']\n")


@pytest.mark.parametrize("before", [[], ["--once"]])
def test_a_command_without_a_study_runs_all_studies(folder, before):
    result = wxb("watch", *before, "--", sys.executable, "-c", "print('started')", path=[ROOT])
    assert (result.returncode, result.stdout) == (0, "started\n")


def test_a_run_that_cannot_start_is_an_error(folder):
    result = wxb("watch", "ner", "--", "no-such-program", path=[ROOT])
    assert result.returncode == 1
    assert "cannot run no-such-program: No such file" in result.stderr


def test_ctrl_c_ends_the_run_and_its_log_is_complete(folder):
    terminal = Terminal(sys.executable, "-c", MAIN, "watch", "ner", "--", sys.executable, "-c", RUN)
    try:
        terminal.wait_for("\x1b[?25l")  # Rich hides the cursor
        while not Path("logs/run.log").read_text():
            time.sleep(0.1)
        terminal.wait_for("logs/run.log", typing="\x03")
        assert terminal.process.wait(30) == 7
    finally:
        terminal.close()
    assert Path("logs/run.log").read_text() == "started\nended\n"


def test_another_watch_ends_with_the_run(monkeypatch):
    notes = iter([True, True, None])
    ends = []
    monkeypatch.setattr(watch.run_note, "read", lambda: next(notes))
    monkeypatch.setattr(watch.time, "sleep", lambda _: None)
    watcher = SimpleNamespace(refresh=lambda *, has_ended: ends.append(has_ended) or STATE)
    assert [*watch._states(watcher)] == [STATE, STATE]
    assert ends == [False, True]


def test_the_live_view_does_not_wrap_stdout():
    """Colorama would wrap Rich's stdout for ever, and its reset at exit be printed as text."""
    before = sys.stdout
    with watch._live(Console(file=io.StringIO(), force_terminal=True)):
        assert sys.stdout is before
