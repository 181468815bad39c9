import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.metrics import bootstrap
from wxb.metrics.bootstrap import Difference, Interval, by_group
from wxb.tasks.ner.metrics import CORRECT, GOLD, PREDICTED, Scorer, prf

ROOT = Path(__file__).parents[2]
SCORES = ("precision", "recall", "f1")


def intervals(table, **options):
    return bootstrap.intervals(table, Scorer().scores, **options)


def paired(a, b, **options):
    return bootstrap.paired(a, b, lambda sums: Scorer().scores(sums)["f1"], **options)


def simulate(rng, documents, recall=0.8, spurious=0.5):
    """Counts of documents that differ in length and, through a beta, in difficulty."""
    gold = 1 + rng.poisson(3, documents)
    correct = rng.binomial(gold, rng.beta(4 * recall, 4 * (1 - recall), documents))
    return np.stack([correct, gold, correct + rng.poisson(spurious, documents)], axis=1)


def simulate_pair(rng, documents, recalls=(0.8, 0.8)):
    """Counts of two systems on the same documents, equally hard for both."""
    gold = 1 + rng.poisson(3, documents)
    ease = rng.normal(0, 0.1, documents)
    systems = []
    for recall in recalls:
        correct = rng.binomial(gold, np.clip(recall + ease, 0, 1))
        systems.append(np.stack([correct, gold, correct + rng.poisson(0.5, documents)], axis=1))
    return systems


def f1(counts):
    return prf(counts.sum(axis=0))[2]


def width(interval):
    return interval.high - interval.low


def table_strategy(min_size=1, max_size=12):
    rows = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
    return st.lists(rows, min_size=min_size, max_size=max_size).map(
        lambda rows: np.array([(c, c + g, c + p) for c, g, p in rows])
    )


tables = table_strategy()
table_pairs = tables.flatmap(
    lambda table: st.tuples(st.just(table), table_strategy(len(table), len(table)))
)


# Intervals


@given(tables, st.integers(0, 2**32))
def test_values_are_the_scores_of_the_documents(table, seed):
    found = intervals(table, resamples=20, seed=seed)
    assert tuple(found) == SCORES
    assert tuple(interval.value for interval in found.values()) == prf(table.sum(axis=0))


@given(tables, st.integers(0, 2**32))
def test_ends_are_ordered_scores(table, seed):
    for interval in intervals(table, resamples=20, seed=seed).values():
        assert isinstance(interval, Interval)
        assert 0 <= interval.low <= interval.high <= 1


def test_numbers_are_plain_floats():
    a, b = simulate_pair(np.random.default_rng(0), 20)
    found = [*intervals(a, resamples=10, seed=0).values(), paired(a, b, resamples=10, seed=0)]
    assert {type(number) for numbers in found for number in numbers} == {float}


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_the_interval_contains_the_value(seed):
    table = simulate(np.random.default_rng(seed), 60)
    for interval in intervals(table, resamples=200, seed=seed).values():
        assert interval.low < interval.value < interval.high


def test_same_seed_same_intervals():
    table = simulate(np.random.default_rng(0), 50)
    first = intervals(table, resamples=100, seed=3)
    assert intervals(table, resamples=100, seed=3) == first
    assert intervals(table, resamples=100, seed=4) != first


def test_global_random_state_is_neither_read_nor_changed():
    table = simulate(np.random.default_rng(0), 50)
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()
    first = intervals(table, resamples=50, seed=3)
    assert np.random.get_state()[1].tolist() == before
    np.random.seed(2)
    assert intervals(table, resamples=50, seed=3) == first


def test_the_counts_are_left_as_they_are():
    a, b = simulate_pair(np.random.default_rng(0), 20)
    copies = a.copy(), b.copy()
    intervals(a, resamples=10, seed=0)
    paired(a, b, resamples=10, seed=0)
    assert (a == copies[0]).all()
    assert (b == copies[1]).all()


@pytest.mark.parametrize("score", SCORES)
def test_more_documents_give_narrower_intervals(score):
    table = simulate(np.random.default_rng(0), 40)
    small = intervals(table, resamples=400, seed=0)[score]
    large = intervals(np.tile(table, (16, 1)), resamples=400, seed=0)[score]
    assert large.value == pytest.approx(small.value)
    # Sixteen times the documents: a quarter of the width, but for resampling noise.
    assert width(large) == pytest.approx(width(small) / 4, rel=0.25)


def test_a_higher_level_gives_wider_intervals():
    table = simulate(np.random.default_rng(0), 40)
    narrow, usual, wide = (
        intervals(table, resamples=400, seed=0, level=level)["f1"] for level in (0.5, 0.95, 0.99)
    )
    assert wide.low < usual.low < narrow.low < narrow.high < usual.high < wide.high
    assert intervals(table, resamples=400, seed=0)["f1"] == usual


def test_equal_documents_leave_nothing_uncertain():
    found = intervals(np.tile([2, 4, 3], (30, 1)), resamples=50, seed=0)
    for interval in found.values():
        assert interval.low == interval.value == interval.high


def test_no_spans_at_all_scores_zero():
    found = intervals(np.zeros((5, 3), dtype=np.int64), resamples=20, seed=0)
    assert set(found.values()) == {Interval(0.0, 0.0, 0.0)}


def test_width_agrees_with_the_delta_method():
    # Recall is a ratio of sums; its standard error has a closed form for large samples.
    table = simulate(np.random.default_rng(0), 2000)
    recall = intervals(table, resamples=1000, seed=0)["recall"]
    residuals = table[:, CORRECT] - recall.value * table[:, GOLD]
    standard_error = np.sqrt((residuals**2).sum()) / table[:, GOLD].sum()
    assert width(recall) == pytest.approx(2 * 1.96 * standard_error, rel=0.08)


def test_coverage_is_close_to_the_level():
    truth = f1(simulate(np.random.default_rng(0), 500_000))
    datasets = 300
    hits = 0
    for seed in range(1, datasets + 1):
        table = simulate(np.random.default_rng(seed), 80)
        interval = intervals(table, resamples=200, seed=seed, level=0.9)["f1"]
        hits += interval.low <= truth <= interval.high
    # Three standard errors of a share over 300 data sets are 0.05.
    assert hits / datasets == pytest.approx(0.9, abs=0.05)


# Paired comparison


def test_identical_systems():
    table = simulate(np.random.default_rng(0), 50)
    assert paired(table, table.copy(), resamples=100, seed=0) == Difference(0.0, 0.0, 0.0, 1.0)


@given(tables, st.integers(0, 2**32))
def test_any_system_equals_itself(table, seed):
    assert paired(table, table, resamples=20, seed=seed) == Difference(0.0, 0.0, 0.0, 1.0)


@given(table_pairs, st.integers(0, 2**32))
def test_swapping_systems_mirrors_the_difference(pair, seed):
    a, b = pair
    forth = paired(a, b, resamples=40, seed=seed)
    back = paired(b, a, resamples=40, seed=seed)
    assert forth.value == f1(a) - f1(b)
    assert back.value == -forth.value
    assert back.p_value == forth.p_value
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))


def test_same_seed_same_difference():
    a, b = simulate_pair(np.random.default_rng(0), 50, (0.8, 0.75))
    first = paired(a, b, resamples=100, seed=3)
    assert paired(a, b, resamples=100, seed=3) == first
    assert paired(a, b, resamples=100, seed=4) != first


def test_a_big_difference_is_found():
    a, b = simulate_pair(np.random.default_rng(0), 100, (0.9, 0.6))
    found = paired(a, b, resamples=500, seed=0)
    assert found.low > 0
    assert found.low < found.value < found.high
    assert found.p_value == 1 / 501


def test_a_null_difference_is_not_found():
    a, b = simulate_pair(np.random.default_rng(0), 100)
    found = paired(a, b, resamples=500, seed=0)
    assert found.low < 0 < found.high
    assert found.p_value > 0.05


def test_p_values_are_uniform_when_nothing_differs():
    p_values = []
    for seed in range(300):
        a, b = simulate_pair(np.random.default_rng(seed), 60)
        p_values.append(paired(a, b, resamples=200, seed=seed).p_value)
    for level in (0.1, 0.25, 0.5, 0.75):
        # Three standard errors of a share over 300 data sets are at most 0.087.
        assert np.mean(np.array(p_values) <= level) == pytest.approx(level, abs=0.087)


def test_p_value_of_two_documents_by_hand():
    # Both documents hold one gold span; system a finds the first one, system b none.
    a = np.array([[1, 1, 1], [0, 1, 0]])
    b = np.array([[0, 1, 0], [0, 1, 0]])
    found = paired(a, b, resamples=20_000, seed=0)
    # A resample holds the first document never, once or twice: F1 of a is 0, 2/3 or 1. Shifted,
    # only "never" lies as far from zero as the observed 2/3.
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.p_value == pytest.approx(1 / 4, abs=0.01)


def test_both_systems_are_scored_on_the_same_documents():
    # System b is a copy of a but for one span: only shared resamples keep the noise out.
    a = simulate(np.random.default_rng(0), 200)
    b = a.copy()
    b[np.argmax(b[:, CORRECT]), CORRECT] -= 1
    found = paired(a, b, resamples=300, seed=0)
    alone = intervals(a, resamples=300, seed=0)["f1"]
    assert found.low >= 0
    assert width(found) < width(alone) / 2


def test_order_of_documents_only_matters_as_noise():
    a, b = simulate_pair(np.random.default_rng(0), 100, (0.8, 0.7))
    order = np.random.default_rng(1).permutation(100)
    found = paired(a, b, resamples=2000, seed=0)
    shuffled = paired(a[order], b[order], resamples=2000, seed=0)
    assert shuffled.value == found.value
    assert shuffled[1:3] == pytest.approx(found[1:3], abs=0.01)


@pytest.mark.parametrize("resamples", [1, 9, 99])
def test_p_value_is_never_zero(resamples):
    a = np.tile([3, 3, 3], (20, 1))
    b = np.tile([0, 3, 3], (20, 1))
    assert paired(a, b, resamples=resamples, seed=0).p_value == 1 / (1 + resamples)


def test_a_single_resample_is_enough():
    table = simulate(np.random.default_rng(0), 30)
    interval = intervals(table, resamples=1, seed=0)["f1"]
    assert interval.low == interval.high


# Blocks


@pytest.mark.parametrize("cells", [1, 50, 350, 10_000])
def test_block_size_does_not_change_the_result(monkeypatch, cells):
    a, b = simulate_pair(np.random.default_rng(0), 50, (0.8, 0.75))
    expected = intervals(a, resamples=101, seed=5), paired(a, b, resamples=101, seed=5)
    monkeypatch.setattr(bootstrap, "_BLOCK_CELLS", cells)
    assert (intervals(a, resamples=101, seed=5), paired(a, b, resamples=101, seed=5)) == expected


def test_resampled_sums_draw_as_many_documents():
    # A column of ones counts the draws, whatever the blocks.
    table = np.ones((70, 3), dtype=np.int64)
    sums = bootstrap._resampled_sums(table, 33, np.random.default_rng(0))
    assert sums.shape == (33, 3)
    assert (sums == 70).all()


def test_every_document_is_drawn_equally_often():
    table = np.zeros((20, 20), dtype=np.int64)
    np.fill_diagonal(table, 1)
    weights = bootstrap._resampled_sums(table, 5000, np.random.default_rng(0))
    # The mean of 5000 draws of variance 0.95 has a standard error of 0.014.
    assert weights.mean(axis=0) == pytest.approx(np.ones(20), abs=0.06)
    assert weights.var(axis=0) == pytest.approx(np.full(20, 0.95), abs=0.1)


def test_memory_is_bounded_for_many_documents():
    a, b = simulate_pair(np.random.default_rng(0), 10_000)
    tracemalloc.start()
    try:
        paired(a, b, resamples=1000, seed=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20


# Groups


@given(tables, st.data())
def test_groups_hold_the_counts_of_their_documents(table, data):
    groups = data.draw(st.lists(st.sampled_from("abc"), min_size=len(table), max_size=len(table)))
    found = by_group(table, groups)
    expected = [
        table[[g == name for g in groups]].sum(axis=0).tolist() for name in dict.fromkeys(groups)
    ]
    assert found.tolist() == expected


def test_documents_of_their_own_are_left_as_they_are():
    table = simulate(np.random.default_rng(0), 20)
    assert by_group(table, [str(row) for row in range(20)]).tolist() == table.tolist()


def test_documents_that_are_alike_within_a_group_widen_the_interval():
    once = simulate(np.random.default_rng(0), 40)
    table, groups = np.repeat(once, 6, axis=0), [str(row // 6) for row in range(240)]
    apart = intervals(table, resamples=400, seed=0)["f1"]
    together = intervals(by_group(table, groups), resamples=400, seed=0)["f1"]
    assert together.value == apart.value
    assert width(together) > 2 * width(apart)


def test_each_document_has_a_group():
    with pytest.raises(ValueError, match="found 1 groups, expected 2, one a document"):
        by_group(GOOD, ["a"])


# Seeds


def seeds(*tables):
    return np.stack(tables, axis=1)


def test_the_score_is_the_mean_over_seeds():
    a, b = simulate_pair(np.random.default_rng(0), 40, (0.9, 0.6))
    found = intervals(seeds(a, b), resamples=100, seed=0)["f1"]
    assert found.value == pytest.approx((f1(a) + f1(b)) / 2)
    difference = paired(seeds(a, b), b, resamples=100, seed=0)
    assert difference.value == pytest.approx((f1(a) - f1(b)) / 2)


def test_one_seed_is_no_seed():
    a, b = simulate_pair(np.random.default_rng(0), 40)
    options = {"resamples": 100, "seed": 0}
    assert intervals(seeds(a), **options) == intervals(a, **options)
    assert paired(seeds(a), seeds(b), **options) == paired(a, b, **options)


def test_seeds_that_differ_widen_the_interval():
    a, b = simulate_pair(np.random.default_rng(0), 200, (0.9, 0.5))
    alike = intervals(seeds(a, a), resamples=400, seed=0)["f1"]
    apart = intervals(seeds(a, b), resamples=400, seed=0)["f1"]
    assert width(apart) > 2 * width(alike)


def test_a_difference_smaller_than_that_of_seeds_is_within_noise():
    rng = np.random.default_rng(0)
    good, fair = simulate_pair(rng, 300, (0.9, 0.8))
    sure = paired(seeds(good, good), seeds(fair, fair), resamples=400, seed=0)
    mixed = paired(seeds(good, fair), seeds(fair, fair), resamples=400, seed=0)
    assert sure.p_value < 0.01
    assert mixed.p_value > 0.05


# Errors

GOOD = np.array([[1, 2, 3], [0, 1, 1]])


def both_functions(table, **options):
    return [lambda: intervals(table, **options), lambda: paired(table, table, **options)]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (GOOD[:0], {}, "found 0 groups, expected at least 1"),
        (GOOD[0], {}, r"found counts of shape \(3,\), expected \(groups, C\)"),
        (GOOD[None, None], {}, r"found counts of shape \(1, 1, 2, 3\), expected \(groups, C\)"),
        (GOOD[:, None][:, :0], {}, r"found counts of shape \(2, 0, 3\), expected \(groups, C\)"),
        (GOOD, {"resamples": 0}, "found 0 resamples, expected at least 1"),
        (GOOD, {"resamples": -5}, "found -5 resamples, expected at least 1"),
        (GOOD, {"level": 0.0}, "found level 0.0, expected a number between 0 and 1"),
        (GOOD, {"level": 95}, "found level 95, expected a number between 0 and 1"),
    ],
)
def test_bad_arguments(table, options, message):
    for call in both_functions(table, **{"resamples": 10, "seed": 0, **options}):
        with pytest.raises(ValueError, match=message):
            call()


def test_systems_must_share_documents():
    with pytest.raises(ValueError, match="found b with 1 groups, expected 2 as for a"):
        paired(GOOD, GOOD[:1], resamples=10, seed=0)


# Reproducibility

SCRIPT = """
import numpy as np
from wxb.metrics.bootstrap import intervals, paired
from wxb.tasks.ner.metrics import Scorer

rng = np.random.default_rng(0)
a, b = (np.sort(rng.integers(0, 9, (40, 3)), axis=1) for _ in range(2))
f1 = lambda sums: Scorer().scores(sums)["f1"]
print(intervals(a, Scorer().scores, resamples=50, seed=1), paired(a, b, f1, resamples=50, seed=1))
"""


def test_another_process_gives_the_same_numbers():
    def run():
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    first = run()
    assert "Difference" in first
    assert run() == first


def test_predicted_column_drives_precision():
    # Guards the column order between the two modules: only predictions are added here.
    table = simulate(np.random.default_rng(0), 50)
    noisy = table.copy()
    noisy[:, PREDICTED] += 2
    before, after = (intervals(t, resamples=50, seed=0) for t in (table, noisy))
    assert after["precision"].high < before["precision"].low
    assert after["recall"] == before["recall"]
