"""The scores of a comparison (wxb/metrics/evaluation.py), and what its paired tests establish.

Baselines are systems with scores and intervals, but without tests. p values are corrected for all
pairs of a study, on all its test sets.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from string import ascii_lowercase
from typing import Any, NamedTuple, Self

from wxb.core.errors import counted
from wxb.metrics import LEVEL, TEST, Metric
from wxb.reporting.formatting import listed, p_value, rounded, signed

ALPHA = round(1 - LEVEL, 6)  # family-wise error rate of a study's tests


def metrics(comparison: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics of a comparison by key, in the order of tables; scale bounds are the defaults."""
    return {
        key: Metric(key, metric["title"], metric["lower_is_better"], decimals=metric["decimals"])
        for key, metric in comparison["metrics"].items()
    }


def headline(comparison: Mapping[str, Any]) -> Metric:
    """The metric by which systems are ranked and tested."""
    return metrics(comparison)[comparison["headline"]]


def headline_scores(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """The headline score of each system, with the ends of its interval."""
    return {name: row[comparison["headline"]] for name, row in comparison["systems"].items()}


def ranked(comparison: Mapping[str, Any]) -> list[str]:
    """The names of all systems, by their headline score in this comparison, the best first."""
    scores, metric = headline_scores(comparison), headline(comparison)
    return sorted(scores, key=lambda n: scores[n]["value"], reverse=not metric.lower_is_better)


def test_sets(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The comparison on each test set, by its name; all have the question of the study."""
    shared = {"question": comparison["question"]}
    return {TEST: comparison, **{k: {**v, **shared} for k, v in comparison["further"].items()}}


def baseline_names(comparison: Mapping[str, Any]) -> list[str]:
    """The names of the baselines, in their order."""
    return [name for name, system in comparison["systems"].items() if "baseline" in system]


def trained_names(comparison: Mapping[str, Any]) -> list[str]:
    """The names of the experiments that are no baselines, in their order."""
    return [name for name, system in comparison["systems"].items() if "baseline" not in system]


class Pair(NamedTuple):
    """The lead of `a` over `b` in the headline metric, with its interval and p value.

    `value` is positive if `a` is better, also for metrics where lower is better.
    """

    a: str
    b: str
    value: float
    low: float
    high: float
    p_value: float
    corrected: float

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0 and the corrected p value is at most ALPHA."""
        return (self.low > 0 or self.high < 0) and self.corrected <= ALPHA

    @property
    def conclusion(self) -> str:
        """Whether the difference is significant, in words."""
        return "significant" if self.significant else "not significant"

    def swapped(self) -> Self:
        """The same test as the lead of `b` over `a`."""
        return self._replace(
            a=self.b, b=self.a, value=0 - self.value, low=0 - self.high, high=0 - self.low
        )


def tested_pairs(comparison: Mapping[str, Any]) -> list[Pair]:
    """Every tested pair of a comparison, in its order, as the lead of the better system."""
    pairs = []
    for pair in comparison["pairs"]:
        lead = Pair(pair["a"], pair["b"], **pair["difference"])
        if headline(comparison).lower_is_better:  # a lower score leads
            lead = lead.swapped()._replace(a=lead.a, b=lead.b)
        pairs.append(lead.swapped() if lead.value < 0 else lead)
    return pairs


def number_of_tests(comparison: Mapping[str, Any]) -> int:
    """The number of pairs on all test sets of a study, for which p values are corrected."""
    return sum(len(results["pairs"]) for results in test_sets(comparison).values())


def pairs_by_names(pairs: Sequence[Pair]) -> dict[tuple[str, str], Pair]:
    """The pairs by (a, b) and by (b, a), each as the lead of the first name."""
    return {(side.a, side.b): side for pair in pairs for side in (pair, pair.swapped())}


def groups_warning(comparison: Mapping[str, Any]) -> str:
    """A warning of test sets on which no pair can be significant with so few groups, else "".

    With G groups, no p value is below 2 ** (1 - G) before the correction, see `paired_difference`,
    nor with more of which only G have anything to score: of these no warning is given.
    Holm's method multiplies it at least by the number of pairs of sets with as few groups.
    """
    sets, least_values = test_sets(comparison), []
    for name, results in sets.items():
        groups = results["groups"]
        pairs = sum(len(other["pairs"]) for other in sets.values() if other["groups"] <= groups)
        if (least := min(1.0, pairs * 2.0 ** (1 - groups))) > ALPHA and results["pairs"]:
            least_values.append(f"{rounded(least)} on {name} ({counted(groups, 'groups')})")
    text = f"Too few groups: no corrected p value is below {listed(least_values)}."
    return text if least_values else ""


def leaders(comparison: Mapping[str, Any]) -> list[str]:
    """The trained experiments that no other beats significantly, in the study's order.

    No two of them differ significantly. Another machine may change their ranks, rarely this list.
    """
    beaten = {pair.b for pair in tested_pairs(comparison) if pair.significant}
    return [name for name in _tested_experiments(comparison) if name not in beaten]


def conclusion(comparison: Mapping[str, Any]) -> str:
    """The sentences of `conclusions` as one text."""
    return " ".join(conclusions(comparison))


def conclusions(comparison: Mapping[str, Any]) -> list[str]:
    """One to three sentences: on the study's `question`, on leaders, and on the best baseline.

    Names are in the study's order, as differences that are not significant rank nothing.
    """
    best, metric = leaders(comparison), headline(comparison)
    scores, verb = headline_scores(comparison), "are" if len(best) > 1 else "is"
    leads = pairs_by_names(tested_pairs(comparison))
    others = [name for name in _tested_experiments(comparison) if name not in best]
    beaten = [name for name in others if all(leads[one, name].significant for one in best)]
    clauses = ["do not differ significantly"] if len(best) > 1 else []
    if beaten and (beaten == others or len(best) == 1):
        count = "all" if beaten == others else f"{len(beaten)} of {len(others)}"
        least = min((leads[one, name] for one in best for name in beaten), key=lambda p: p.value)
        value, low, high = (rounded(x, metric) for x in (least.value, least.low, least.high))
        clauses.append(
            f"{verb} significantly ahead of {count} other trained experiments, the nearest by"
            f" {value} ({low} to {high})"
        )
    if not leads:
        clauses = [f"{verb} not tested against another experiment"]
    clauses = clauses or ["is behind no other trained experiment"]
    values = sorted(scores[name]["value"] for name in best)
    ends = dict.fromkeys(rounded(end, metric) for end in (values[0], values[-1]))
    sentence = f"{listed(best)} ({metric.title} {' to '.join(ends)}) {' and '.join(clauses)}."
    return [*filter(None, [_answer(comparison), sentence, _behind_baseline(comparison)])]


def _answer(comparison: Mapping[str, Any]) -> str:
    """A sentence on the two tested experiments that the study asks about; empty without any."""
    if not comparison["question"]:
        return ""
    a, b = comparison["question"]
    pair, metric = pairs_by_names(tested_pairs(comparison))[a, b], headline(comparison)
    answer = f"No significant difference between {a} and {b} was found"
    if pair.significant:
        pair = pair if pair.value > 0 else pair.swapped()
        answer = f"{pair.a} is significantly ahead of {pair.b}"
    # The score of the first minus that of the second.
    lead = pair.swapped() if metric.lower_is_better else pair
    value, low, high = (signed(end, metric) for end in (lead.value, lead.low, lead.high))
    p = f"corrected p {p_value(pair.corrected)}"
    return f"{answer}: {value} {metric.title} ({low} to {high}; {p})."


def _tested_experiments(comparison: Mapping[str, Any]) -> list[str]:
    """The experiments that tests compare, in the study's order; without tests all but baselines."""
    tested = {name for pair in comparison["pairs"] for name in (pair["a"], pair["b"])}
    return [name for name in trained_names(comparison) if name in tested or not tested]


def _behind_baseline(comparison: Mapping[str, Any]) -> str:
    """A sentence on the experiments that score no better than the best baseline; else empty."""
    metric, scores = headline(comparison), headline_scores(comparison)
    for baseline in [name for name in ranked(comparison) if name in baseline_names(comparison)][:1]:
        value, sign = scores[baseline]["value"], -1 if metric.lower_is_better else 1
        names = [n for n in trained_names(comparison) if sign * (scores[n]["value"] - value) <= 0]
        if names:
            verb = "are" if len(names) > 1 else "is"
            score = rounded(value, metric)
            return f"{listed(names)} {verb} not ahead of the baseline {baseline} ({score})."
    return ""


def tiers(comparison: Mapping[str, Any]) -> dict[str, str]:
    """Letters by tested experiment; two share one if they do not differ. Empty without tests."""
    leads = [(p.a, p.b) for p in tested_pairs(comparison) if p.significant]
    return letters(_tested_experiments(comparison), leads) if comparison["pairs"] else {}


def letters(names: Sequence[str], leads: Collection[tuple[str, str]]) -> dict[str, str]:
    """The letters of each system, a to z, a1, ...; `leads` are pairs that differ, better first.

    Two systems share a letter if and only if no difference between them is established. The first
    letters are those of the systems that lead most and are led least.

    Source: Piepho (2004), "An Algorithm for a Letter-Based Representation of All-Pairwise
    Comparisons". Each letter is a maximal clique of the graph of pairs that do not differ.
    """
    import networkx as nx  # imports slowly

    graph = nx.complete_graph(names)
    graph.remove_edges_from(leads)
    balance = Counter(a for a, _ in leads)
    balance.subtract(b for _, b in leads)

    def order(column: Sequence[str]) -> tuple[float, list[int]]:
        members = sorted(map(names.index, column))
        return -sum(balance[name] for name in column) / len(column), members

    ordered = sorted(nx.find_cliques(graph), key=order)
    return {
        name: "".join(
            f"{ascii_lowercase[index % 26]}{index // 26 or ''}"  # a to z, then a1, b1 and so on
            for index, column in enumerate(ordered)
            if name in column
        )
        for name in names
    }
