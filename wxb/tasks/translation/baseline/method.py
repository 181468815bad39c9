"""The translation of the nearest training source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.translation.params import Baseline
from wxb.tasks.translation.predictor import Hypothesis, Translation, Translator

SCORE = 4  # digits of a score


class NearestTranslator(baselines.Baseline, Translator):
    """Copies a training translation; blank if the text shares no word with training."""

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Translation]:
        """The translation of the nearest source of each text; its score is the cosine of both."""
        gold = self.model.values["gold"]
        return [
            Translation([Hypothesis(gold[n.row], round(n.cosine, SCORE))])
            if n
            else Translation([Hypothesis("", 0.0)])
            for n in self.model.texts.nearest(texts, label)
        ]


class Method(baselines.Method):
    """A list of translations."""

    experiment: Baseline
    Predictor = NearestTranslator

    def values(self, items: Sequence[Record]) -> dict[str, Any]:
        """The sources, and the first reference of each."""
        return {
            "texts": [record.input for record in items],
            "gold": [record.gold[0] for record in items],
        }
