"""The simulation of intervals, at its smallest."""

from tests.benchmarks.script import script


def test_intervals_cover_and_tests_are_rarely_wrong(monkeypatch):
    """Bounds of a binomial: 300 studies with a rate of 0.95, and of 0.05."""
    benchmark = script("intervals")
    monkeypatch.setattr(benchmark, "POPULATION", 2000)
    rates = benchmark.simulate(benchmark.KINDS["accuracy"], 8, 0.3, times=300)
    assert 0.91 <= rates.coverage <= 0.99
    assert rates.false_alarms <= 0.09
    assert benchmark.simulate(benchmark.KINDS["accuracy"], 4, 0.3, times=9).false_alarms == 0
