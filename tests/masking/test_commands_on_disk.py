"""Files that `wxb mask` and `wxb unmask` write, also if the disk is full or inputs unreadable."""

import json
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.masking.rules import Rules
from tests.masking.running import COMMAND, ENVIRONMENT, MASK, start, wxb

EMPTY = '{"placeholders": {}, "reserved": []}'  # a mapping


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("options", [[], ["--lines"], ["--json"], ["--dry-run"]], ids=str)
def test_a_full_standard_output_is_a_one_line_error(tmp_path, options):
    (tmp_path / "a.txt").write_text("Ann 5\n" * 5_000)
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [*COMMAND, *MASK, *options, "a.txt"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert result.stderr == b"wxb: standard output: cannot be written (No space left on device)\n"
    assert result.returncode == 1


def test_a_full_disk_is_a_one_line_error_and_leaves_no_partial_file(tmp_path):
    (tmp_path / "a.txt").write_text("Ann 5\n" * 50_000)
    limit = 100_000  # bytes of a file: a write beyond fails as on a full disk
    result = subprocess.run(
        [*COMMAND, *MASK, "--lines", "a.txt", "--output", "out.txt"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        check=False,
    )
    assert result.returncode == 1
    assert re.fullmatch(rb"wxb: .*out.txt: cannot be written \(File too large\).*\n", result.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_two_processes_do_not_share_a_draft(tmp_path):
    first = start(tmp_path, *MASK, "--lines", "--output", "out.txt")
    first.stdin.write(b"Ann\n" * 300)
    first.stdin.flush()
    while not (tmp_path / ".out.txt.partial").exists():
        assert first.poll() is None
    second = wxb(tmp_path, *MASK, "Bob", "--output", "out.txt")
    assert (second.returncode, second.stdout) == (1, b"")
    assert b"out.txt: another process is writing it; wait" in second.stderr
    assert first.communicate() == (b"", b"")
    assert (tmp_path / "out.txt").read_bytes() == b"<NAME>\n" * 300
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


@pytest.fixture
def status(tmp_path, monkeypatch):
    """Runs the command in this process, in the folder of the test, and returns its exit code."""
    from wxb.cli import app
    from wxb.project import trained

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["wxb", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            app.main()
        return exit_info.value.code

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trained, "load", lambda name: Rules())
    return run


def texts(folder):
    """The texts of the files in a folder, by name."""
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_permissions_stay_when_masked_and_when_untexts(tmp_path, status):
    (tmp_path / "in").mkdir(mode=0o700)
    for name, permissions in {"a.txt": 0o600, "b.txt": 0o640}.items():
        (tmp_path / "in" / name).write_text("Ann")
        (tmp_path / "in" / name).chmod(permissions)
    assert status(*MASK, "in", "--output", "out", "--mapping", "m") == 0
    assert status("unmask", "out", "--output", "back", "--mapping", "m") == 0
    assert status("unmask", "out/a.txt", "--output", "one.txt", "--mapping", "m") == 0
    modes = {
        name: (tmp_path / name).stat().st_mode & 0o777
        for name in ("out", "out/a.txt", "back", "back/a.txt", "back/b.txt", "one.txt")
    }
    assert [*modes.values()] == [0o700, 0o600, 0o700, 0o600, 0o640, 0o600]


def test_unmask_restores_cells_without_quotes(tmp_path, status):
    mapping = {"placeholders": {"<SIZE_1>": '5" x 3"'}, "reserved": []}
    (tmp_path / "m").write_text(json.dumps(mapping))
    (tmp_path / "a.csv").write_text("id,text\n1,a <SIZE_1>\n")
    assert status("unmask", "a.csv", "--mapping", "m", "--output", "b.csv") == 0
    assert (tmp_path / "b.csv").read_text() == 'id,text\n1,a 5" x 3"\n'


@pytest.mark.usefixtures("closed")
def test_a_subfolder_that_cannot_be_read_is_skipped(tmp_path, status, capsys):
    (tmp_path / "in/closed").mkdir(parents=True)
    (tmp_path / "in/a.txt").write_text("Ann")
    to = ("--output", "out", "--report", "r.json")
    for options, code in (([], 1), (["--skip-unreadable"], 0)):
        assert status(*MASK, "in", *to, *options) == code
        assert capsys.readouterr().err == (
            "wxb: skipped: in/closed: cannot be read (Permission denied)\n"
        )
        assert texts(tmp_path / "out") == {"a.txt": "<NAME>"}
        assert json.loads((tmp_path / "r.json").read_text())["skipped"] == 1
    (tmp_path / "m").write_text(EMPTY)
    assert status("unmask", "in", "--output", "back", "--mapping", "m") == 1
    assert texts(tmp_path / "back") == {"a.txt": "Ann"}


def test_files_that_cannot_be_read_stop_all_or_are_skipped(tmp_path, status, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "m").write_text(EMPTY)
    for name, content in {"a.txt": b"Ann", "b.txt": b"\xff", "c.txt": b"Eve \xfe"}.items():
        (tmp_path / "in" / name).write_bytes(content)
    skip, to = "--skip-unreadable", ("in", "--output", "out")
    for command in ((*MASK, "--report", "r.json"), ("unmask", "--mapping", "m")):
        assert status(*command, *to) == 1
        message = capsys.readouterr().err
        assert all(f"in/{name}.txt: line 1: byte" in message for name in "bc")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "m"]
        assert status(*command, *to, skip) == 0
        lines = capsys.readouterr().err.splitlines()
        assert [line.split(":")[:3] for line in lines] == [
            ["wxb", " skipped", f" in/{name}.txt"] for name in "bc"
        ]
        assert "Eve" not in message
        assert [*texts(tmp_path / "out")] == ["a.txt"]
        if command[0] == "mask":
            assert json.loads((tmp_path / "r.json").read_text())["skipped"] == 2
            (tmp_path / "r.json").unlink()
        shutil.rmtree(tmp_path / "out")
