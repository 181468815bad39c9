"""Classes by logistic regression over the weighted counts of words and n-grams.

Scikit-learn finds the weights, on validation records the strength of their regularization is
chosen; nothing here needs torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.core.progress import tracked
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Encoded, read_columns, read_encoded
from wxb.tasks.classification import predictor
from wxb.tasks.classification.metrics import calibration
from wxb.tasks.classification.params import Regression, Tfidf
from wxb.tasks.classification.predictor import Classifier, weightiest, without_giveaways
from wxb.tasks.classification.tfidf.model import Tfidf as Model

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun


class Words(NamedTuple):
    """The tokens of a text that are counted: their ids, and where they stand."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]


def words(encoded: Encoded, texts: Sequence[str], tokenizer: Any) -> list[Words]:
    """The words of texts, as scikit-learn has them: of two characters, and Chinese ones alone.

    An unknown word is kept, so that its neighbours are none of each other.
    """
    known = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["vocab"]
    counted = np.zeros(len(tokenizer), bool)
    counted[[number for word, number in known.items() if _is_word(word)]] = True
    found = []
    for at, text in enumerate(texts):
        tokens = slice(encoded.splits[at], encoded.splits[at + 1])
        ids, starts, ends = (values[tokens] for values in encoded[:3])
        kept = counted[ids]
        for place in np.flatnonzero(ids == tokenizer.unk_token_id):
            kept[place] = _is_word(text[starts[place] : ends[place]])
        found.append(Words(ids[kept], starts[kept], ends[kept]))
    return found


def _is_word(token: str) -> bool:
    return token.replace("_", "a").isalnum() and (len(token) > 1 or "\u3040" <= token <= "\u9fff")


def _loss(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    """The mean cross-entropy."""
    likely = calibration.softmax(logits)[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(likely, 1e-300)).mean())


class TfidfClassifier(Classifier):
    """A trained model of this method."""

    def ready(self, model: Any) -> Any:
        """The model as it is: it has no device."""
        return model

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Model:
        """The model that was saved in a folder."""
        return Model.from_pretrained(folder)

    def size(self, *, trainable: bool = False) -> int:
        """Weights and constants; with how rare n-grams are, which is counted, not learned."""
        found = [self.model.coef, self.model.intercept]
        return sum(values.size for values in (found if trainable else [*found, self.model.idf]))

    def logits(self, encoded: Encoded, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of texts."""
        found = words(encoded, texts, self.tokenizer)
        logits: NDArray[np.float64] = self.model.logits(self.model.features([w.ids for w in found]))
        return logits

    def evidence(
        self, encoded: Encoded, texts: Sequence[str], logits: NDArray[np.float64]
    ) -> Iterable[tuple[tuple[int, int, float], ...]]:
        """What decided, of the first texts: the share of each n-gram in the logit, exactly.

        It is its coefficient times its weight in the text, for the likeliest class less the next.
        """
        weights = self.model.weights()
        for at, found in enumerate(words(encoded, texts, self.tokenizer)):
            first, second = np.argsort(-logits[at], kind="stable")[:2]
            vector = self.model.features([found.ids]).toarray()[0]
            places, stretches = self.model.places(found.ids)
            number = np.bincount(places[places >= 0], minlength=len(vector))
            shares = vector * (weights[first] - weights[second]) / np.maximum(number, 1)
            yield weightiest(
                [
                    (int(found.starts[a]), int(found.ends[b]), float(shares[place]))
                    for place, (a, b) in zip(places, stretches, strict=True)
                    if place >= 0
                ]
            )


class Method(predictor.Method):
    """Logistic regression over weighted counts."""

    experiment: Tfidf
    Predictor = TfidfClassifier

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item a text: the ids of its words, and the number of its class."""
        texts = [record.input for record in records]
        kept = self.experiment.encoding.giveaways
        encoded = without_giveaways(read_encoded(features), texts, kept)
        columns, _ = read_columns(targets, self.TARGETS)
        rows = zip(words(encoded, texts, self.tokenizer), columns["labels"], strict=True)
        return [{"input_ids": found.ids, "labels": label} for found, label in rows]

    def collator(self) -> Callable[[Sequence[Any]], dict[str, Any]]:
        """A function that takes all items as one batch."""
        return lambda items: {
            "texts": [item["input_ids"] for item in items],
            "labels": np.array([item["labels"] for item in items]),
        }

    def build(self, backbone: Path) -> Callable[[Sequence[NDArray[np.int32]]], Model]:
        """A function that makes the model of training texts: its n-grams are theirs."""
        shape = self.experiment.model.model_dump()
        return partial(Model.of_texts, vocabulary=len(self.tokenizer), **shape)

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Model, list[dict[str, float]]]:
        """The model of that C which does best on validation records, of several the smallest.

        Its history has a row for each C: a step, and an epoch, is an iteration of the solver.
        Raises WxbError where no model can be made of the training texts.
        """
        from sklearn.linear_model import LogisticRegression

        settings: Regression = run.settings
        learnt, held = run.collate(run.train), run.collate(run.valid)
        known = held["labels"] != IGNORED
        try:
            model = self.build(backbone)(learnt["texts"])
        except ValueError as error:
            raise WxbError(str(error)) from None
        features = {
            "train": model.features(learnt["texts"]),
            "valid": model.features(held["texts"]),
        }
        classes = np.unique(learnt["labels"])
        if len(classes) < 2:
            raise WxbError(f"found {len(classes)} class among the training records, expected two")
        history: list[dict[str, float]] = []
        best: tuple[float, Model] | None = None
        steps = 0
        for strength in tracked(sorted(settings.C), run.label, len(settings.C), unit="C"):
            solver = LogisticRegression(
                C=strength,
                class_weight=settings.class_weight,
                max_iter=settings.max_iter,
                tol=settings.tol,
                random_state=run.seed,
            ).fit(features["train"], learnt["labels"])
            model.coef, model.intercept = solver.coef_, solver.intercept_
            logits = {split: model.logits(found) for split, found in features.items()}
            predicted = self.summarize(logits["valid"], held["labels"])
            score = self.compute_metrics(predicted, held["labels"])
            steps += int(solver.n_iter_.max())
            history.append(
                {
                    "step": steps,
                    "epoch": steps,
                    "C": strength,
                    "loss": _loss(logits["train"], learnt["labels"]),
                    "valid_loss": _loss(logits["valid"][known], held["labels"][known]),
                    **{f"valid_{name}": value for name, value in score.items()},
                }
            )
            print(history[-1], flush=True)
            if best is None or score[self.BEST.key] > best[0]:
                best = score[self.BEST.key], Model(**vars(model))
        assert best is not None
        return best[1], history
