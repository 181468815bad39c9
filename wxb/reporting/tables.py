"""A study as tables: for a spreadsheet, and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import stdev
from typing import TYPE_CHECKING, Any

from wxb.metrics import TEST
from wxb.reporting.pairs import too_few, verdicts
from wxb.reporting.wording import amount, duration, listed

if TYPE_CHECKING:
    import pandas as pd

SCORES = ("precision", "recall", "f1")
RECALLS = {"recall_seen": "mentions of training", "recall_unseen": "other mentions"}
# What a system is made of, and what it learned from: of the metrics, beside its scores.
SIZES = ("parameters", "trainable_parameters", "updates", "examples")


def test_sets(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The comparison on each test set, by its name."""
    return {TEST: comparison, **comparison["further"]}


def study_table(comparison: Mapping[str, Any]) -> pd.DataFrame:
    """One row an experiment and test set, in their order, numbers as they are (scores 0 to 1)."""
    import pandas as pd  # takes a second, which the other tables need not wait for

    return pd.DataFrame(
        [
            {
                "experiment": name,
                "test_set": test_set,
                **{
                    f"{score}{suffix}": system[score][part]
                    for score in SCORES
                    for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                },
                **{recall: system.get(recall) for recall in RECALLS},
                "support": found["spans"],
                "predicted": system["predicted"],
                **system["errors"],
                **{size: comparison["systems"][name][size] for size in SIZES},
            }
            for test_set, found in test_sets(comparison).items()
            for name, system in found["systems"].items()
        ]
    )


def markdown(comparison: Mapping[str, Any], seconds: Mapping[str, float] | None = None) -> str:
    """The study in Markdown: its tables, then what each paired test says.

    `seconds` of training by experiment, for one seed, are told where they are known; what must be
    reproducible goes without.
    """
    lines = [
        f"**{comparison['title']}**",
        "",
        *_table(_scores(comparison)),
        "",
        *_tests(comparison),
        "",
        *_recalls(comparison),
        "What each learned from" + (", and in what time:" if seconds else ":"),
        "",
        *_table(_terms(comparison, seconds)),
        "",
        *(_described(name, found) for name, found in test_sets(comparison).items()),
        f"Strict span F1; intervals and p values from {comparison['resamples']:,} bootstrap"
        f" resamples of {resampled(comparison)} (seed {comparison['seed']}).",
    ]
    return "\n".join(lines) + "\n"


def f1(system: Mapping[str, Any]) -> str:
    """F1 with its interval; of several seeds their mean and standard deviation."""
    score, runs = system["f1"], system["f1_by_run"]
    spread = f" ± {stdev(runs):.3f}" if len(runs) > 1 else ""
    return f"{score['value']:.3f}{spread} ({score['low']:.3f}–{score['high']:.3f})"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; its first row is the header, and all but the first column numbers."""
    header, *body = rows
    ruled = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return ["| " + " | ".join(row) + " |" for row in ruled]


def _scores(comparison: Mapping[str, Any]) -> list[list[str]]:
    seeds = len(comparison["seeds"])
    of = f", mean ± deviation of {seeds} seeds" if seeds > 1 else ""
    further = comparison["further"]
    return [
        [
            "experiment",
            f"F1{of} (95% interval)",
            *(f"{name}: F1 (95% interval)" for name in further),
            "precision",
            "recall",
            "right",
            "found",
            "gold",
        ],
        *(
            [
                name,
                f1(system),
                *(f1(found["systems"][name]) for found in further.values()),
                f"{system['precision']['value']:.3f}",
                f"{system['recall']['value']:.3f}",
                f"{system['correct']:,}",
                f"{system['predicted']:,}",
                f"{comparison['spans']:,}",
            ]
            for name, system in comparison["systems"].items()
        ),
    ]


def recalls(comparison: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The recalls told of each test set: its name, the key, and what it is called."""
    return [
        (test_set, recall, title)
        for test_set, found in test_sets(comparison).items()
        for recall, title in RECALLS.items()
        if all(recall in system for system in found["systems"].values())
    ]


def _recalls(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Recall of mentions by whether training has them; nothing where that is not known."""
    sets = test_sets(comparison)
    if told := recalls(comparison):
        yield "Recall, by whether the very mention stands in the training records:"
        yield ""
        yield from _table(
            [
                ["experiment", *(f"{test_set}: {title}" for test_set, _, title in told)],
                *(
                    [name, *(f"{sets[s]['systems'][name][key]:.3f}" for s, key, _ in told)]
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
    """F1 with its interval of several studies whose experiments are called alike, in Markdown.

    `trained_on` is the number of training records of each, None where it is not known.
    """
    scores = {
        study: {
            name.removeprefix(f"{study}-"): f1(system)
            for name, system in comparison["systems"].items()
        }
        for study, comparison in comparisons.items()
    }
    counts = {
        "test records": {study: each["documents"] for study, each in comparisons.items()},
        "training records": trained_on,
    }
    rows = [
        ["F1 (95% interval)", *comparisons],
        ["---", *["---:"] * len(comparisons)],
        *(
            [name, *(scores[study].get(name, "") for study in comparisons)]
            for name in dict.fromkeys(name for column in scores.values() for name in column)
        ),
        *(
            [what, *("" if found[s] is None else f"{found[s]:,}" for s in comparisons)]
            for what, found in counts.items()
        ),
    ]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def over_seeds(comparison: Mapping[str, Any]) -> str:
    """F1 with each seed, and their mean and deviation on each test set, in Markdown."""
    further = comparison["further"]
    rows = [
        [
            "experiment",
            *(f"seed {seed}" for seed in comparison["seeds"]),
            *(f"{name}: mean ± deviation (95% interval)" for name in test_sets(comparison)),
        ],
        *(
            [
                name,
                *(f"{score:.3f}" for score in system["f1_by_run"]),
                f1(system),
                *(f1(found["systems"][name]) for found in further.values()),
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
    return f"{name}: {found['documents']:,} records{groups}, {found['spans']:,} spans."


def resampled(comparison: Mapping[str, Any]) -> str:
    """What is drawn anew for an interval."""
    grouped = any(s["groups"] < s["documents"] for s in test_sets(comparison).values())
    units = "groups" if grouped else "records"
    seeds = comparison["seeds"]
    return f"{units} and of seeds {listed([*map(str, seeds)])}" if len(seeds) > 1 else units
