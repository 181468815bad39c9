"""The simulation of intervals, at its smallest."""

import pytest
from typer.testing import CliRunner

from tests.benchmarks.script import script
from wxb.core.files import read_json


@pytest.fixture
def benchmark(monkeypatch):
    module = script("intervals")
    monkeypatch.setattr(module, "GROUPS", (4, 8))
    monkeypatch.setattr(module, "POPULATION", 2000)
    return module


def test_rates_of_all_metrics_are_printed_and_kept(benchmark, tmp_path):
    output = tmp_path / "rates.json"
    result = CliRunner().invoke(benchmark.app, ["--times", "10", "--output", str(output)])
    assert result.exit_code == 0, result.output
    rows = read_json(output)["rows"]
    assert len(rows) == 4 * 2  # metrics, effects
    assert all(0 <= share <= 1 for row in rows for share in row["8 groups"])
    assert {row["4 groups"][1] for row in rows} == {0}
    assert "| F1 | strong | " in result.output


def test_intervals_cover_and_tests_are_rarely_wrong(benchmark):
    """Bounds of a binomial: 300 studies with a rate of 0.95, and of 0.05."""
    rates = benchmark.simulate(benchmark.KINDS[0], 8, 0.3, times=300)
    assert 0.91 <= rates.coverage <= 0.99
    assert rates.false_alarms <= 0.09
