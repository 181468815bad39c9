"""TF-IDF weights of n-grams, by scikit-learn's vectorizer, and a linear layer on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import regex
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.tasks.baselines import LETTER, MARK
from wxb.tasks.classification.params import TfidfModel
from wxb.tasks.methods import FittedModel

# A word has two or more letters, digits, marks or _, or is one Chinese or Japanese character.
WORD = regex.compile(rf"[\u3040-\u9fff]|{LETTER}[{LETTER}{MARK}]+", regex.V1)


@dataclass
class Tfidf(FittedModel):
    """A model of K classes with F features, one per n-gram."""

    vocabulary: Mapping[str, Any]  # the arguments of `_vectorizer`, with the n-grams (F,)
    idf: NDArray[np.float64]  # (F,)
    coef: NDArray[np.float64]  # (K, F)
    intercept: NDArray[np.float64]  # (K,)

    @classmethod
    def from_texts(cls, texts: Sequence[str], settings: TfidfModel) -> Self:
        """An untrained model of the n-grams in `min_texts` or more texts; WxbError without any."""
        options = settings.model_dump(include={"ngrams", "sublinear"})
        vectorizer = _vectorizer(**options, min_df=settings.min_texts)
        try:
            vectorizer.fit(texts)
        except ValueError as error:  # no n-gram is left
            raise WxbError(
                f"no n-gram occurs in {settings.min_texts} of {len(texts)} texts; add texts, or"
                " lower `model.min_texts`"
            ) from error
        options["vocabulary"] = vectorizer.get_feature_names_out().tolist()
        idf = vectorizer.idf_
        return cls(options, idf, coef=np.zeros((1, len(idf))), intercept=np.zeros(1))

    @cached_property
    def vectorizer(self) -> Any:
        """scikit-learn's TfidfVectorizer, fitted."""
        vectorizer = _vectorizer(**self.vocabulary)
        vectorizer.idf_ = self.idf
        return vectorizer

    def size(self, *, trainable: bool = False) -> int:
        """Number of weights and intercepts; unless `trainable`, with the `idf` of each n-gram."""
        return super().size() - (len(self.idf) if trainable else 0)

    def features(self, texts: Sequence[str]) -> Any:
        """Sparse vectors of texts (N, F), of length 1; 0 for a text without known n-grams."""
        from scipy.sparse import csr_array  # imports slowly

        if not texts:  # an error in scikit-learn
            return csr_array((0, len(self.idf)))
        return self.vectorizer.transform(texts)

    def logits(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Logits (N, K) of N texts."""
        return np.asarray(self.features(texts) @ self.coef.T + self.intercept)


def _vectorizer(ngrams: int, sublinear: bool, **options: Any) -> Any:  # of lower-case WORDs
    from sklearn.feature_extraction.text import TfidfVectorizer  # its import takes a second

    return TfidfVectorizer(
        tokenizer=WORD.findall,
        token_pattern=None,
        ngram_range=(1, ngrams),
        sublinear_tf=sublinear,
        **options,
    )
