import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.runtime.toy import ROOT, events, python, start
from wxb.runtime.signals import INTERRUPTED


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_group_ends_a_stage_without_a_trace(project, signal_number, code):
    with start(project, "toy.py", "slow", start_new_session=True) as stage:
        events(project, 1)
        os.killpg(stage.pid, signal_number)
        assert stage.wait() == code
        output = stage.stderr.read()
    assert output == f"toy@slow: {INTERRUPTED}\n"
    assert (project / "logs/toy@slow.log").read_text() == "interrupted\n"


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_module_that_catches_an_interrupt_on_import_does_not_lose_it(
    project, signal_number, code
):
    catch = f"try: os.kill(os.getpid(), {int(signal_number)}); time.sleep(0.01)\nexcept: pass\n"
    (project / "careless.py").write_text(f"import os, time\n{catch}")
    (project / "stages").mkdir()
    shutil.copy(ROOT / "stages/__init__.py", project / "stages")
    (project / "toy.py").rename(project / "stages/toy.py")
    result = python(project, "-m", "stages.toy", "import")
    assert (result.returncode, result.stderr) == (code, f"toy@import: {INTERRUPTED}\n")


def test_a_stage_can_be_stopped_while_it_imports(project):
    (project / "stages").mkdir()
    shutil.copy(ROOT / "stages/__init__.py", project / "stages")
    code = "import pathlib, time; pathlib.Path('events').write_text('begin'); time.sleep(60)"
    (project / "stages/heavy.py").write_text(code)
    with start(project, "-m", "stages.heavy", "one") as stage:
        events(project, 1)
        stage.send_signal(signal.SIGINT)
        assert stage.wait() == 130
        output = stage.stderr.read()
    assert output == f"heavy@one: {INTERRUPTED}\n"


def test_wxb_can_be_stopped_while_it_imports():
    code = "import sys; sys.argv[0] = 'bin/wxb'; import wxb.cli, os; os.kill(os.getpid(), 2)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (130, "wxb: interrupted\n")
