"""A run as it is drawn in a terminal of 80 columns, and told in lines elsewhere."""

import io
import shutil
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from tests.commands import Terminal, wxb
from wxb.cli import watch
from wxb.core.errors import WxbError
from wxb.project.watching import Running, State

ROOT = Path(__file__).parents[2]
LONG = "train@ner-decoder-bidirectional-pretrained"
WAITING = [f"evaluate@experiment-{number}" for number in range(20)]
FIGURES = {"loss": "0.123", "valid_f1": "0.721"}
TRAINING = Running(LONG, LONG, 600, 1200, "step", 90.0, FIGURES, epochs=4)
READING = Running("download@pii", "download@pii", 70, None, "record", 2.0)
STATE = State([TRAINING, READING], WAITING, [], ["tokenize@a"])


def shown(state, width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(watch.drawn(state))
    return console.file.getvalue().splitlines()


def test_two_jobs_fit_a_terminal_of_80_columns():
    told = shown(STATE)
    assert all(len(line) <= 80 for line in told)
    assert len(told) < 12
    text = "\n".join(told)
    assert told[0] == "1 of 23 stages done, 2 running, 20 waiting"
    for part in ("train@ner-decoder-bidirectional", "50%", "1 min 30 s left", "epoch 3 of 4"):
        assert part in text
    for part in ("step 600 of 1,200", "loss 0.123", "valid f1 0.721", "record 70"):
        assert part in text
    assert "evaluate@experiment-7 and 12 more" in " ".join(text.split())


def test_a_stage_that_stopped_is_told_with_its_log():
    told = "\n".join(shown(State([], ["evaluate@a"], ["train@a"], [])))
    assert "1 stopped" in told
    assert "logs/train@a.log says why" in told


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (State([], [], [], []), "every stage is up to date"),
        (State([], [], [], ["train@a"]), "all done: 1 stage"),
        (State([], ["a", "b"], [], []), "0 of 2 stages done, 0 running, 2 waiting; nothing runs"),
    ],
)
def test_the_headline_says_where_things_stand(state, told):
    assert watch.headline(state).startswith(told)


def test_what_comes_after_training_is_told_by_its_own_name():
    one = Running("train@a", "train@a: calibrate", 1, 3, "batch", epochs=4)
    assert watch.figures(one) == "calibrate, batch 1 of 3"


def test_lines_tell_what_changes_and_not_the_same_again():
    begun = State([TRAINING], ["evaluate@a"], [], [])
    later = State([TRAINING._replace(done=700)], ["evaluate@a"], [], [])
    over = State([], [], [], [LONG, "evaluate@a"])
    states = [State([], [LONG, "evaluate@a"], [], []), begun, later, over]
    told = [line.partition(" ")[2] for line in watch.lines(states)]
    assert told == [
        "0 of 2 stages done, 0 running, 2 waiting; nothing runs yet",
        "0 of 2 stages done, 1 running, 1 waiting",
        f"{LONG}: begins",
        f"{LONG}: 50%, epoch 3 of 4, step 600 of 1,200, loss 0.123, valid f1 0.721, "
        "1 min 30 s left",
        "all done: 2 stages",
        f"{LONG}: done",
        "evaluate@a: done",
    ]


def test_a_study_that_is_not_there_is_told():
    with pytest.raises(WxbError, match="no study or lesson 'nerr'; did you mean 'ner'"):
        watch.watch("nerr")


# A run that ends by itself where it is asked to, as Snakemake does.
RUN = """
import signal, sys, time
print("begun", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("ended well", file=sys.stderr)
    sys.exit(7)
"""
MAIN = "from wxb.cli.app import main; main()"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with parameters alone: DVC knows of no stage in it."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def test_without_a_terminal_a_run_that_is_begun_speaks_for_itself(folder):
    code = "import sys; print('said', sys.argv[1:]); sys.exit(3)"
    told = wxb(
        "watch",
        "ner",
        "--",
        sys.executable,
        "-c",
        code,
        "-n",
        path=[ROOT],
    )
    assert (told.returncode, told.stdout) == (3, "said ['-n']\n")


def test_a_run_that_cannot_begin_is_told(folder):
    told = wxb("watch", "ner", "--", "no-such-program", path=[ROOT])
    assert told.returncode == 1
    assert "cannot run no-such-program: No such file" in told.stderr


def test_ctrl_c_ends_the_run_in_its_own_way_and_its_log_is_whole(folder):
    terminal = Terminal(sys.executable, "-c", MAIN, "watch", "ner", "--", sys.executable, "-c", RUN)
    try:
        terminal.wait_for("\x1b[?25l")  # the cursor is hidden as drawing begins
        while not Path("logs/run.log").read_text():
            time.sleep(0.1)
        terminal.wait_for("logs/run.log", typing="\x03")
        assert terminal.process.wait(30) == 7
    finally:
        terminal.close()
    assert Path("logs/run.log").read_text() == "begun\nended well\n"
