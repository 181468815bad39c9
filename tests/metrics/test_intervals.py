import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from wxb.metrics import Metric, intervals
from wxb.metrics.intervals import Groups

ACCURACY = Metric("accuracy", "accuracy")
ERRORS = Metric("errors", "errors", lower_is_better=True, high=None)


def shares(sums):
    quotient = sums["right"] / np.maximum(sums["records"], 1)
    return {"accuracy": quotient, "errors": quotient}


def right_of(*right, size=10):
    """Groups of `size` records each, with the number of right answers."""
    return seeds_of(right, size=size)


def seeds_of(*each, size=10):
    """Groups of `size` records each, with the right answers of each seed: (groups, seeds)."""
    right = np.array(each).T
    sums = {"right": right, "records": np.full_like(right, size)}
    return Groups(sums, np.full(len(right), size))


def accuracy(groups):
    return intervals.intervals(groups, shares, [ACCURACY])["accuracy"]


def difference(a, b):
    return intervals.paired_difference(a, b, shares, ACCURACY)


def width(interval):
    return interval.high - interval.low


counts = st.lists(st.integers(0, 10), min_size=2, max_size=12)


class TestGroups:
    @given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), min_size=1))
    def test_sums_and_sizes_are_those_of_the_records(self, rows):
        names = [name for _, name in rows]
        counts = np.array([count for count, _ in rows])
        run = {"count": counts, "pair": np.stack([counts, 2 * counts], axis=1)}
        groups = Groups.from_records([run, run], names)
        for index, name in enumerate(dict.fromkeys(names)):
            total = sum(count for count, other in rows if other == name)
            assert groups.sums["count"][index].tolist() == [total] * 2
            assert groups.sums["pair"][index].tolist() == [[total, 2 * total]] * 2
            assert groups.sizes[index] == names.count(name)
        assert groups.total()["count"].tolist() == [counts.sum()] * 2


class TestIntervals:
    @given(counts)
    def test_contains_the_score_and_stays_on_the_scale(self, right):
        value, low, high = accuracy(right_of(*right))
        assert value == pytest.approx(sum(right) / (10 * len(right)))
        assert 0 <= low <= value <= high <= 1

    def test_of_groups_of_one_size_is_students_on_the_logit_scale(self):
        """For means of equal groups, the jackknife is the textbook standard error."""
        right = np.array([9, 7, 8, 4, 6])
        means = right / 10
        value, error = means.mean(), means.std(ddof=1) / np.sqrt(5)
        reach = stats.t.ppf(0.975, 4) * error / (value * (1 - value))
        ends = 1 / (1 + np.exp(-(np.log(value / (1 - value)) + np.array([-reach, reach]))))
        assert accuracy(right_of(*right)) == pytest.approx((value, *ends))

    def test_without_a_bound_heavy_tails_lower_the_degrees_of_freedom(self):
        """Equal groups: the jackknife of logs with a kurtosis of scipy's, by hand."""
        errors = np.array([1, 1, 1, 2, 1, 2, 1, 1, 2, 1, 1, 30])
        value, low, high = intervals.intervals(right_of(*errors), shares, [ERRORS])["errors"]
        count = len(errors)
        logs = np.log((errors.sum() - errors) / (10 * (count - 1)))
        error = ((count - 1) ** 2 / count * logs.var(ddof=1)) ** 0.5
        excess = stats.kurtosis(logs, fisher=False) - 3 * (count - 1) / (count + 1)
        freedom = 1 / (1 / (count - 1) + excess / (2 * count))
        assert freedom < count / 3
        reach = error * stats.t.ppf(0.975, freedom)
        assert [*np.log([high / value, value / low])] == pytest.approx([reach, reach])

    @pytest.mark.parametrize(("groups", "low"), [(4, 0.3976), (16, 0.7941), (100, 0.9638)])
    def test_a_perfect_score_is_not_certain(self, groups, low):
        """Clopper and Pearson: with n of n right, the lower end is 0.025 ** (1 / n)."""
        assert accuracy(right_of(*[10] * groups)) == pytest.approx((1, low, 1), abs=1e-4)
        assert accuracy(right_of(*[0] * groups)) == pytest.approx((0, 0, 1 - low), abs=1e-4)

    def test_groups_without_anything_to_score_are_no_trials(self):
        """Three groups of three right, beside twenty with neither answers nor predictions."""
        right = np.array([[10]] * 3 + [[0]] * 20)
        groups = Groups({"right": right, "records": right}, np.full(23, 10))
        assert accuracy(groups) == pytest.approx((1, 0.025 ** (1 / 3), 1))

    def test_only_one_group_has_anything_to_score(self):
        groups = Groups({"right": np.eye(9, 1), "records": np.eye(9, 1)}, np.full(9, 1))
        assert accuracy(groups) == (1, 0, 1)

    @pytest.mark.parametrize(("share", "bound"), [(0, 100), (2, 100), (12, 1), (7, 1)])
    def test_equal_groups_without_a_largest_score_are_not_certain(self, share, bound):
        """The fallback is the scale at the bound; elsewhere the score is no largest value."""
        value, low, high = intervals.intervals(
            right_of(*[share] * 5), shares, [ERRORS._replace(fallback_bound=bound)]
        )["errors"]
        assert low <= value == share / 10 < high
        if share == 0:
            assert (low, high) == (0, pytest.approx(bound * (1 - 0.025**0.2)))
        else:
            assert high / value == pytest.approx(value / low)

    def test_of_one_group_is_the_whole_scale(self):
        assert accuracy(right_of(7)) == (0.7, 0, 1)
        assert difference(right_of(7), right_of(3)) == (pytest.approx(0.4), -1, 1, 1)

    def test_equal_groups_are_not_certain(self):
        """The logit of 0.5, with the error of one group right or wrong: 0.5 / 3 ** 0.5."""
        reach = 0.5 / 3**0.5 * stats.t.ppf(0.975, 2) / 0.25
        low, high = 1 / (1 + np.exp([reach, -reach]))
        assert accuracy(right_of(5, 5, 5)) == pytest.approx((0.5, low, high))

    @pytest.mark.parametrize("seeds", [1, 3])
    @pytest.mark.parametrize("count", [7, 10, 30])
    def test_equal_groups_are_not_certain_for_their_rounding(self, count, seeds):
        """Means without a group differ in the last digits, such as those of 9 / 10 and 2 / 3."""
        for right in range(1, 10):
            better, worse = (seeds_of(*[[n] * count] * seeds) for n in (right, right - 1))
            assert width(accuracy(better)) > 0.01
            _, low, high, p_value = difference(better, worse)
            assert high - low > 0.1
            assert (low > 0) == (p_value < 1)

    def test_unequal_groups_count_as_fewer(self):
        equal = accuracy(right_of(9, 2, 5, 8))
        sizes = np.array([1, 1, 1, 37])
        assert width(accuracy(right_of(9, 2, 5, 8)._replace(sizes=sizes))) > 1.2 * width(equal)

    def test_blocks_change_nothing(self, monkeypatch):
        groups = right_of(*range(11))
        whole = accuracy(groups)
        monkeypatch.setattr(intervals, "_BLOCK_CELLS", 4)
        assert accuracy(groups) == whole

    def test_of_f1_is_close_to_the_delta_method(self):
        rng = np.random.default_rng(1)
        gold = 1 + rng.poisson(3, 300)
        correct = rng.binomial(gold, rng.beta(3, 1, 300))
        both = gold + correct + rng.poisson(0.5, 300)

        def f1(sums):
            return {"f1": 2 * sums["correct"] / sums["both"]}

        groups = Groups.from_records([{"correct": correct, "both": both}])
        found = intervals.intervals(groups, f1, [Metric("f1", "F1")])["f1"]
        value = 2 * correct.sum() / both.sum()
        error = np.sqrt(np.square(2 * correct - value * both).sum()) / both.sum()
        assert width(found) == pytest.approx(2 * 1.968 * error, rel=0.02)

    @pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-1.0, None), (0.5, 3.0), (0.0, 100.0)])
    def test_of_a_metric_with_other_bounds_is_shifted_and_scaled(self, low, high):
        """A correlation of -0.49 has no interval that begins at 0."""
        groups, span = right_of(9, 2, 5, 8), 1.0 if high is None else high - low
        ours = Metric("own", "own", low=low, high=high)
        found = intervals.intervals(
            groups, lambda sums: {"own": low + span * shares(sums)["accuracy"]}, [ours]
        )["own"]
        of_shares = intervals.intervals(groups, shares, [ERRORS if high is None else ACCURACY])
        expected = [low + span * end for end in next(iter(of_shares.values()))]
        assert found == pytest.approx(expected)

    def test_of_the_kappa_of_a_constant_prediction_is_exact(self):
        def kappa(sums):  # a class is predicted for all records, of which `right` have it
            share = sums["right"] / sums["records"]
            agreement = 1 - (sums["records"] - sums["right"]) / sums["records"]
            return {"kappa": (agreement - share) / (1 - share)}

        metric = Metric("kappa", "kappa", low=-1.0, chance=0.0)
        found = intervals.intervals(right_of(9, 2, 5, 8), kappa, [metric])["kappa"]
        assert found == pytest.approx((0.0, 0.0, 0.0))

    @given(counts, st.integers(1, 99))
    def test_groups_without_the_denominator_do_not_count(self, right, empty):
        """Two names in a hundred texts are two observations."""
        metric, systems = (
            ACCURACY._replace(denominator="records"),
            (right_of(*right), right_of(*right[::-1])),
        )
        padded = []
        for system in systems:
            sums = {key: np.pad(sums, ((0, empty), (0, 0))) for key, sums in system.sums.items()}
            sums["other"] = np.ones((len(right) + empty, 1), int)
            padded.append(Groups(sums, np.full(len(right) + empty, 10)))
        found = intervals.intervals(padded[0], shares, [metric])["accuracy"]
        assert found == pytest.approx(accuracy(systems[0]))
        found = intervals.paired_difference(*padded, shares, metric)
        assert found == pytest.approx(difference(*systems))


class TestPaired:
    @given(counts, st.data())
    def test_swapping_systems_mirrors_the_difference(self, right, data):
        other = data.draw(st.lists(st.integers(0, 10), min_size=len(right), max_size=len(right)))
        a, b = right_of(*right), right_of(*other)
        forth, back = difference(a, b), difference(b, a)
        assert forth == pytest.approx((-back.value, -back.high, -back.low, back.p_value))
        assert 2.0 ** (1 - len(right)) <= forth.p_value <= 1

    @given(counts)
    def test_a_system_equals_itself(self, right):
        """Without a difference in any group, one in a group of few may be unseen."""
        found = difference(right_of(*right), right_of(*right))
        assert (found.value, found.p_value) == (0, 1)
        assert found.high == -found.low == pytest.approx(1 - 0.025 ** (1 / len(right)))

    def test_of_groups_of_one_size_is_the_paired_t_test(self):
        a, b = [9, 7, 8, 4, 6, 9, 5], [7, 7, 5, 5, 4, 6, 5]
        found = difference(right_of(*a), right_of(*b))
        test = stats.ttest_rel(np.array(a) / 10, np.array(b) / 10)
        interval = test.confidence_interval()
        assert found == pytest.approx(
            (np.mean(a) / 10 - np.mean(b) / 10, interval.low, interval.high, test.pvalue)
        )

    def test_few_groups_show_no_difference_and_eight_a_large_one(self):
        assert difference(right_of(10, 10, 10, 10), right_of(0, 0, 0, 0)).p_value == 1 / 8
        assert difference(right_of(*[9] * 8), right_of(*[2] * 8)).p_value == 2**-7


class TestSeeds:
    def test_seeds_that_differ_widen_the_interval(self):
        alike = seeds_of([9, 5, 7, 8], [9, 5, 7, 8], [9, 5, 7, 8])
        apart = seeds_of([9, 5, 7, 8], [7, 3, 5, 6], [10, 7, 9, 10])
        assert accuracy(alike) == pytest.approx(accuracy(right_of(9, 5, 7, 8)), rel=1e-9)
        assert width(accuracy(apart)) > width(accuracy(alike))

    def test_a_perfect_seed_has_a_finite_interval(self):
        groups = seeds_of([0, 0, 0, 0], [1, 2, 0, 1], [1, 1, 0, 2])
        found = intervals.intervals(groups, shares, [ERRORS])["errors"]
        assert 0 < found.low < found.value < found.high < np.inf

    def test_variances_of_groups_and_seeds_are_added(self):
        groups = seeds_of([9, 5, 7, 8], [7, 3, 5, 6])
        means = np.array([8, 4, 6, 7]) / 10
        parts = means.var(ddof=1) / 4, np.var([0.725, 0.525], ddof=1) / 2
        error, freedom = intervals._standard_error(
            groups.sizes,
            intervals._left_out(groups, shares)["accuracy"].mean(axis=1),
            [np.array([0.725, 0.525])],
        )
        assert error**2 == pytest.approx(sum(parts))
        assert freedom == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2))

    def test_a_difference_smaller_than_that_of_seeds_is_within_noise(self):
        a = seeds_of([9] * 20, [5] * 20)
        assert difference(right_of(*[9] * 20), right_of(*[7] * 20)).p_value < 0.01
        assert difference(a, right_of(*[6] * 20)).p_value > 0.05
