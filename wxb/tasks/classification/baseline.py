"""The most frequent class, or that of the nearest training text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.classification.models.predictor import PROBABILITY, Classifier, Prediction


class BaselineClassifier(baselines.Baseline, Classifier):
    """Predicts the shares of classes in training, or the class of the nearest text with certainty.

    A text that shares no word with training has no nearest text, and gets the shares.
    """

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Prediction]:
        """A prediction for each text."""
        shares = self.model["shares"]
        has_texts = "texts" in self.model
        nearest = self.nearest(texts, caption) if has_texts else [None] * len(texts)
        majority = Prediction(max(self.labels, key=shares.__getitem__), shares)
        certain = {
            name: Prediction(name, {other: float(other == name) for other in self.labels})
            for name in self.labels
        }
        return [certain[found[0]] if found else majority for found in nearest]


class BaselineMethod(baselines.BaselineMethod):
    """A classifier without training."""

    PREDICTOR = BaselineClassifier

    def values(self, records: Sequence[Record], caption: str) -> dict[str, Any]:
        """The share of each class; for the kind `nearest` also texts and their classes."""
        counts, total = Counter(record.gold for record in records), len(records)
        shares = {name: float(f"{counts[name] / total:.{PROBABILITY}g}") for name in self.labels}
        is_majority = self.experiment.model.kind == "majority"
        return {"shares": shares, **({} if is_majority else super().values(records, caption))}


METHOD = BaselineMethod
