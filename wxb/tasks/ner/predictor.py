"""What all trained recognisers of entities do, whatever their model: texts in, spans out."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from wxb.core.progress import tracked
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.tokenizers import encode
from wxb.corpora.text.windows import Windows, over
from wxb.tasks.methods import Method, Trained, in_batches
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.record.spans import Span

# Candidates for the threshold; 0 keeps every span that the model gives.
THRESHOLDS = np.linspace(0, 0.95, 20)


class ScoredSpan(NamedTuple):
    """A predicted span and how sure the model is of it, in [0, 1]."""

    span: Span
    score: float


class Recognizer(Trained):
    """A trained model with its tokenizer. Decoding is this, in training and everywhere else."""

    @classmethod
    def from_training(cls, model: Any, method: Method, targets: Path) -> Self:
        """A model that was just trained; it keeps every span until it is calibrated."""
        lengths = method.experiment.encoding.model_dump(include={"max_length", "stride"})
        types = list(method.labels)
        return cls(model, method.tokenizer, types=types, threshold=0.0, **lengths)

    @property
    def types(self) -> list[str]:
        """The types of spans."""
        types: list[str] = self.settings["types"]
        return types

    @property
    def threshold(self) -> float:
        """The lowest score of a span that is predicted."""
        threshold: float = self.settings["threshold"]
        return threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        self.settings["threshold"] = threshold

    @abstractmethod
    def predict_windows(
        self, encoded: Encoded, windows: Windows, chosen: Sequence[int], texts: Sequence[str]
    ) -> list[Any]:
        """What the model says of each of the chosen windows: one batch."""

    @abstractmethod
    def merge_windows(
        self, encoded: Encoded, windows: Windows, found: Mapping[int, Any], text: str
    ) -> list[ScoredSpan]:
        """The spans of a text, from what was predicted of its windows, in their order.

        Where some overlap, `candidates` keeps the surer.
        """

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[list[ScoredSpan]]:
        """The spans of each text whose score reaches the threshold, sorted and disjoint."""
        return [
            [scored for scored in spans if scored.score >= self.threshold]
            for spans in self.candidates(texts, label=label)
        ]

    def describe(self, given: str, prediction: Sequence[ScoredSpan]) -> dict[str, Any]:
        """The spans with what they select, and how sure the model is of each."""
        return {
            "spans": [
                {**span._asdict(), "text": given[span.start : span.end], "score": round(score, 4)}
                for span, score in prediction
            ]
        }

    def show(self, given: str, prediction: Sequence[ScoredSpan]) -> str:
        """The text with each span in brackets, and its type after it."""
        parts, reached = [], 0
        for span, _ in prediction:
            parts += [given[reached : span.start], f"[{given[span.start : span.end]}]({span.type})"]
            reached = span.end
        return "".join([*parts, given[reached:]])

    def candidates(self, texts: Sequence[str], *, label: str) -> list[list[ScoredSpan]]:
        """The spans of each text whatever their score, sorted and disjoint."""
        encoded = encode(self.tokenizer, texts)
        lengths = {name: self.settings[name] for name in ("max_length", "stride")}
        windows = over(encoded, self.tokenizer, **lengths)
        batches = in_batches(windows.lasts - windows.firsts, self.prediction.batch_size)
        windows_of = np.bincount(windows.rows, minlength=len(texts))
        outputs: dict[int, dict[int, Any]] = {}
        spans: list[list[ScoredSpan]] = [[] for _ in texts]
        for chosen in tracked(batches, label, len(batches), unit="batch"):
            predicted = self.predict_windows(encoded, windows, chosen, texts)
            for window, one in zip(chosen, predicted, strict=True):
                row = int(windows.rows[window])
                outputs.setdefault(row, {})[window] = one
                if len(outputs[row]) == windows_of[row]:
                    in_order = dict(sorted(outputs.pop(row).items()))
                    spans[row] = disjoint(
                        self.merge_windows(encoded, windows, in_order, texts[row])
                    )
        return spans

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Set the threshold to the lowest that gives the best F1 on these (validation) records."""
        gold = [record.gold or () for record in records]
        candidates = self.candidates([record.input for record in records], label=label)
        scores = [
            scorer.prf(scorer.counts(gold, [_over(t, spans) for spans in candidates]).sum(axis=0))
            for t in THRESHOLDS
        ]
        self.threshold = float(THRESHOLDS[int(np.argmax([f1 for _, _, f1 in scores]))])


def disjoint(found: Iterable[ScoredSpan]) -> list[ScoredSpan]:
    """Of spans that overlap the surest, then the first, then the longest; sorted."""
    kept: list[ScoredSpan] = []
    for one in sorted(found, key=lambda o: (-o.score, o.span.start, -o.span.end, o.span.type)):
        place = bisect(kept, one.span.start, key=lambda other: other.span.start)
        beside = [other.span for other in kept[max(0, place - 1) : place + 1]]
        if all(s.end <= one.span.start or one.span.end <= s.start for s in beside):
            kept.insert(place, one)
    return kept


def _over(threshold: float, spans: Sequence[ScoredSpan]) -> list[Span]:
    return [span for span, score in spans if score >= threshold]
