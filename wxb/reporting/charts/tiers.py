"""Tiers of systems that tests cannot separate, as a compact letter display.

Two systems share a letter if and only if no difference between them is established. Letters come
from the tests alone, so they change only if the result of a test does.

Source: Piepho (2004), "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons"
(insert and absorb; here without the letters that say nothing that others do not).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations_with_replacement
from string import ascii_lowercase

Column = frozenset[str]  # the systems that share a letter


def tiers(names: Sequence[str], established: Collection[tuple[str, str]]) -> dict[str, str]:
    """The letters of each system; `established` are the pairs that differ, the better one first.

    The first letters are those of the systems that lead most and are led least.
    """
    columns = [frozenset(names)]
    for a, b in established:
        columns = _absorb([part for column in columns for part in _insert(column, a, b)])
    balance = dict.fromkeys(names, 0)
    for a, b in established:
        balance[a] += 1
        balance[b] -= 1

    def order(column: Column) -> tuple[float, list[int]]:
        members = [index for index, name in enumerate(names) if name in column]
        return -sum(balance[name] for name in column) / len(column), members

    # Columns of few members go first if all their pairs are in others.
    columns = sorted(_needed(sorted(columns, key=lambda c: (len(c), order(c)))), key=order)
    return {
        name: "".join(_letter(i) for i, column in enumerate(columns) if name in column)
        for name in names
    }


def _insert(column: Column, a: str, b: str) -> list[Column]:
    """The columns that replace one which has two systems that differ."""
    return [column - {a}, column - {b}] if {a, b} <= column else [column]


def _absorb(columns: Sequence[Column]) -> list[Column]:
    """The different columns that are not part of another."""
    unique = dict.fromkeys(columns)
    return [column for column in unique if not any(column < other for other in unique)]


def _needed(columns: Sequence[Column]) -> list[Column]:
    """The columns without those whose pairs are all in others, the first ones first."""
    needed = list(columns)
    for column in columns:
        others = [_pairs(other) for other in needed if other is not column]
        if _pairs(column) <= set().union(*others):
            needed.remove(column)
    return needed


def _pairs(column: Column) -> set[tuple[str, str]]:
    return {*combinations_with_replacement(sorted(column), 2)}


def _letter(index: int) -> str:
    """a to z, then a1, b1 and so on."""
    rounds, letter = divmod(index, len(ascii_lowercase))
    return ascii_lowercase[letter] + (str(rounds) if rounds else "")
