"""What all trained recognisers of entities do, whatever their model: texts in, spans out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.features import Encoded
from wxb.files import write_json
from wxb.metrics import spans as scorer
from wxb.params import Experiment
from wxb.progress import tracked
from wxb.spans import Span
from wxb.tokenizers import encode

SETTINGS = "wxb.json"

# Candidates for the threshold; 0 keeps every span that the model gives.
THRESHOLDS = np.linspace(0, 0.95, 20)


class ScoredSpan(NamedTuple):
    """A predicted span and how sure the model is of it, in [0, 1]."""

    span: Span
    score: float


class Recognizer:
    """A trained model with its tokenizer. Decoding is this, in training and everywhere else."""

    batch_size = 32  # texts at a time; of about one length

    def __init__(
        self, model: Any, tokenizer: Any, types: Sequence[str], *, max_length: int
    ) -> None:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model, self.tokenizer = model.eval().to(device), tokenizer
        self.types, self.max_length = list(types), max_length
        self.threshold = 0.0

    def save(self, folder: Path, experiment: Experiment) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's or peft's layout."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        settings = {
            "task": experiment.task,
            "types": self.types,
            "threshold": self.threshold,
            "max_length": self.max_length,
            "four_bit": experiment.tuning.four_bit,
        }
        write_json(folder / SETTINGS, {**settings, **self.own_settings(experiment)})

    def own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """What `load` of this kind needs besides."""
        raise NotImplementedError

    def spans_of(
        self, encoded: Encoded, rows: NDArray[Any], texts: Sequence[str]
    ) -> list[list[ScoredSpan]]:
        """The spans of one batch, in the order of `rows` (into `encoded` and `texts`)."""
        raise NotImplementedError

    def predict(self, texts: Sequence[str], *, label: str = "predict") -> list[list[ScoredSpan]]:
        """The spans of each text whose score reaches the threshold, sorted."""
        return [
            [scored for scored in spans if scored.score >= self.threshold]
            for spans in self.candidates(texts, label=label)
        ]

    def candidates(self, texts: Sequence[str], *, label: str) -> list[list[ScoredSpan]]:
        """The spans of each text whatever their score."""
        encoded = encode(self.tokenizer, texts, max_length=self.max_length)
        # Texts of about one length share a batch; the order decides nothing but speed.
        order = np.argsort(np.diff(encoded.splits), kind="stable")
        batches = [
            order[start : start + self.batch_size]
            for start in range(0, len(order), self.batch_size)
        ]
        spans: list[list[ScoredSpan]] = [[] for _ in texts]
        for rows in tracked(batches, label, len(batches), unit="batch"):
            for row, found in zip(rows, self.spans_of(encoded, rows, texts), strict=True):
                spans[row] = found
        return spans

    def choose_threshold(
        self, texts: Sequence[str], gold: Sequence[Sequence[Span]], *, label: str
    ) -> None:
        """Set the threshold to the lowest that gives the best F1 on these (validation) records."""
        candidates = self.candidates(texts, label=label)
        scores = [
            scorer.prf(scorer.counts(gold, [_over(t, spans) for spans in candidates]).sum(axis=0))
            for t in THRESHOLDS
        ]
        self.threshold = float(THRESHOLDS[int(np.argmax([f1 for _, _, f1 in scores]))])


def _over(threshold: float, spans: Sequence[ScoredSpan]) -> list[Span]:
    return [span for span, score in spans if score >= threshold]
