import os
import signal

from tests.runtime.toy import events, python, started, waits_for


def test_processes_of_a_stage_take_turns(project):
    with started(project, "toy.py", "slow") as first:
        events(project, 1)
        log = project / "logs/toy@slow.log"
        opened = log.stat().st_mtime_ns
        with started(project, "toy.py", "slow") as second:
            assert second.stderr.readline() == waits_for(first)
            assert python(project, "toy.py", "good").returncode == 0, "another stage need not wait"
            assert events(project, 1) == ["begin"]
            assert log.stat().st_mtime_ns == opened
            (project / "go").touch()
            assert first.wait() == second.wait() == 0
    assert events(project, 4) == ["begin", "end", "begin", "end"]


def test_a_stage_goes_on_when_the_other_is_killed(project):
    with started(project, "toy.py", "slow") as first:
        events(project, 1)
        with started(project, "toy.py", "slow") as second:
            assert second.stderr.readline() == waits_for(first)
            first.kill()
            assert events(project, 2) == ["begin", "begin"]
            (project / "go").touch()
            assert second.wait() == 0


def test_what_a_killed_stage_has_started_keeps_none_waiting(project):
    with started(project, "toy.py", "parent") as killed:
        assert killed.wait() == -signal.SIGKILL
    children = [int(pid) for pid in (project / "children").read_text().split()]
    try:
        again = python(project, "toy.py", "parent")
        assert again.returncode == 0
        assert "waiting" not in again.stderr
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)  # fails if it has ended, and the test meant nothing
