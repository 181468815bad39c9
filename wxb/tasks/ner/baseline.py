"""Entities by the mentions of training."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Literal

from wxb.core.params import experiments
from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.ner.models.predictor import ScoredSpan, SpanFinder
from wxb.tasks.ner.record import Span


class BaselineExperiment(experiments.Baseline):
    """Entities without training."""

    model: experiments.Rule[Literal["mentions"]]


class MentionFinder(baselines.Baseline, SpanFinder):
    """Marks each string that is a mention in training, with its most frequent type.

    Case counts. The longest strings are marked first, and only between words.
    """

    has_scores = False

    def scored_spans(self, texts: Sequence[str], /, *, caption: str) -> list[list[ScoredSpan]]:
        """The marked spans of each text, sorted and disjoint, each with score 1; shows progress."""
        types, rows = self.model["types"], []
        for text in track(texts, caption, len(texts), unit="text"):
            inside = {i for word in baselines.WORD.finditer(text) for i in range(*word.span())[1:]}
            edges = [index for index in range(len(text) + 1) if index not in inside]
            free, spans = [True] * len(text), []  # free: not marked yet
            for length in self.model["lengths"]:
                for start, end in ((edge, edge + length) for edge in edges):
                    kind = types.get(text[start:end]) if end not in inside else None
                    if kind and end <= len(text) and all(free[start:end]):
                        spans.append(ScoredSpan(Span(start, end, kind), 1.0))
                        free[start:end] = [False] * length
            rows.append(sorted(spans))
        return rows


class MentionsMethod(baselines.BaselineMethod):
    """A list of mentions."""

    experiment: BaselineExperiment
    PREDICTOR = MentionFinder

    def values(self, records: Sequence[Record], caption: str) -> dict[str, Any]:
        """`types`: the most frequent type of each mention; `lengths` of mentions, descending."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for record in records:
            for start, end, kind in record.gold:
                counts[record.input[start:end]][kind] += 1
        types = {
            mention: min(counts[mention], key=lambda kind: (-counts[mention][kind], kind))
            for mention in sorted(counts)
        }
        return {"types": types, "lengths": sorted({*map(len, types)}, reverse=True)}
