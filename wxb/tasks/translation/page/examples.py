"""Example sentences of a page, with the translations of all systems side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wxb.tasks.translation.metrics import PredictionRow, Scorer, sums

COUNT = 4  # sentences of each kind


class Example(NamedTuple):
    """A sentence with its references, and the translation of each system with its chrF."""

    row: PredictionRow
    translations: dict[str, tuple[str, float]]  # by system


def examples(rows: Mapping[str, Sequence[PredictionRow]]) -> dict[str, list[Example]]:
    """COUNT sentences with the best, the worst and the most different translations, by chrF.

    Among equals, longer sources come first, then earlier records. No sentence has two kinds.
    """
    chrf = {name: sums.chrf(Scorer().statistics(system_rows)) for name, system_rows in rows.items()}
    scores = np.stack([*chrf.values()])  # (systems, sentences)
    first = next(iter(rows.values()))
    lengths = np.array([len(row.input) for row in first])
    kinds = {
        "best translations": -scores.mean(axis=0),
        "worst translations": scores.mean(axis=0),
        "most different translations": scores.min(axis=0) - scores.max(axis=0),
    }
    used: set[str] = set()
    by_kind = {}
    for kind, order in kinds.items():
        indices = [int(index) for index in np.lexsort((-lengths, order.round(6)))]
        unused = [index for index in indices if first[index].input not in used][:COUNT]
        used |= {first[index].input for index in unused}
        by_kind[kind] = [
            Example(
                first[index],
                {name: (rows[name][index].predicted, float(chrf[name][index])) for name in rows},
            )
            for index in unused
        ]
    return by_kind
