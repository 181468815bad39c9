"""A linear-chain conditional random field (Lafferty et al. 2001): weights and decoding.

The log-score of tags is the sum of a weight for each pair of feature and tag, and of one for each
pair of adjacent tags. CRFsuite fits the weights; the rest is here, in plain arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from wxb.core import pretrained
from wxb.core.files import read_json, write_json

WEIGHTS, FEATURES = "model.safetensors", "features.json"


@dataclass(frozen=True)
class CRF:
    """A CRF of K tags and F features. Tags follow each other as in `wxb.tasks.ner.record.bio`."""

    features: Sequence[str]  # (F,)
    weights: NDArray[np.float32]  # (F, K)
    transitions: NDArray[np.float32]  # (K, K), from the row's tag; -inf if it cannot follow
    first: NDArray[np.float32]  # (K,), 0, or -inf if a text cannot begin with the tag

    @classmethod
    def from_weights(
        cls,
        features: Sequence[str],
        states: Mapping[tuple[int, int], float],
        transitions: Mapping[tuple[int, int], float],
        tags: int,
    ) -> CRF:
        """A CRF from weights by (feature, tag) and by (tag, next tag).

        A tag without a weight is never predicted. `I` follows only `B` or `I` of its type.
        """
        weights = np.zeros((len(features), tags), np.float32)
        for key, weight in states.items():
            weights[key] = weight
        between = np.zeros((tags, tags), np.float32)
        for key, weight in transitions.items():
            between[key] = weight
        known = np.zeros(tags, bool)
        known[[tag for _, tag in states]] = True
        inside = np.arange(2, tags, 2)
        first = np.where(known, 0, -np.inf).astype(np.float32)
        first[inside] = -np.inf
        between[:, ~known] = -np.inf
        continues = np.zeros((tags, tags), bool)
        continues[inside - 1, inside] = continues[inside, inside] = True
        continues[:, [0, *(inside - 1)]] = True
        between[~continues] = -np.inf
        used = np.flatnonzero(weights.any(axis=1)).tolist()
        return cls([features[index] for index in used], weights[used], between, first)

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return {feature: index for index, feature in enumerate(self.features)}

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        """exp(transitions), 0 for pairs that cannot follow."""
        return np.exp(self.transitions.astype(np.float64))

    def scores(self, rows: Iterable[Iterable[str]]) -> NDArray[np.float64]:
        """The sums (T, K) of the weights of the features of T words, 0 for unknown features."""
        known = [[self._index_of[f] for f in row if f in self._index_of] for row in rows]
        sums = [self.weights[indices].sum(axis=0, dtype=np.float64) for indices in known]
        return np.array(sums).reshape(-1, len(self.first))

    def best_tags(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The tags (T,) with the highest score in all (Viterbi 1967), for scores (T, K)."""
        total = scores[0] + self.first
        previous = []  # the best tag before each tag
        for row in scores[1:]:
            paths = total[:, None] + self.transitions  # (K, K)
            previous.append(paths.argmax(axis=0))
            total = paths.max(axis=0) + row
        tags = [int(total.argmax())]
        for best in reversed(previous):
            tags.append(int(best[tags[-1]]))
        return np.array(tags[::-1])

    def probabilities(
        self,
        scores: NDArray[np.float64],
        tags: NDArray[np.int64],
        spans: Iterable[tuple[int, int, int]],
    ) -> list[float]:
        """The probability of each span of tags (T,), whatever the other tags are.

        `spans` have the first token, one past the last, and a type, as `decode_tags` yields them.
        Forward and backward sums are scaled to 1 at each word (Rabiner 1989).
        """
        emitted = np.exp(scores - scores.max(axis=1, keepdims=True))  # (T, K)
        forward, scales = np.empty_like(emitted), np.empty(len(emitted))
        incoming = np.exp(self.first.astype(np.float64))
        for word, row in enumerate(emitted):
            forward[word] = incoming * row
            scales[word] = forward[word].sum()
            forward[word] /= scales[word]
            incoming = forward[word] @ self._factors
        emitted /= scales[:, None]
        after = np.ones_like(emitted)  # (T, K): of the words from the next one on, by its tag
        backward = np.ones(len(self.first))
        for word in range(len(emitted) - 1, 0, -1):
            after[word - 1] = emitted[word] * backward
            backward = self._factors @ after[word - 1]
        results = []
        for start, stop, kind in spans:
            probability = forward[start, tags[start]]
            for word in range(start + 1, stop):
                probability *= self._factors[tags[word - 1], tags[word]] * emitted[word, tags[word]]
            if stop < len(tags):
                leaving = self._factors[tags[stop - 1]].copy()
                leaving[2 + 2 * kind] = 0  # the span would go on
                probability *= leaving @ after[stop - 1]
            results.append(min(1.0, float(probability)))
        return results

    def save_pretrained(self, folder: Path) -> None:
        """Write the weights as safetensors, and the features as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        names = ("weights", "transitions", "first")
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in names}
        save_file(arrays, folder / WEIGHTS)
        write_json(folder / FEATURES, self.features)

    @classmethod
    def from_pretrained(cls, folder: Path) -> CRF:
        """Load what `save_pretrained` wrote."""
        arrays = load_file(folder / WEIGHTS)
        # Impossible transitions are minus infinity.
        pretrained.require_finite(folder / WEIGHTS, {"weights": arrays["weights"]})
        return cls(read_json(folder / FEATURES), **arrays)
