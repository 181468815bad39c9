"""Benchmarks without their input print one line."""

import sys

import pytest
import typer

from wxb.core.errors import WxbError
from wxb.project.reproduction import benchmarks

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
        benchmarks.run(app)
    assert capsys.readouterr().err == LINES[error]


def test_a_table_without_rows_is_an_error(tmp_path):
    with pytest.raises(WxbError, match="no results"):
        benchmarks.report([], tmp_path / "none.json")
    assert [*tmp_path.iterdir()] == []
