import os
import shutil
import signal

import pytest

from tests.runtime.toy import ROOT, events, python, started


def test_an_interruption_is_told_in_a_line(project):
    stopped = python(project, "toy.py", "stopped")
    assert stopped.returncode == 130
    *_, last = stopped.stderr.splitlines()
    assert last == "toy@stopped: interrupted; the same command begins it again"
    log = (project / "logs/toy@stopped.log").read_text()
    assert log.endswith("\ninterrupted\n")
    assert "Traceback" not in log + stopped.stderr
    assert sorted(p.name for p in project.iterdir()) == [".wxb", "logs", "params.yaml", "toy.py"]

    (project / ".wxb/checkpoints/toy@stopped-01ab/checkpoint-20").mkdir(parents=True)
    told = python(project, "toy.py", "stopped").stderr
    assert "interrupted; the same command goes on from its last checkpoint" in told


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_group_ends_a_stage_without_a_trace(project, number, code):
    with started(project, "toy.py", "slow", start_new_session=True) as stage:
        events(project, 1)
        os.killpg(stage.pid, number)
        assert stage.wait() == code
        told = stage.stderr.read()
    assert told == "toy@slow: interrupted; the same command begins it again\n"


def test_a_stage_can_be_stopped_while_it_imports(project):
    (project / "stages").mkdir()
    shutil.copy(ROOT / "stages/__init__.py", project / "stages")
    code = "import pathlib, time; pathlib.Path('events').write_text('begin'); time.sleep(60)"
    (project / "stages/heavy.py").write_text(code)
    with started(project, "-m", "stages.heavy", "one") as stage:
        events(project, 1)
        stage.send_signal(signal.SIGINT)
        assert stage.wait() == 130
        told = stage.stderr.read()
    assert told == "heavy@one: interrupted; the same command begins it again\n"


def test_a_stage_that_waits_can_be_stopped(project):
    with started(project, "toy.py", "slow"):
        events(project, 1)
        with started(project, "toy.py", "slow") as second:
            assert "waiting" in second.stderr.readline()
            second.send_signal(signal.SIGINT)
            assert second.wait() == 130
            assert second.stderr.read() == ""
    assert events(project, 1) == ["begin"]
