"""The two coloured tables of a page: F1 by type, and the difference of every pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wxb.reporting import pairs, published
from wxb.reporting.pairs import Pair


class TypeRow(NamedTuple):
    """F1 of one entity type by system; None where a side knows no such type."""

    kind: str
    support: int | None  # our gold spans, the same for every experiment
    ours: list[float | None]
    published_support: str  # a number, or two where the published systems differ
    published: list[float | None]


def types(comparison: Mapping[str, Any]) -> list[TypeRow]:
    """A row for each type of ours, most gold spans first, then those only others published."""
    ours = {name: system["by_type"] for name, system in comparison["systems"].items()}
    theirs = published.by_type()
    support = support_of(comparison)
    # A type that was only ever predicted, never gold, has no F1 to speak of.
    others = {
        kind: max(row[kind].support for row in theirs.values() if kind in row)
        for kind in dict.fromkeys(kind for rows in theirs.values() for kind in rows)
        if kind not in support
    }
    return [
        TypeRow(
            kind,
            support.get(kind),
            [rows[kind]["f1"] if kind in support else None for rows in ours.values()],
            _range([rows[kind].support for rows in theirs.values() if kind in rows]),
            [rows[kind].f1 if kind in rows else None for rows in theirs.values()],
        )
        for kind in [*support, *sorted(others, key=lambda kind: (-others[kind], kind))]
    ]


def support_of(comparison: Mapping[str, Any]) -> dict[str, int]:
    """Gold spans by type, most first; every system judged the same ones."""
    system = next(iter(comparison["systems"].values()))
    rows = {kind: row["support"] for kind, row in system["by_type"].items() if row["support"]}
    return dict(sorted(rows.items(), key=lambda row: (-row[1], row[0])))


def matrix(comparison: Mapping[str, Any]) -> dict[str, list[Pair | None]]:
    """By experiment, its difference to each in the study's order; None against itself."""
    sides = pairs.between(pairs.results(comparison))
    names = list(comparison["systems"])
    return {a: [None if a == b else sides[a, b] for b in names] for a in names}


def _range(numbers: list[int]) -> str:
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
