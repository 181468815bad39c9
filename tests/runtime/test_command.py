import pytest

from tests.runtime.toy import python
from wxb.core.errors import storage_error


def test_output_goes_to_the_log_and_progress_to_the_terminal(project):
    done = python(project, "toy.py", "good")
    assert done.returncode == 0
    assert done.stdout == ""
    progress, last = done.stderr.splitlines()
    assert progress.startswith("toy@good: 100%")
    assert last.startswith("toy@good: done in ")
    log = (project / "logs/toy@good.log").read_text()
    assert sorted(log.splitlines()) == ["from a child", "to standard error", "to standard output"]
    assert (project / "out").exists()
    assert not (project / "slowly").exists(), "inputs can change before DVC records them"


@pytest.mark.parametrize(
    ("name", "code", "message", "traceback"),
    [
        ("wrong", 1, "WxbError: found this; expected that; do so", False),
        ("broken", 1, "ZeroDivisionError: a defect", True),
    ],
)
def test_a_failure_prints_the_log_and_leaves_only_it(project, name, code, message, traceback):
    failed = python(project, "toy.py", name)
    log = (project / f"logs/toy@{name}.log").read_text()
    assert failed.returncode == code
    assert f"toy@{name} failed. The last lines of logs/toy@{name}.log:" in failed.stderr
    assert f"  {message}" in failed.stderr
    assert f"Run it again with: dvc repro --single-item toy@{name}" in failed.stderr
    assert ("Traceback" in log) == traceback
    assert message in log
    assert sorted(p.name for p in project.iterdir()) == [".wxb", "logs", "params.yaml", "toy.py"]


def test_a_full_disk_is_one_line(project):
    failed = python(project, "toy.py", "full")
    assert failed.returncode == 1
    assert failed.stderr == (
        "toy@full: out: No space left on device; free some space, and run it again\n"
    )


def test_a_full_disk_is_found_in_errors_of_libraries():
    for message in (
        "Error while serializing: I/O error: No space left on device (os error 28)",  # safetensors
        "[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598",  # torch.save
    ):
        line = "No space left on device; free some space, and run it again"
        assert storage_error(RuntimeError(message)) == line
    assert storage_error(RuntimeError("No such file or directory (os error 2)")) is None


def test_parameters_are_checked_before_the_work(project):
    (project / "params.yaml").write_text("sed: 1\n")
    failed = python(project, "toy.py", "good")
    assert failed.returncode == 1
    assert "sed: unknown key; did you mean 'seed'?" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert not (project / "out").exists()
