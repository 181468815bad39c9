"""The words that decide, over all explained texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

SHOWN = 12  # words of each class


def deciding(rows: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
    """The SHOWN words with the highest positive weights for each class.

    A weight is a mean over all texts with evidence. Of two classes, a weight for one also counts
    against the other.
    """
    explained = [row for row in rows if row.evidence is not None]
    classes = sorted({name for row in explained for name in row.probabilities})
    weights: dict[str, dict[str, float]] = {name: defaultdict(float) for name in classes}
    texts: dict[str, set[str]] = defaultdict(set)
    for row in explained:
        for start, end, weight in row.evidence:
            word = " ".join(row.input[start:end].casefold().split())
            weights[row.predicted][word] += weight
            texts[word].add(row.id)
            if len(classes) == 2:
                other = classes[classes[0] == row.predicted]
                weights[other][word] -= weight
    return {
        name: [
            {"word": word, "weight": round(weight / len(explained), 5), "texts": len(texts[word])}
            for word, weight in sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
            if weight > 0
        ]
        for name, sums in weights.items()
    }
