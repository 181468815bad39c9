"""NER scores published by others, shown next to ours, unchanged.

Source: the 30-day series, github.com/AUSTIN2526/learning-wx-b-in-30-days, days 29-30.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SOURCE = "the 30-day series, github.com/AUSTIN2526/learning-wx-b-in-30-days, days 29-30"
TABLE = Path(__file__).with_suffix(".csv")


class TypeScore(NamedTuple):
    """The scores of a system on one entity type, and its number of gold entities."""

    precision: float
    recall: float
    f1: float
    support: int


class System(NamedTuple):
    """A published system; `f1` is the micro average computed from its rows of the table."""

    name: str
    model: str
    day: int
    f1: float
    note: str = ""


SYSTEMS = (
    System("encoder-bio", "BERT", 29, 0.753),
    System(
        "decoder-bio",
        "Meta-Llama-3-8B, QLoRA r = 32, BIO and span heads",
        29,
        0.559,
        "validation loss 0.14583",
    ),
    System("generative", "Meta-Llama-3-8B, QLoRA, writes TYPE|mention", 30, 0.520),
    System(
        "generative-neftune",
        "the same with NEFTune, alpha = 5",
        30,
        0.574,
        "validation loss 0.10862",
    ),
)


def by_type() -> Mapping[str, Mapping[str, TypeScore]]:
    """The published scores by system, then by entity type."""
    scores: dict[str, dict[str, TypeScore]] = {system.name: {} for system in SYSTEMS}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            scores[row["system"]][row["type"]] = TypeScore(
                precision=float(row["precision"]),
                recall=float(row["recall"]),
                f1=float(row["f1"]),
                support=int(row["support"]),
            )
    return scores
