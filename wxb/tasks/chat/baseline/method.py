"""The answer to the nearest training question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.chat.params import Baseline
from wxb.tasks.chat.predictor import Reply, Responder


class NearestResponder(baselines.Baseline, Responder):
    """Copies a training answer; empty if the conversation shares no word with training."""

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Reply]:
        """The answer to the nearest conversation of each text."""
        gold = self.model.values["gold"]
        neighbours = self.model.texts.nearest(texts, label)
        return [Reply(gold[n.row] if n else "", ended=True) for n in neighbours]


class Method(baselines.Method):
    """A list of answers."""

    experiment: Baseline
    Predictor = NearestResponder

    def values(self, items: Sequence[Record]) -> dict[str, Any]:
        """The conversations and their answers."""
        return {
            "texts": [record.input for record in items],
            "gold": [record.gold["text"] for record in items],
        }
