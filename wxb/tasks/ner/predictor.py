"""What all trained recognisers of entities do, whatever their model: texts in, spans out."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wxb.files import write_json
from wxb.params.experiments import Experiment
from wxb.progress import tracked
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.spans import Span
from wxb.text.encoded import Encoded
from wxb.text.tokenizers import encode
from wxb.text.windows import Windows, over

SETTINGS = "wxb.json"

# Candidates for the threshold; 0 keeps every span that the model gives.
THRESHOLDS = np.linspace(0, 0.95, 20)


class ScoredSpan(NamedTuple):
    """A predicted span and how sure the model is of it, in [0, 1]."""

    span: Span
    score: float


class Recognizer:
    """A trained model with its tokenizer. Decoding is this, in training and everywhere else."""

    batch_size = 32  # windows at a time; of about one length

    def __init__(
        self, model: Any, tokenizer: Any, types: Sequence[str], *, max_length: int, stride: int
    ) -> None:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model, self.tokenizer = model.eval().to(device), tokenizer
        self.types, self.max_length, self.stride = list(types), max_length, stride
        self.threshold = 0.0

    def save(self, folder: Path, experiment: Experiment, *, updates: int, examples: int) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's or peft's layout.

        `updates` of the weights were made in training, from so many `examples`, each pass counted.
        """
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        settings = {
            "task": experiment.task,
            "method": experiment.method,
            "types": self.types,
            "threshold": self.threshold,
            "max_length": self.max_length,
            "stride": self.stride,
            "four_bit": experiment.tuning.four_bit,
            "training": {"updates": updates, "examples": examples},
        }
        write_json(folder / SETTINGS, {**settings, **self.own_settings(experiment)})

    def own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """What `load` of this kind needs besides."""
        raise NotImplementedError

    def read(
        self, encoded: Encoded, windows: Windows, chosen: Sequence[int], texts: Sequence[str]
    ) -> list[Any]:
        """What the model says of each of the chosen windows: one batch."""
        raise NotImplementedError

    def glue(
        self, encoded: Encoded, windows: Windows, said: Mapping[int, Any], text: str
    ) -> list[ScoredSpan]:
        """The spans of a text, from what was said of its windows, in their order.

        Where some overlap, `candidates` keeps the surer.
        """
        raise NotImplementedError

    def predict(self, texts: Sequence[str], *, label: str = "predict") -> list[list[ScoredSpan]]:
        """The spans of each text whose score reaches the threshold, sorted and disjoint."""
        return [
            [scored for scored in spans if scored.score >= self.threshold]
            for spans in self.candidates(texts, label=label)
        ]

    def candidates(self, texts: Sequence[str], *, label: str) -> list[list[ScoredSpan]]:
        """The spans of each text whatever their score, sorted and disjoint."""
        encoded = encode(self.tokenizer, texts)
        windows = over(encoded, self.tokenizer, max_length=self.max_length, stride=self.stride)
        # Windows of about one length share a batch; the order decides nothing but speed.
        order = np.argsort(windows.lasts - windows.firsts, kind="stable").tolist()
        batches = [
            order[start : start + self.batch_size]
            for start in range(0, len(order), self.batch_size)
        ]
        windows_of = np.bincount(windows.rows, minlength=len(texts))
        heard: dict[int, dict[int, Any]] = {}
        spans: list[list[ScoredSpan]] = [[] for _ in texts]
        for chosen in tracked(batches, label, len(batches), unit="batch"):
            said = self.read(encoded, windows, chosen, texts)
            for window, one in zip(chosen, said, strict=True):
                row = int(windows.rows[window])
                heard.setdefault(row, {})[window] = one
                if len(heard[row]) == windows_of[row]:
                    in_order = dict(sorted(heard.pop(row).items()))
                    spans[row] = disjoint(self.glue(encoded, windows, in_order, texts[row]))
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

    def token_f1(
        self,
        texts: Sequence[str],
        gold: Sequence[Sequence[Span]],
        predicted: Sequence[Sequence[Span]],
    ) -> float | None:
        """What seqeval gives spans on the tokens of a tagger; None where tokens are not tagged."""
        return None


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
