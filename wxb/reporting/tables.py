"""A study as tables: for a spreadsheet, and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import stdev
from typing import TYPE_CHECKING, Any

from wxb.metrics import TEST, Metric
from wxb.reporting.charts.formatting import amount, duration, listed, rounded, with_interval
from wxb.reporting.charts.pairs import claim, too_few, verdicts
from wxb.reporting.charts.scores import headline, metrics

if TYPE_CHECKING:
    import pandas as pd

# What a system is made of, and what it learned from: of the metrics, beside its scores.
SIZES = ("parameters", "trainable_parameters", "updates", "examples")


def test_sets(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The comparison on each test set, by its name."""
    return {TEST: comparison, **comparison["further"]}


def study_table(comparison: Mapping[str, Any]) -> pd.DataFrame:
    """One row an experiment and test set, in their order, numbers as they are.

    Beside its scores, shares and counts a system's details are told, those that are flat counts.
    """
    import pandas as pd  # takes a second, which the other tables need not wait for

    return pd.DataFrame(
        [
            {
                "experiment": name,
                "test_set": test_set,
                **{
                    f"{score}{suffix}": system[score][part]
                    for score in metrics(found)
                    for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                },
                **{share: system.get(share) for share in found["shares"]},
                **{key: count for key, count in system.items() if key in found["counts"]},
                **_flat_details(system, found),
                **{size: comparison["systems"][name][size] for size in SIZES},
            }
            for test_set, found in test_sets(comparison).items()
            for name, system in found["systems"].items()
        ]
    )


def _flat_details(system: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: count
        for key, detail in system.items()
        if isinstance(detail, Mapping) and key not in found["metrics"]
        for name, count in detail.items()
        if isinstance(count, int)
    }


def markdown(comparison: Mapping[str, Any], seconds: Mapping[str, float] | None = None) -> str:
    """The study in Markdown: its tables, then what each paired test says.

    `seconds` of training by experiment, for one seed, are told where they are known; what must be
    reproducible goes without.
    """
    signature = comparison["signature"]
    lines = [
        f"**{comparison['title']}**",
        "",
        *_table(_scores(comparison)),
        "",
        claim(comparison),
        "",
        *_tests(comparison),
        "",
        *_shares(comparison),
        "What each learned from" + (", and in what time:" if seconds else ":"),
        "",
        *_table(_terms(comparison, seconds)),
        "",
        *(_described(name, found) for name, found in test_sets(comparison).items()),
        f"{signature[0].upper()}{signature[1:]}; intervals and p values from"
        f" {comparison['resamples']:,} bootstrap resamples of {resampled(comparison)}"
        f" (seed {comparison['seed']}).",
    ]
    return "\n".join(lines) + "\n"


def results(comparison: Mapping[str, Any]) -> str:
    """The scores of a study in Markdown, and nothing else."""
    return "".join(f"{line}\n" for line in _table(_scores(comparison)))


COLUMNS = 7  # the most that people compare at a glance


def columns(comparison: Mapping[str, Any]) -> tuple[list[list[str]], int]:
    """The first columns of the table of scores, each with its title, and how many are headlines.

    The names of experiments are the first column, and the headline of each test set follows.
    """
    rows = _scores(comparison)
    headlines = 1 + len(test_sets(comparison))
    some = max(headlines, min(COLUMNS, 1 + len(metrics(comparison)) + len(comparison["further"])))
    return [list(column) for column in zip(*rows, strict=True)][:some], headlines


def _score(system: Mapping[str, Any], metric: Metric) -> str:
    """The headline with its interval; of several seeds their mean and standard deviation."""
    runs = system[f"{metric.key}_by_run"]
    spread = f" ± {rounded(stdev(runs), metric)}" if len(runs) > 1 else ""
    return with_interval(system[metric.key], metric, spread)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; its first row is the header, and all but the first column numbers."""
    header, *body = rows
    ruled = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return ["| " + " | ".join(row) + " |" for row in ruled]


def _scores(comparison: Mapping[str, Any]) -> list[list[str]]:
    seeds = len(comparison["seeds"])
    of = f", mean ± deviation of {seeds} seeds" if seeds > 1 else ""
    further, first = comparison["further"], headline(comparison)
    others = [metric for metric in metrics(comparison).values() if metric != first]
    return [
        [
            "experiment",
            f"{first.title}{of} (95% interval)",
            *(f"{name}: {first.title} (95% interval)" for name in further),
            *(metric.title for metric in others),
            *comparison["counts"].values(),
        ],
        *(
            [
                name,
                _score(system, first),
                *(_score(found["systems"][name], first) for found in further.values()),
                *(rounded(system[metric.key]["value"], metric) for metric in others),
                *(f"{system[count]:,}" for count in comparison["counts"]),
            ]
            for name, system in comparison["systems"].items()
        ),
    ]


def shares(comparison: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The shares told of each test set: its name, the key, and what it is the share of."""
    return [
        (test_set, share, title)
        for test_set, found in test_sets(comparison).items()
        for share, title in found["shares"].items()
        if all(share in system for system in found["systems"].values())
    ]


def _shares(comparison: Mapping[str, Any]) -> Iterator[str]:
    """A table of the shares; nothing where none is known."""
    sets = test_sets(comparison)
    if columns := shares(comparison):
        yield "Further shares, without intervals:"
        yield ""
        yield from _table(
            [
                ["experiment", *(f"{test_set}: {title}" for test_set, _, title in columns)],
                *(
                    [name, *(rounded(sets[s]["systems"][name][key]) for s, key, _ in columns)]
                    for name in comparison["systems"]
                ),
            ]
        )
        yield ""


def _terms(comparison: Mapping[str, Any], seconds: Mapping[str, float] | None) -> list[list[str]]:
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
    """The headline of several studies whose experiments are called alike, in Markdown.

    Studies with one headline share a table. `trained_on` is the number of training records of
    each, None where it is not known.
    """
    tables: dict[Metric, dict[str, Mapping[str, Any]]] = {}
    for study, comparison in comparisons.items():
        tables.setdefault(headline(comparison), {})[study] = comparison
    return "\n".join(_beside(metric, alike, trained_on) for metric, alike in tables.items())


def _beside(
    metric: Metric,
    comparisons: Mapping[str, Mapping[str, Any]],
    trained_on: Mapping[str, int | None],
) -> str:
    scores = {
        study: {
            name.removeprefix(f"{study}-"): _score(system, metric)
            for name, system in comparison["systems"].items()
        }
        for study, comparison in comparisons.items()
    }
    counts = {
        "test records": {study: each["documents"] for study, each in comparisons.items()},
        "training records": trained_on,
    }
    rows = [
        [f"{metric.title} (95% interval)", *comparisons],
        *(
            [name, *(scores[study].get(name, "") for study in comparisons)]
            for name in dict.fromkeys(name for column in scores.values() for name in column)
        ),
        *(
            [what, *("" if found[s] is None else f"{found[s]:,}" for s in comparisons)]
            for what, found in counts.items()
        ),
    ]
    return "".join(f"{line}\n" for line in _table(rows))


def over_seeds(comparison: Mapping[str, Any]) -> str:
    """The headline with each seed, and their mean and deviation on each test set, in Markdown."""
    further, metric = comparison["further"], headline(comparison)
    rows = [
        [
            "experiment",
            *(f"seed {seed}" for seed in comparison["seeds"]),
            *(f"{name}: mean ± deviation (95% interval)" for name in test_sets(comparison)),
        ],
        *(
            [
                name,
                *(rounded(score, metric) for score in system[f"{metric.key}_by_run"]),
                _score(system, metric),
                *(_score(found["systems"][name], metric) for found in further.values()),
            ]
            for name, system in comparison["systems"].items()
        ),
    ]
    return "".join(f"{line}\n" for line in _table(rows))


def summary(comparison: Mapping[str, Any]) -> str:
    """Format the headline metric in Markdown: a row per experiment, a column per test set."""
    further, metric = comparison["further"], headline(comparison)
    spread = " ± deviation" if len(comparison["seeds"]) > 1 else ""
    rows = [
        [
            "experiment",
            *(f"`{name}`: {metric.title}{spread} (95% interval)" for name in test_sets(comparison)),
        ],
        *(
            [
                name,
                _score(system, metric),
                *(_score(found["systems"][name], metric) for found in further.values()),
            ]
            for name, system in comparison["systems"].items()
        ),
    ]
    return "".join(f"{line}\n" for line in _table(rows))


def _parameters(system: Mapping[str, Any]) -> str:
    """All of a system's parameters; in brackets those that were trained, where not all were."""
    every, trained = system["parameters"], system["trainable_parameters"]
    return amount(every) if trained == every else f"{amount(every)} ({amount(trained)} trained)"


def _tests(comparison: Mapping[str, Any]) -> list[str]:
    """The sentences of the paired tests as bullets, and where all of them are."""
    bullets = [f"- {sentence}" for sentence in verdicts(comparison)]
    number = len(comparison["pairs"])
    if number > 1:
        bullets += [
            "",
            f"Holm: p corrected for {number} pairs; all of them are in"
            f" `reports/{comparison['study']}.html`.",
        ]
    return [*bullets, "", warning] if (warning := too_few(comparison)) else bullets


def _described(name: str, found: Mapping[str, Any]) -> str:
    """How much a test set holds."""
    groups = f" in {found['groups']:,} groups" if found["groups"] < found["documents"] else ""
    return f"{name}: {found['documents']:,} records{groups}{_held(found)}."


def _held(found: Mapping[str, Any]) -> str:
    """What the records of a test set hold, with a comma before it; nothing if they are the unit."""
    return "" if found["unit"] == "records" else f", {found['support']:,} {found['unit']}"


def resampled(comparison: Mapping[str, Any]) -> str:
    """What is drawn anew for an interval."""
    grouped = any(s["groups"] < s["documents"] for s in test_sets(comparison).values())
    units = "groups" if grouped else "records"
    seeds = comparison["seeds"]
    return f"{units} and of seeds {listed([*map(str, seeds)])}" if len(seeds) > 1 else units
