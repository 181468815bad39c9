"""The simulation of intervals, at its smallest."""

import json

from typer.testing import CliRunner

from tests.benchmarks.script import script


def test_intervals_cover_and_tests_are_rarely_wrong(monkeypatch):
    """Bounds of a binomial: 300 studies with a rate of 0.95, and of 0.05."""
    benchmark = script("intervals")
    monkeypatch.setattr(benchmark, "POPULATION", 2000)
    rates = benchmark.simulate(benchmark.KINDS["accuracy"], 8, 0.3, times=300)
    assert 0.91 <= rates.coverage <= 0.99
    assert rates.false_alarms <= 0.09


def test_the_script_prints_and_writes_a_row_for_each_metric_and_effect(monkeypatch, tmp_path):
    benchmark = script("intervals")
    monkeypatch.setattr(benchmark, "POPULATION", 2000)
    monkeypatch.setattr(benchmark, "GROUPS", (4, 8))
    output = tmp_path / "intervals.json"
    done = CliRunner().invoke(benchmark.app, ["--times", "3", "--output", str(output)])
    assert done.exit_code == 0, done.output
    content = json.loads(output.read_text())
    pairs = [(row["metric"], row["effect of groups"]) for row in content["rows"]]
    assert pairs == [(name, effect) for name in benchmark.KINDS for effect in benchmark.EFFECTS]
    for row in content["rows"]:
        assert row["4 groups"][1] == 0  # too few for a test
        assert f"| {row['metric']} | {row['effect of groups']} |" in done.output
    assert content["times"] == 3
