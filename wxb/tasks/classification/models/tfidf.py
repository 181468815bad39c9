"""TF-IDF weights of n-grams, by scikit-learn's vectorizer, and a linear layer on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from wxb.core import pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.pretrained import WEIGHTS
from wxb.tasks.classification.params import TfidfModel

VOCABULARY = "vocabulary.json"
# A word has two or more letters, digits or underscores, or is one Chinese or Japanese character.
WORD = r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]{2,}"


@dataclass
class Tfidf:
    """A model of K classes with F features, one per n-gram."""

    vectorizer: Any  # scikit-learn's TfidfVectorizer, fitted
    coef: NDArray[np.float64]  # (K, F)
    intercept: NDArray[np.float64]  # (K,)

    @classmethod
    def from_texts(cls, texts: Sequence[str], settings: TfidfModel) -> Self:
        """An untrained model of the n-grams in `min_texts` or more texts; WxbError without any."""
        vectorizer = _vectorizer(settings.ngrams, settings.sublinear, min_df=settings.min_texts)
        try:
            vectorizer.fit(texts)
        except ValueError as error:  # no n-gram is left
            raise WxbError(
                f"no n-gram occurs in {settings.min_texts} of {len(texts)} texts; add texts, or"
                " lower `model.min_texts`"
            ) from error
        return cls(vectorizer, np.zeros((1, len(vectorizer.idf_))), np.zeros(1))

    def features(self, texts: Sequence[str]) -> Any:
        """Sparse vectors of texts (N, F), of length 1; 0 for a text without known n-grams."""
        from scipy.sparse import csr_array  # imports slowly

        if not texts:  # an error in scikit-learn
            return csr_array((0, len(self.vectorizer.idf_)))
        return self.vectorizer.transform(texts)

    def logits(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        return np.asarray(self.features(texts) @ self.coef.T + self.intercept)

    def save_pretrained(self, folder: Path) -> None:
        """Write the arrays as safetensors, and the n-grams as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        idf = self.vectorizer.idf_
        arrays = {"idf": idf, "coef": self.coef, "intercept": self.intercept}
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, folder / WEIGHTS)
        vocabulary = {
            "ngrams": self.vectorizer.ngram_range[1],
            "sublinear": self.vectorizer.sublinear_tf,
            "vocabulary": self.vectorizer.get_feature_names_out().tolist(),
        }
        write_json(folder / VOCABULARY, vocabulary)

    @classmethod
    def from_pretrained(cls, folder: Path) -> Self:
        """Load what `save_pretrained` wrote; WxbError for missing, unknown or non-finite arrays."""
        arrays = load_file(folder / WEIGHTS)
        names = {"idf", "coef", "intercept"}
        pretrained.require_no_faults(
            folder / WEIGHTS, missing=names - {*arrays}, unexpected={*arrays} - names
        )
        pretrained.require_finite(folder / WEIGHTS, arrays)
        vectorizer = _vectorizer(**read_json(folder / VOCABULARY))
        vectorizer.idf_ = arrays["idf"]
        return cls(vectorizer, arrays["coef"], arrays["intercept"])


def _vectorizer(ngrams: int, sublinear: bool, **options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # its import takes a second

    return TfidfVectorizer(
        token_pattern=WORD, ngram_range=(1, ngrams), sublinear_tf=sublinear, **options
    )
