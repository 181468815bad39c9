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

from wxb.core.errors import WxbError
from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Encoded, read_columns, read_encoded
from wxb.corpora.text.tokenizers import encode
from wxb.tasks.classification import predictor
from wxb.tasks.classification.metrics.calibration import cross_entropy
from wxb.tasks.classification.params import Regression, Tfidf
from wxb.tasks.classification.predictor import Classifier, WeightedSpan, without_leakage_tokens
from wxb.tasks.classification.tfidf.model import Tfidf as Model

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

    def read(self, texts: Sequence[str]) -> Encoded:
        """The tokens of texts without leakage, not truncated."""
        encoded = encode(self.tokenizer, texts)
        return without_leakage_tokens(encoded, texts, self.settings["leakage"])

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
        weights = self.model.weights()
        for text, row in zip(select_words(encoded, texts, self.tokenizer), logits, strict=True):
            best, second = np.argsort(-row, kind="stable")[:2]
            features = self.model.features([text.ids]).toarray()[0]
            indices, ends = self.model.ngram_features(text.ids)
            counts = np.bincount(indices[indices >= 0], minlength=len(features))
            shares = features * (weights[best] - weights[second]) / np.maximum(counts, 1)
            yield [
                (int(text.starts[first]), int(text.ends[last]), float(shares[index]))
                for index, (first, last) in zip(indices, ends, strict=True)
                if index >= 0
            ]


class Method(predictor.Method):
    """Logistic regression on TF-IDF weights."""

    experiment: Tfidf
    Predictor = TfidfClassifier

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item per text: the ids of its words as `input_ids`, and the index of its class."""
        texts = [record.input for record in records]
        leakage = self.experiment.encoding.leakage
        encoded = without_leakage_tokens(read_encoded(features), texts, leakage)
        columns, _ = read_columns(targets, self.TARGETS)
        rows = zip(select_words(encoded, texts, self.tokenizer), columns["labels"], strict=True)
        return [{"input_ids": text.ids, "labels": label} for text, label in rows]

    def collator(self) -> Callable[[Sequence[Any]], dict[str, Any]]:
        """A function that makes one batch of all items, without padding."""
        return lambda items: {
            "texts": [item["input_ids"] for item in items],
            "labels": np.array([item["labels"] for item in items]),
        }

    def build(self, backbone: Path) -> Callable[[Sequence[NDArray[np.int32]]], Model]:
        """A function that makes the model from training texts, whose n-grams are its features."""
        shape = self.experiment.model.model_dump()
        return partial(Model.from_texts, vocabulary=len(self.tokenizer), **shape)

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Model, list[dict[str, float]]]:
        """The model with the best validation score, or the smallest C among equals; the history.

        The history has a row for each C. Its steps and epochs count the solver's iterations. Also
        prints the rows. Raises WxbError if the training records have one class only or no n-grams.
        """
        from sklearn.linear_model import LogisticRegression

        settings: Regression = run.settings
        train, valid = run.collate(run.train), run.collate(run.valid)
        known = valid["labels"] != IGNORED
        model = self.build(backbone)(train["texts"])
        features = {
            "train": model.features(train["texts"]),
            "valid": model.features(valid["texts"]),
        }
        classes = np.unique(train["labels"])
        if len(classes) < 2:
            raise WxbError("all training records have one class; add records of another")
        history: list[dict[str, float]] = []
        best: tuple[float, Model] | None = None
        steps = 0
        for strength in track(sorted(settings.C), run.label, len(settings.C), unit="C"):
            solver = LogisticRegression(
                C=strength,
                class_weight=settings.class_weight,
                max_iter=settings.max_iter,
                tol=settings.tol,
                random_state=run.seed,
            ).fit(features["train"], train["labels"])
            model.coef, model.intercept = solver.coef_, solver.intercept_
            logits = {split: model.logits(vectors) for split, vectors in features.items()}
            predicted = self.summarize(logits["valid"], valid["labels"])
            score = self.compute_metrics(predicted, valid["labels"])
            steps += int(solver.n_iter_.max())
            history.append(
                {
                    "step": steps,
                    "epoch": steps,
                    "C": strength,
                    "loss": cross_entropy(logits["train"], train["labels"]),
                    "valid_loss": cross_entropy(logits["valid"][known], valid["labels"][known]),
                    **{f"valid_{name}": value for name, value in score.items()},
                }
            )
            print(history[-1], flush=True)
            if best is None or score[self.BEST.key] > best[0]:
                best = score[self.BEST.key], Model(**vars(model))
        assert best is not None
        return best[1], history
