"""Benchmarks of speed at tiny sizes."""

from typer.testing import CliRunner

from tests.benchmarks.script import script
from wxb.core.files import read_json

timing, speed = script("speed/timing"), script("speed/speed")


def test_sides_alternate_and_ratios_are_those_of_a_turn():
    calls = []
    row = timing.compare(
        "x", lambda: calls.append("ours"), "y", lambda: calls.append("theirs"), turns=2
    )
    assert calls == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert timing.Comparison("x", "y", [(1, 2), (2, 1)]).ratios == [2, 0.5]
    assert len(row.seconds) == 2


def test_the_table_has_a_line_for_what_cannot_be_measured(tmp_path, monkeypatch):
    def absent(sizes):
        """Training with a peer."""
        yield speed.Row("memory", value=2.0, unit="MiB", goal=1)
        raise ImportError("No module named 'peer'")

    monkeypatch.setattr(speed, "GROUPS", (absent,))
    output = tmp_path / "speed.json"
    CliRunner().invoke(speed.app, ["--output", str(output)], catch_exceptions=False)
    memory, missing = read_json(output)["rows"]
    assert (memory["median"], memory["met"]) == ("2", "no")
    assert missing["compared with"] == "not measured: ImportError: No module named 'peer'"


def test_a_row_has_its_range():
    row = speed.Row.from_values("encode", [1.0, 2.0, 3.0], peer="library", goal=1.5)
    cells = ["encode", "library", "2", "1 to 3", "times as fast", "1.5", "yes"]
    assert [*speed.cells(row).values()] == cells
