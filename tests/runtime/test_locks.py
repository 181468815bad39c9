import os
import signal

from tests.runtime.toy import events, python, start


def test_processes_of_a_stage_take_turns(project):
    with start(project, "toy.py", "slow") as first:
        events(project, 1)
        log = project / "logs/toy@slow.log"
        opened = log.stat().st_mtime_ns
        with start(project, "toy.py", "slow") as second:
            assert f"waiting for process {first.pid}," in second.stderr.readline()
            assert python(project, "toy.py", "good").returncode == 0, "another stage need not wait"
            assert events(project, 1) == ["begin"]
            assert log.stat().st_mtime_ns == opened
            (project / "go").touch()
            assert first.wait() == second.wait() == 0
    assert events(project, 4) == ["begin", "end", "begin", "end"]


def test_children_of_a_killed_stage_do_not_hold_its_lock(project):
    with start(project, "toy.py", "parent") as killed:
        assert killed.wait() == -signal.SIGKILL
    children = [int(pid) for pid in (project / "children").read_text().split()]
    try:
        again = python(project, "toy.py", "parent")
        assert again.returncode == 0
        assert "waiting" not in again.stderr
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)  # fails if the child has ended: then the test is void
