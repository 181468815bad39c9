"""TF-IDF and logistic regression: the same numbers as scikit-learn, in plain arrays.

A text is a vector of its n-grams: the count of each, times its inverse document frequency (Spärck
Jones 1972), divided by the length of the vector. Equal to scikit-learn's `TfidfVectorizer` and
`LogisticRegression`; the latter fits the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from wxb.core.errors import WxbError
from wxb.tasks.classification.predictor import Weights, by_class

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WEIGHTS = "model.safetensors"


@dataclass
class Tfidf:
    """A model of K classes with F features, one per n-gram of word ids."""

    vocabulary: int  # word ids are below it
    ngrams: int  # the most words in an n-gram
    sublinear: bool  # 1 + log(count) instead of the count
    keys: NDArray[np.int64]  # (F,), ascending: the n-grams as numbers, see `_keys`
    idf: NDArray[np.float64]  # (F,)
    coef: NDArray[np.float64]  # (K, F), or (1, F) for two classes
    intercept: NDArray[np.float64]  # (K,), or (1,) for two classes

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[NDArray[np.int32]],
        *,
        vocabulary: int,
        ngrams: int,
        min_texts: int,
        sublinear: bool,
    ) -> Tfidf:
        """A model of the n-grams that occur in at least `min_texts` texts; its weights are 0.

        Raises WxbError if no n-gram does, or if int64 has too few numbers for all n-grams.
        """
        if (vocabulary + 1) ** ngrams >= 2**63:
            raise WxbError(
                f"n-grams of {ngrams} among {vocabulary} words are too many for int64; lower"
                " `model.ngrams`"
            )
        by_text = [np.unique(_keys(words, vocabulary, ngrams)[0]) for words in texts]
        keys, counts = np.unique(
            np.concatenate([*by_text, np.empty(0, np.int64)]), return_counts=True
        )
        keys, counts = keys[counts >= min_texts], counts[counts >= min_texts]
        if not len(keys):
            raise WxbError(
                f"no n-gram occurs in {min_texts} of {len(texts)} texts; add texts, or lower"
                " `model.min_texts`"
            )
        idf = np.log((1 + len(texts)) / (1 + counts)) + 1  # as if one more text had all n-grams
        return cls(vocabulary, ngrams, sublinear, keys, idf, np.zeros((1, len(keys))), np.zeros(1))

    def features(self, texts: Sequence[NDArray[np.int32]]) -> csr_array:
        """The vectors of texts (N, F), each of length 1, or 0 for a text without known n-grams."""
        from scipy.sparse import csr_array  # imports slowly

        columns, data, starts = [np.empty(0, np.int64)], [np.empty(0)], [0]
        for words in texts:
            indices, _ = self.ngram_features(words)
            present, counts = np.unique(indices[indices >= 0], return_counts=True)
            weights = (1 + np.log(counts) if self.sublinear else counts) * self.idf[present]
            columns.append(present)
            data.append(weights / (np.sqrt((weights**2).sum()) or 1.0))
            starts.append(starts[-1] + len(present))
        shape = len(texts), len(self.keys)
        return csr_array((np.concatenate(data), np.concatenate(columns), starts), shape)

    def ngram_features(
        self, words: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The feature of each n-gram of a text (N,), -1 if unknown, and its end words (N, 2)."""
        keys, ends = _keys(words, self.vocabulary, self.ngrams)
        indices = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[indices] == keys, indices, -1), ends

    def logits(self, features: csr_array) -> NDArray[np.float64]:
        """Logits (N, K) of features (N, F)."""
        return Weights(self.coef, self.intercept).logits(features)

    def contributions(
        self, words: NDArray[np.int32], best: int, second: int
    ) -> list[tuple[int, int, float]]:
        """First word, last word and weight of each known n-gram of a text.

        The weight is the exact contribution to the logit of class `best` minus that of `second`.
        """
        weights = by_class(self.coef)  # (K, F)
        features = self.features([words]).toarray()[0]
        indices, ends = self.ngram_features(words)
        counts = np.bincount(indices[indices >= 0], minlength=len(features))
        shares = features * (weights[best] - weights[second]) / np.maximum(counts, 1)
        return [
            (int(first), int(last), float(shares[index]))
            for index, (first, last) in zip(indices, ends, strict=True)
            if index >= 0
        ]

    def save_pretrained(self, folder: Path) -> None:
        """Write the arrays as safetensors."""
        arrays = {f.name: np.ascontiguousarray(getattr(self, f.name)) for f in fields(self)}
        folder.mkdir(parents=True, exist_ok=True)
        save_file(arrays, folder / WEIGHTS)

    @classmethod
    def from_pretrained(cls, folder: Path) -> Tfidf:
        """Load what `save_pretrained` wrote."""
        arrays: dict[str, Any] = load_file(folder / WEIGHTS)
        scalars = {name: arrays[name].item() for name in ("vocabulary", "ngrams", "sublinear")}
        return cls(**{**arrays, **scalars})


def _keys(
    words: NDArray[np.int32], vocabulary: int, ngrams: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each n-gram of a text, single words first, and its end words (N, 2).

    The end words are the indices of its first and last word. The number has the word ids, counted
    from 1, as digits, so that different n-grams have different numbers.
    """
    keys, ends = [], []
    digits, key = words.astype(np.int64) + 1, np.zeros(len(words) + 1, np.int64)
    for size in range(1, ngrams + 1):
        count = max(0, len(words) - size + 1)
        key = key[:count] * (vocabulary + 1) + digits[size - 1 :][:count]
        keys.append(key)
        first = np.arange(count)
        ends.append(np.stack([first, first + size - 1], axis=1))
    return np.concatenate(keys), np.concatenate(ends)
