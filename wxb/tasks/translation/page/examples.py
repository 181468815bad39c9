"""Sentences with the translations of all systems side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.tasks.translation.metrics import Judged, sums

NUMBER = 4  # sentences of each kind


class Example(NamedTuple):
    """A sentence with its references, and what systems make of it with the chrF of each."""

    row: Judged
    translations: dict[str, tuple[str, float]]  # by system


def examples(rows: Mapping[str, Sequence[Judged]]) -> dict[str, list[Example]]:
    """Those that all translate best and worst, and those on which systems differ most, by chrF.

    Of equal ones the longer come first, in the order of the records; none is shown twice.
    """
    table = {name: sums.chrf(_statistics(judged)) for name, judged in rows.items()}
    scores = np.stack([*table.values()])  # (systems, sentences)
    first = next(iter(rows.values()))
    lengths = np.array([len(row.input) for row in first])
    kinds = {
        "translated best": -scores.mean(axis=0),
        "translated worst": scores.mean(axis=0),
        "most different": scores.min(axis=0) - scores.max(axis=0),
    }
    taken: set[str] = set()
    found = {}
    for kind, order in kinds.items():
        places = [int(at) for at in np.lexsort((-lengths, order.round(6)))]
        fresh = [at for at in places if first[at].input not in taken][:NUMBER]
        taken |= {first[at].input for at in fresh}
        found[kind] = [
            Example(
                first[at],
                {name: (rows[name][at].predicted, float(table[name][at])) for name in rows},
            )
            for at in fresh
        ]
    return found


def _statistics(rows: Sequence[Judged]) -> NDArray[np.float64]:
    return sums.statistics([row.predicted for row in rows], [row.gold for row in rows])
