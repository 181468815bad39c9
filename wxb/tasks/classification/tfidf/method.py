"""Text classification by logistic regression on TF-IDF weights of n-grams.

scikit-learn fits one model for each regularization strength, and validation records choose among
them. Nothing here imports torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded, read_columns
from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Tfidf
from wxb.tasks.classification.predictor import Classifier, WeightedSpan
from wxb.tasks.classification.record.ngrams import Tfidf as Model

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun


class Words(NamedTuple):
    """The words of a text: their ids, and where they start and end."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]


def select_words(encoded: Encoded, texts: Sequence[str], tokenizer: Any) -> list[Words]:
    """Select the tokens of each text that are words, without punctuation and special tokens.

    `encoded` are the tokens of `texts` by a tokenizer of kind `words`. A word has two or more
    letters, digits or underscores, as in scikit-learn, or is one Chinese or Japanese character.
    Unknown words are kept as the unknown token, so that the words around them form no n-gram.
    """
    vocabulary = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["vocab"]
    is_word = np.zeros(len(tokenizer), bool)
    is_word[[id_ for token, id_ in vocabulary.items() if _is_word(token)]] = True
    rows = []
    for text, (first, stop) in zip(texts, pairwise(encoded.splits), strict=True):
        ids, starts, ends = (values[first:stop] for values in encoded[:3])
        mask = is_word[ids]
        for index in np.flatnonzero(ids == tokenizer.unk_token_id):
            mask[index] = _is_word(text[starts[index] : ends[index]])
        rows.append(Words(ids[mask], starts[mask], ends[mask]))
    return rows


def _is_word(token: str) -> bool:
    return token.replace("_", "a").isalnum() and (len(token) > 1 or "\u3040" <= token <= "\u9fff")


class TfidfClassifier(Classifier):
    """A trained TF-IDF model."""

    def ready(self, model: Any) -> Any:
        """The model as it is: it has no device."""
        return model

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Model:
        """Load the model that `save` wrote to a folder."""
        return Model.from_pretrained(folder)

    def size(self, *, trainable: bool = False) -> int:
        """Number of weights and intercepts; unless `trainable`, also of the counted `idf`."""
        arrays = [self.model.coef, self.model.intercept]
        return sum(array.size for array in (arrays if trainable else [*arrays, self.model.idf]))

    def logits(self, encoded: Encoded, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of N texts and their tokens."""
        ids = [text.ids for text in select_words(encoded, texts, self.tokenizer)]
        logits: NDArray[np.float64] = self.model.logits(self.model.features(ids))
        return logits

    def weighted_spans(
        self, encoded: Encoded, texts: Sequence[str], logits: NDArray[np.float64]
    ) -> Iterable[list[WeightedSpan]]:
        """The n-grams of each text, weighted by exact contributions to the logit.

        A contribution is coefficient times feature, for the largest logit minus the second largest.
        """
        for text, row in zip(select_words(encoded, texts, self.tokenizer), logits, strict=True):
            best, second = np.argsort(-row, kind="stable")[:2]
            yield [
                (int(text.starts[first]), int(text.ends[last]), weight)
                for first, last, weight in self.model.contributions(text.ids, best, second)
            ]


class Method(predictor.Method):
    """Logistic regression on TF-IDF weights."""

    experiment: Tfidf
    Predictor = TfidfClassifier

    def dataset(
        self, features: Path, targets: Path, records: Iterable[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item per text: the ids of its words as `input_ids`, and the index of its class."""
        records = [*records]
        texts = [record.input for record in records]
        words = select_words(self.read(features, records), texts, self.tokenizer)
        columns, _ = read_columns(targets, self.TARGETS)
        rows = zip(words, columns["labels"], strict=True)
        return [{"input_ids": text.ids, "labels": label} for text, label in rows]

    def build(self, backbone: Path) -> Callable[[Sequence[NDArray[np.int32]]], Model]:
        """A function that makes the model from training texts, whose n-grams are its features."""
        shape = self.experiment.model.model_dump()
        return partial(Model.from_texts, vocabulary=len(self.tokenizer), **shape)

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Model, list[dict[str, float]]]:
        """The model with the best C, and the history; see `fit_regression`.

        Raises WxbError if the training records have one class only or no n-grams.
        """
        splits = {"train": run.train, "valid": run.valid}
        texts = {split: [item["input_ids"] for item in items] for split, items in splits.items()}
        model = self.build(backbone)(texts["train"])
        features = {split: model.features(words) for split, words in texts.items()}
        _, weights, history = self.fit_regression(features, run)
        model.coef, model.intercept = weights
        return model, history
