"""How often 95% intervals contain the true score, and how often equal systems differ: a simulation.

Each study has test records in groups of unequal sizes. A group has an effect of its own on both
systems, and another on each. Intervals and tests are those of `wxb compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track
from scipy.special import expit, logit

from wxb.metrics import Metric
from wxb.metrics.intervals import Groups, intervals, paired_difference
from wxb.metrics.scorer import ratio
from wxb.project import benchmarks

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

GROUPS = (4, 8, 16, 35, 100)
EFFECTS = {"mild": 0.3, "strong": 0.8}  # standard deviations between groups, of logits or logs
ALPHA = 0.05
POPULATION = 200_000  # groups whose score counts as the true one

STATISTICS = "statistics"  # the name of the columns of a kind

Sums = NDArray[Any]
Rng, Counts, Effects = np.random.Generator, NDArray[np.int64], NDArray[np.float64]


class Kind(NamedTuple):
    """A metric with a model of its statistics."""

    metric: Metric
    draw: Callable[[Rng, Counts, Effects], Sums]
    score: Callable[[Sums], NDArray[np.float64]]
    correlation: float = 0.0  # of a group's effect with the logarithm of its size


class Rates(NamedTuple):
    """Shares of simulated studies."""

    coverage: float  # whose interval contains the true score
    false_alarms: float  # whose test finds a difference between equal systems


def draw_accuracy(rng: Rng, records: Counts, effects: Effects) -> Sums:
    """Correct answers and records of each group: (groups, 2)."""
    return np.stack([rng.binomial(records, expit(logit(0.8) + effects)), records], axis=-1)


def draw_f1(rng: Rng, records: Counts, effects: Effects) -> Sums:
    """Correct, predicted and gold spans of each group: (groups, 3)."""
    gold = records * rng.integers(1, 4, len(records))
    share = expit(logit(0.8) + effects)
    correct = rng.binomial(gold, share)
    return np.stack([correct, correct + rng.poisson(0.8 * gold * (1 - share)), gold], axis=-1)


def draw_cer(rng: Rng, records: Counts, effects: Effects, rate: float = 0.25) -> Sums:
    """Edits and characters of each group: (groups, 2)."""
    return np.stack([rng.poisson(10 * rate * records * np.exp(effects)), 10 * records], axis=-1)


def draw_bleu(rng: Rng, records: Counts, effects: Effects, shares: Sequence[float]) -> Sums:
    """Matching and all n-grams of each group, for n from 1 to 4: (groups, 8)."""
    columns = []
    for n, share in enumerate(shares):
        ngrams = (12 - n) * records
        columns += [rng.binomial(ngrams, expit(logit(share) + effects)), ngrams]
    return np.stack(columns, axis=-1)


def bleu(sums: Sums) -> NDArray[np.float64]:
    """The geometric mean of precisions, in percent, without a penalty for length."""
    precisions = ratio(sums[..., ::2], sums[..., 1::2])
    mean: NDArray[np.float64] = 100 * np.exp(np.log(np.maximum(precisions, 1e-9)).mean(axis=-1))
    return mean


F1 = Kind(Metric("f1", "F1"), draw_f1, lambda s: ratio(2 * s[..., 0], s[..., 1] + s[..., 2]))
CER = Kind(
    Metric("cer", "CER", lower_is_better=True, high=None),
    draw_cer,
    lambda s: ratio(s[..., 0], s[..., 1]),
)
BLEU = Kind(
    Metric("bleu", "BLEU", high=100.0), partial(draw_bleu, shares=(0.6, 0.4, 0.25, 0.15)), bleu
)
KINDS = {
    "accuracy": Kind(
        Metric("accuracy", "accuracy"), draw_accuracy, lambda s: ratio(s[..., 0], s[..., 1])
    ),
    "F1": F1,
    "F1, large groups harder": F1._replace(correlation=-0.6),
    "CER": CER,
    "CER of 0.05": CER._replace(draw=partial(draw_cer, rate=0.05)),
    "BLEU": BLEU,
    "BLEU near 97": BLEU._replace(draw=partial(draw_bleu, shares=(0.99, 0.975, 0.965, 0.95))),
}


def simulate(kind: Kind, groups: int, effect: float, *, times: int, seed: int = 1) -> Rates:
    """Draw `times` studies of two equal systems on `groups` groups."""

    def scores(sums: Mapping[str, Sums]) -> dict[str, NDArray[np.float64]]:
        return {kind.metric.key: kind.score(sums[STATISTICS])}

    rng = np.random.default_rng(seed)
    population, _ = draw(kind, POPULATION, effect, rng)
    true = float(scores(population.total())[kind.metric.key][0])
    covered = differing = 0
    for _ in range(times):
        a, b = draw(kind, groups, effect, rng)
        _, low, high = intervals(a, scores, [kind.metric])[kind.metric.key]
        covered += low <= true <= high
        differing += paired_difference(a, b, scores, kind.metric).p_value <= ALPHA
    return Rates(covered / times, differing / times)


def draw(kind: Kind, groups: int, effect: float, rng: np.random.Generator) -> tuple[Groups, Groups]:
    """Draw one study: two systems of equal quality on the same groups, of 15 records or so."""
    sizes = rng.lognormal(np.log(15), 0.5, groups)
    records = np.maximum(2, sizes).astype(np.int64)
    shared, *own = rng.normal(0, effect * 0.5**0.5, (3, groups))
    size = np.log(sizes / 15) / 0.5 * effect * 0.5**0.5
    shared = kind.correlation * size + (1 - kind.correlation**2) ** 0.5 * shared
    a, b = (
        Groups({STATISTICS: kind.draw(rng, records, shared + effects)[:, np.newaxis]}, records)
        for effects in own
    )
    return a, b


@app.command()
def main(
    times: Annotated[int, typer.Option(min=1, help="Simulated studies of a row.")] = 2000,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table.")] = None,
) -> None:
    """Simulate studies with 4 to 100 groups, and print how often intervals and tests are right."""
    cells = track([*product(KINDS, EFFECTS, GROUPS)], transient=True)
    rates = {
        (name, effect, groups): simulate(KINDS[name], groups, EFFECTS[effect], times=times)
        for name, effect, groups in cells
    }
    rows = [
        {
            "metric": name,
            "effect of groups": effect,
            **{f"{groups} groups": rates[name, effect, groups] for groups in GROUPS},
        }
        for name, effect in product(KINDS, EFFECTS)
    ]
    benchmarks.report(rows, output, times=times)


if __name__ == "__main__":
    benchmarks.run(app)
