"""Logistic regression over weighted counts of words and n-grams, as scikit-learn computes it.

A text is a vector of its n-grams: how often each stands in it, times how rare it is among texts
(Spärck Jones 1972), over the length of the vector. What each class is told by is a sum of weights.
Equal to `TfidfVectorizer` and `LogisticRegression`, whose `fit` finds the weights; all is kept in
plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

WEIGHTS = "model.safetensors"


@dataclass
class Tfidf:
    """A trained model. Its n-grams are of words by number; F of them, K classes (1 row for two)."""

    vocabulary: int  # words are numbers below it
    ngrams: int  # words in a row, at most
    sublinear: bool  # 1 + log of a count in its place
    keys: NDArray[np.int64]  # (F,), ascending: what each n-gram is, see `_keys`
    idf: NDArray[np.float64]  # (F,)
    coef: NDArray[np.float64]  # (K or 1, F)
    intercept: NDArray[np.float64]  # (K or 1,)

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[NDArray[np.int32]],
        *,
        vocabulary: int,
        ngrams: int,
        min_texts: int,
        sublinear: bool,
    ) -> Tfidf:
        """The n-grams that stand in `min_texts` of the texts, and how rare they are; no weights.

        Raises ValueError where there is none, and where they are too many to be numbered.
        """
        if (vocabulary + 1) ** ngrams >= 2**63:
            raise ValueError(
                f"{ngrams} words in a row of {vocabulary} have too many forms; lower `model.ngrams`"
            )
        held = [np.unique(_keys(words, vocabulary, ngrams)[0]) for words in texts]
        keys, number = np.unique(np.concatenate([*held, np.empty(0, np.int64)]), return_counts=True)
        keys, number = keys[number >= min_texts], number[number >= min_texts]
        if not len(keys):
            raise ValueError(
                f"found no n-gram that stands in {min_texts} of {len(texts)} texts; bring more, or"
                " lower `model.min_texts`"
            )
        idf = np.log((1 + len(texts)) / (1 + number)) + 1  # as if one more text had each of them
        return cls(vocabulary, ngrams, sublinear, keys, idf, np.zeros((1, len(keys))), np.zeros(1))

    def features(self, texts: Sequence[NDArray[np.int32]]) -> csr_array:
        """The vectors of texts (N, F), each of length 1, or 0 where nothing in it is known."""
        columns, data, starts = [], [], [0]
        for words in texts:
            places, _ = self.places(words)
            found, number = np.unique(places[places >= 0], return_counts=True)
            weights = (1 + np.log(number) if self.sublinear else number) * self.idf[found]
            columns.append(found)
            data.append(weights / (np.sqrt((weights**2).sum()) or 1.0))
            starts.append(starts[-1] + len(found))
        parts = [np.concatenate(part) if part else np.empty(0) for part in (data, columns)]
        return csr_array(
            (parts[0], parts[1].astype(np.int64), starts), (len(texts), len(self.keys))
        )

    def places(self, words: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which feature each n-gram of a text is, -1 for none, and its (first, last) word."""
        keys, stretches = _keys(words, self.vocabulary, self.ngrams)
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1), stretches

    def logits(self, features: csr_array) -> NDArray[np.float64]:
        """Logits (N, K) of features (N, F)."""
        found: NDArray[np.float64] = features @ self.weights().T + self._both(self.intercept)
        return found

    def weights(self) -> NDArray[np.float64]:
        """What each n-gram counts for each class: (K, F)."""
        return self._both(self.coef)

    def _both(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of two classes those of the second are kept: half of each speaks against the first."""
        return values if len(values) > 1 else np.concatenate([-values / 2, values / 2])

    def save_pretrained(self, folder: Path) -> None:
        """Write the arrays as safetensors."""
        arrays = {f.name: np.ascontiguousarray(getattr(self, f.name)) for f in fields(self)}
        folder.mkdir(parents=True, exist_ok=True)
        save_file(arrays, folder / WEIGHTS)

    @classmethod
    def from_pretrained(cls, folder: Path) -> Tfidf:
        """Read what `save_pretrained` wrote."""
        arrays: dict[str, Any] = load_file(folder / WEIGHTS)
        plain = {name: arrays[name].item() for name in ("vocabulary", "ngrams", "sublinear")}
        return cls(**{**arrays, **plain})


def _keys(
    words: NDArray[np.int32], vocabulary: int, ngrams: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each n-gram of a text, single words first, and its first and last word (N, 2).

    It is written with the words as digits from 1 on, so that no two n-grams have the same.
    """
    keys, stretches = [], []
    numbers, key = words.astype(np.int64) + 1, np.zeros(len(words) + 1, np.int64)
    for size in range(1, ngrams + 1):
        count = max(0, len(words) - size + 1)
        key = key[:count] * (vocabulary + 1) + numbers[size - 1 :][:count]
        keys.append(key)
        first = np.arange(count)
        stretches.append(np.stack([first, first + size - 1], axis=1))
    return np.concatenate(keys), np.concatenate(stretches)
