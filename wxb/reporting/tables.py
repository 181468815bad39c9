"""A study as a table: for a spreadsheet, and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from wxb.reporting.pairs import too_few, verdicts
from wxb.reporting.wording import amount

SCORES = ("precision", "recall", "f1")


def study_table(comparison: Mapping[str, Any]) -> pd.DataFrame:
    """One row an experiment, in the study's order, numbers as they are (scores 0 to 1)."""
    return pd.DataFrame(
        [
            {
                "experiment": name,
                **{
                    f"{score}{suffix}": system[score][part]
                    for score in SCORES
                    for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                },
                "support": comparison["spans"],
                "predicted": system["predicted"],
                **system["errors"],
                "parameters": system["parameters"],
                "trainable_parameters": system["trainable_parameters"],
            }
            for name, system in comparison["systems"].items()
        ]
    )


def markdown(comparison: Mapping[str, Any]) -> str:
    """The study in Markdown: the table, then what each paired test says."""
    rows = [
        ["experiment", "F1 (95% interval)", "precision", "recall", "spans found", "parameters"],
        ["---", *["---:"] * 5],
        *(
            [
                name,
                f"{_interval(system['f1'])}",
                f"{system['precision']['value']:.3f}",
                f"{system['recall']['value']:.3f}",
                f"{system['predicted']:,} of {comparison['spans']:,}",
                _parameters(system),
            ]
            for name, system in comparison["systems"].items()
        ),
    ]
    lines = [
        f"**{comparison['title']}**",
        "",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        *_tests(comparison),
        "",
        f"{comparison['documents']:,} test records, {comparison['spans']:,} spans; strict span F1;"
        f" intervals and p values from {comparison['resamples']:,} bootstrap resamples of records"
        f" (seed {comparison['seed']}).",
    ]
    return "\n".join(lines) + "\n"


def side_by_side(
    comparisons: Mapping[str, Mapping[str, Any]], trained_on: Mapping[str, int | None]
) -> str:
    """F1 with its interval of several studies whose experiments are called alike, in Markdown.

    `trained_on` is the number of training records of each, None where it is not known.
    """
    scores = {
        study: {
            name.removeprefix(f"{study}-"): _interval(system["f1"])
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


def _interval(score: Mapping[str, float]) -> str:
    return f"{score['value']:.3f} ({score['low']:.3f}–{score['high']:.3f})"
