"""A study as a table: for a spreadsheet, and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

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
                f"{system['parameters'] / 1e6:,.2f} M",
            ]
            for name, system in comparison["systems"].items()
        ),
    ]
    lines = [
        f"**{comparison['title']}**",
        "",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        *(f"- {sentence}" for sentence in verdicts(comparison)),
        "",
        f"{comparison['documents']:,} test records, {comparison['spans']:,} spans; strict span F1;"
        f" intervals and p values from {comparison['resamples']:,} bootstrap resamples of records"
        f" (seed {comparison['seed']}).",
    ]
    return "\n".join(lines) + "\n"


def verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """What the paired tests say, a sentence a pair."""
    return [_verdict(pair["a"], pair["b"], pair["difference"]) for pair in comparison["pairs"]]


def _verdict(a: str, b: str, difference: Mapping[str, float]) -> str:
    """Told from the winner's side, so that a gain is positive and so is its interval."""
    value, low, high = difference["value"], difference["low"], difference["high"]
    if value == 0:
        return f"{a} and {b} have the same F1 (p = {difference['p_value']:.3f})."
    if value < 0:
        a, b, value, low, high = b, a, -value, -high, -low
    noise = (
        f"95% interval of the difference {low:+.3f} to {high:+.3f}, p = {difference['p_value']:.3f}"
    )
    if low <= 0:
        return f"{a} is ahead of {b} by {value:.3f} F1, within noise ({noise})."
    return f"{a} beats {b} by {value:.3f} F1 ({noise})."


def _interval(score: Mapping[str, float]) -> str:
    return f"{score['value']:.3f} ({score['low']:.3f}–{score['high']:.3f})"
