"""The tables of a study: as Markdown, as columns for a terminal, and as a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import stdev
from typing import TYPE_CHECKING, Any

from wxb.core.wording import counted
from wxb.metrics import TEST, Metric
from wxb.reporting.charts.baselines import is_baseline, without_baselines
from wxb.reporting.charts.formatting import (
    amount,
    duration,
    listed,
    nearness_text,
    rounded,
    with_interval,
)
from wxb.reporting.charts.pairs import claim, groups_warning, tiers, verdicts
from wxb.reporting.charts.scores import headline, metrics

if TYPE_CHECKING:
    import pandas as pd

# Keys of a system in a comparison that are no scores: model size and amount of training.
SIZES = ("parameters", "trainable_parameters", "updates", "examples")
INTERVAL = "(95% interval)"


def test_sets(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The comparison on each test set, by its name."""
    return {TEST: comparison, **comparison["further"]}


def study_table(comparison: Mapping[str, Any]) -> pd.DataFrame:
    """A row for each test set and experiment: scores, shares, counts and sizes, unrounded.

    Details of a system are included if they are flat counts.
    """
    import pandas as pd  # takes a second, which the other tables need not wait for

    return pd.DataFrame(
        [
            {
                "experiment": name,
                "test_set": test_set,
                **{
                    f"{score}{suffix}": system[score][part]
                    for score in metrics(results)
                    for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                },
                **{share: system.get(share) for share in results["shares"]},
                **{key: count for key, count in system.items() if key in results["counts"]},
                **_flat_details(system, results),
                **{size: comparison["systems"][name][size] for size in SIZES},
            }
            for test_set, results in test_sets(comparison).items()
            for name, system in results["systems"].items()
        ]
    )


def _flat_details(system: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: count
        for key, detail in system.items()
        if isinstance(detail, Mapping) and key not in results["metrics"]
        for name, count in detail.items()
        if isinstance(count, int)
    }


def markdown(comparison: Mapping[str, Any], seconds: Mapping[str, float] | None = None) -> str:
    """The study in Markdown: its tables, its conclusion, and its paired tests in words.

    `seconds` are training times per seed by experiment; leave them out if the text must be
    reproducible.
    """
    signature = comparison["signature"]
    parts = [
        f"**{comparison['title']}**\n",
        score_table(comparison),
        *(f"{note}\n" for note in [caption(comparison)] if note),
        f"{claim(comparison)}\n",
        *_tests(comparison),
        *_shares(comparison),
        f"Training{' and its time' if seconds else ''}:\n",
        markdown_table(_training_rows(without_baselines(comparison), seconds)),
        "".join(f"{test_set_line(*item)}\n" for item in test_sets(comparison).items())
        + f"{signature[0].upper()}{signature[1:]}; intervals and p values:"
        f" {uncertainty(comparison)}.\n",
    ]
    return "\n".join(parts)


def score_table(comparison: Mapping[str, Any]) -> str:
    """The scores of a study as a Markdown table."""
    return markdown_table(_score_rows(comparison))


def caption(comparison: Mapping[str, Any]) -> str:
    """What the scores and tiers of a table mean, in sentences."""
    sentences = ["Experiments that share a tier do not differ beyond noise."]
    if not comparison["pairs"]:
        sentences = []
    if len(comparison["seeds"]) == 1:
        sentences.append("One seed: the interval covers test records, not retraining.")
    return " ".join(sentences)


def score_columns(comparison: Mapping[str, Any]) -> tuple[list[list[str]], int]:
    """The header and rows of the score table without counts, and how many columns are required.

    These are the names, the tiers and the headline metric on each test set.
    """
    required = 1 + len(_tier_column(comparison)) + len(test_sets(comparison))
    count = required - 1 + len(metrics(comparison))
    return [row[:count] for row in _score_rows(comparison)], required


def _score(system: Mapping[str, Any], metric: Metric) -> str:
    """A metric with its interval; for several seeds, mean and standard deviation."""
    runs = system[f"{metric.key}_by_run"]
    spread = f" ± {rounded(stdev(runs), metric)}" if len(runs) > 1 else ""
    return with_interval(system[metric.key], metric, spread)


def _tier_column(comparison: Mapping[str, Any]) -> list[dict[str, str]]:
    """The letters of each experiment, "" without a test; no column if there are no tests."""
    letters = tiers(comparison)
    return [{name: letters.get(name, "") for name in comparison["systems"]}] if letters else []


def _name(comparison: Mapping[str, Any], name: str) -> str:
    """The name of an experiment in a table, marked if it is a baseline."""
    return f"{name} (baseline)" if is_baseline(comparison["systems"][name]) else name


def _headline_cells(comparison: Mapping[str, Any], name: str) -> list[str]:
    """The headline metric of an experiment on each test set."""
    metric = headline(comparison)
    return [_score(each["systems"][name], metric) for each in test_sets(comparison).values()]


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose first row is the header; all columns but the first are numbers."""
    header, *others = rows
    ruled = [header, ["---", *["---:"] * (len(header) - 1)], *others]
    return "".join(f"| {' | '.join(row)} |\n" for row in ruled)


def _score_rows(comparison: Mapping[str, Any]) -> list[list[str]]:
    seeds = len(comparison["seeds"])
    mean = f", mean ± deviation of {seeds} seeds" if seeds > 1 else ""
    first = headline(comparison)
    others = [metric for metric in metrics(comparison).values() if metric != first]
    titles = [
        f"{first.title}{mean} {INTERVAL}",
        *(f"{name}: {first.title} {INTERVAL}" for name in comparison["further"]),
        *(metric.title for metric in others),
        *comparison["counts"].values(),
    ]
    return _tiered_rows(
        comparison,
        titles,
        lambda name, system: [
            *_headline_cells(comparison, name),
            *(rounded(system[metric.key]["value"], metric) for metric in others),
            *(f"{system[count]:,}" for count in comparison["counts"]),
        ],
    )


def _tiered_rows(
    comparison: Mapping[str, Any],
    titles: Sequence[str],
    cells: Callable[[str, Mapping[str, Any]], Sequence[str]],
) -> list[list[str]]:
    """A header and a row for each experiment: its name, its tier and its other cells."""
    tier = _tier_column(comparison)
    return [
        ["experiment", *("tier" for _ in tier), *titles],
        *(
            [_name(comparison, name), *(letters[name] for letters in tier), *cells(name, system)]
            for name, system in comparison["systems"].items()
        ),
    ]


def shares(comparison: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The shares known of all systems: test set, key, and title."""
    return [
        (test_set, share, title)
        for test_set, results in test_sets(comparison).items()
        for share, title in results["shares"].items()
        if all(share in system for system in results["systems"].values())
    ]


def _shares(comparison: Mapping[str, Any]) -> list[str]:
    """A table of the shares with its caption; empty if there are none."""
    sets = test_sets(comparison)
    columns = shares(comparison)
    if not columns:
        return []
    rows = [
        ["experiment", *(f"{test_set}: {title}" for test_set, _, title in columns)],
        *(
            [
                _name(comparison, name),
                *(rounded(sets[s]["systems"][name][key]) for s, key, _ in columns),
            ]
            for name in comparison["systems"]
        ),
    ]
    return ["Further shares, without intervals:\n", markdown_table(rows)]


def _training_rows(
    comparison: Mapping[str, Any], seconds: Mapping[str, float] | None
) -> list[list[str]]:
    timed = ["examples a second", "training"] if seconds else []
    return [
        ["experiment", "parameters", "updates", "examples", *timed],
        *(
            [
                name,
                _parameters(system),
                f"{system['updates']:,}",
                f"{system['examples']:,}",
                *(_speed(system, seconds.get(name)) if seconds else []),
            ]
            for name, system in comparison["systems"].items()
        ),
    ]


def _speed(system: Mapping[str, Any], seconds: float | None) -> list[str]:
    if not seconds:
        return ["–", "–"]
    return [f"{system['examples'] / seconds:,.0f}", duration(seconds)]


def side_by_side(
    comparisons: Mapping[str, Mapping[str, Any]], trained_on: Mapping[str, int | None]
) -> str:
    """Markdown tables of the headline metric of several studies: a column for each study.

    Experiments share a row if their names are equal without the study's. Studies with the same
    headline share a table. `trained_on` is the number of training records, None if unknown.
    """
    groups: dict[Metric, dict[str, Mapping[str, Any]]] = {}
    for study, comparison in comparisons.items():
        groups.setdefault(headline(comparison), {})[study] = comparison
    return "\n".join(_study_columns(metric, group, trained_on) for metric, group in groups.items())


def _study_columns(
    metric: Metric,
    comparisons: Mapping[str, Mapping[str, Any]],
    trained_on: Mapping[str, int | None],
) -> str:
    letters = {study: tiers(comparison) for study, comparison in comparisons.items()}
    scores = {
        study: {
            name.removeprefix(f"{study}-"): f"{_score(system, metric)}"
            f" {letters[study].get(name, '')}".rstrip()
            for name, system in comparison["systems"].items()
        }
        for study, comparison in comparisons.items()
    }
    counts = {
        "test records": {study: each["documents"] for study, each in comparisons.items()},
        "training records": trained_on,
    }
    return markdown_table(
        [
            [f"{metric.title} {INTERVAL} and tier", *comparisons],
            *(
                [name, *(scores[study].get(name, "") for study in comparisons)]
                for name in dict.fromkeys(name for column in scores.values() for name in column)
            ),
            *(
                [title, *("" if count[s] is None else f"{count[s]:,}" for s in comparisons)]
                for title, count in counts.items()
            ),
        ]
    )


def over_seeds(comparison: Mapping[str, Any]) -> str:
    """Markdown table of the headline metric: each seed, then the mean on each test set.

    Without baselines, which have no seed.
    """
    comparison, metric = without_baselines(comparison), headline(comparison)
    titles = [
        *(f"seed {seed}" for seed in comparison["seeds"]),
        *(f"{name}: mean ± deviation {INTERVAL}" for name in test_sets(comparison)),
    ]

    def cells(name: str, system: Mapping[str, Any]) -> list[str]:
        runs = (rounded(score, metric) for score in system[f"{metric.key}_by_run"])
        return [*runs, *_headline_cells(comparison, name)]

    return markdown_table(_tiered_rows(comparison, titles, cells))


def summary(comparison: Mapping[str, Any]) -> str:
    """Markdown table of the headline metric on each test set, without baselines."""
    comparison = without_baselines(comparison)
    spread = " ± deviation" if len(comparison["seeds"]) > 1 else ""
    title = f"{headline(comparison).title}{spread} {INTERVAL}"
    titles = [f"`{name}`: {title}" for name in test_sets(comparison)]
    return markdown_table(
        _tiered_rows(comparison, titles, lambda name, _: _headline_cells(comparison, name))
    )


def _parameters(system: Mapping[str, Any]) -> str:
    """The number of parameters, with that of trainable ones if they are fewer."""
    total, trainable = system["parameters"], system["trainable_parameters"]
    return amount(total) if trainable == total else f"{amount(total)} ({amount(trainable)} trained)"


def _tests(comparison: Mapping[str, Any]) -> Iterator[str]:
    """The paired tests as bullets, where the others are, and a warning if groups are few."""
    if bullets := "".join(f"- {sentence}\n" for sentence in verdicts(comparison)):
        yield bullets
    number = len(comparison["pairs"])
    if number > 1:
        yield (
            f"Holm: p corrected for {number} pairs; all of them are in"
            f" `reports/{comparison['study']}.html`.\n"
        )
    if warning := groups_warning(comparison):
        yield f"{warning}\n"


def test_set_line(name: str, results: Mapping[str, Any]) -> str:
    """The size of a test set, and how near its texts are to training."""
    return f"{name}: {test_set_size(results)}; {nearness_text(results['nearness'])}."


def test_set_size(results: Mapping[str, Any]) -> str:
    """The records, groups and units of a test set."""
    field = f" by {results['grouped_by']}" if results.get("grouped_by") else ""
    is_grouped = results["groups"] < results["documents"]
    groups = f" in {counted(results['groups'], 'groups')}{field}" if is_grouped else ""
    units = (
        "" if results["unit"] == "records" else f", {counted(results['support'], results['unit'])}"
    )
    return f"{counted(results['documents'], 'records')}{groups}{units}"


def uncertainty(comparison: Mapping[str, Any]) -> str:
    """How intervals and p values are computed: the method, and over what."""
    grouped = any(s["groups"] < s["documents"] for s in test_sets(comparison).values())
    seeds = comparison["seeds"]
    variation = f" and seeds {listed([*map(str, seeds)])}" if len(seeds) > 1 else ""
    return f"jackknife over {'groups' if grouped else 'records'}{variation}"
