import io
import subprocess
import sys

import pytest

from tests.masking.rules import Rules
from tests.project_copy import ROOT


@pytest.fixture
def run(cwd, monkeypatch, capsys):
    """Runs the command in this process, in the folder of the test; returns code, output, errors."""
    from wxb.cli import app
    from wxb.project import trained

    def run(*arguments, given=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        monkeypatch.setattr("sys.argv", ["wxb", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            app.main()
        return exit_info.value.code, *capsys.readouterr()

    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(trained, "load", lambda name: Rules())
    return run


@pytest.fixture
def start(cwd):
    """Starts the command as a process with pipes, in the folder of the test."""

    def start(*arguments, **options):
        command = [sys.executable, "-c", "from tests.masking.rules import main; main()"]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = {"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200", "NO_COLOR": "1"}
        return subprocess.Popen(
            [*command, *arguments], cwd=cwd, env=environment, **{**pipes, **options}
        )

    return start
