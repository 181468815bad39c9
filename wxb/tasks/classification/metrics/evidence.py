"""The words that decide: what was told of single texts, over all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

SHOWN = 12  # words of each class


def deciding(rows: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
    """For each class the words that weigh most for it: mean weight over all texts told of.

    A weight against the predicted class is one for the others, and counts where there are two.
    """
    told = [row for row in rows if row.evidence is not None]
    classes = sorted({name for row in told for name in row.probabilities})
    weights: dict[str, dict[str, float]] = {name: defaultdict(float) for name in classes}
    texts: dict[str, set[str]] = defaultdict(set)
    for row in told:
        for start, end, weight in row.evidence:
            word = " ".join(row.input[start:end].casefold().split())
            weights[row.predicted][word] += weight
            texts[word].add(row.id)
            if len(classes) == 2:
                other = classes[classes[0] == row.predicted]
                weights[other][word] -= weight
    return {
        name: [
            {"word": word, "weight": round(weight / len(told), 5), "texts": len(texts[word])}
            for word, weight in sorted(found.items(), key=lambda one: (-one[1], one[0]))[:SHOWN]
            if weight > 0
        ]
        for name, found in weights.items()
    }
