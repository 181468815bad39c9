"""Benchmarks without their input print one line."""

import sys

import pytest
import typer

from wxb.core.errors import WxbError
from wxb.project.reproduction import benchmarks


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (WxbError("no corpus 'x'"), "no corpus 'x'"),
        (FileNotFoundError("data/x"), "data/x"),
        (FileNotFoundError(2, "", "data/y"), "data/y"),
    ],
)
def test_a_benchmark_without_data_prints_one_line(error, cause, monkeypatch, capsys):
    def main() -> None:
        raise error

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    monkeypatch.setattr(sys, "argv", ["benchmarks/chat/losses.py"])
    with pytest.raises(SystemExit, match="2"):
        benchmarks.run(app)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"losses: {cause}")
