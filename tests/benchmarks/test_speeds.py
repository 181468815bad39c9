"""Benchmarks of speed at tiny sizes."""

from tests.benchmarks.script import script

timing, speed = script("speed/timing"), script("speed/speed")


def test_sides_alternate_and_ratios_are_those_of_a_turn():
    calls = []
    row = timing.compare(
        "x", lambda: calls.append("ours"), "y", lambda: calls.append("theirs"), turns=2
    )
    assert calls == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert timing.Comparison("x", "y", [(1, 2), (2, 1)]).ratios == [2, 0.5]
    assert len(row.seconds) == 2


def test_a_row_has_its_range():
    row = speed.Row.from_values("encode", [1.0, 2.0, 3.0], peer="library", goal=1.5)
    cells = ["encode", "library", "2", "1 to 3", "times as fast", "1.5", "yes"]
    assert [*speed.cells(row).values()] == cells
