"""Errors that a user can fix are one line, with the exit code of their command line."""

import sys

import pytest
import typer

from wxb.cli.running import one_line_errors, run_benchmark
from wxb.core.errors import WxbError

LINES = {
    WxbError("no corpus 'x'"): "losses: no corpus 'x'\n",
    FileNotFoundError("data/x"): "losses: data/x does not exist; benchmarks/README.md says what"
    " writes it\n",
    FileNotFoundError(2, "", "data/y"): "losses: data/y does not exist; benchmarks/README.md says"
    " what writes it\n",
}


@pytest.mark.parametrize("error", LINES, ids=str)
def test_a_benchmark_without_data_prints_one_line(error, monkeypatch, capsys):
    def main() -> None:
        raise error

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    monkeypatch.setattr(sys, "argv", ["benchmarks/chat/losses.py"])
    with pytest.raises(SystemExit, match="2"):
        run_benchmark(app)
    assert capsys.readouterr().err == LINES[error]


def test_a_command_reports_a_forbidden_file_in_one_line(capsys):
    with pytest.raises(SystemExit, match="1"), one_line_errors("wxb"):
        raise PermissionError(13, "Permission denied", "models/x")
    assert capsys.readouterr().err.startswith("wxb: models/x: Permission denied; change")
