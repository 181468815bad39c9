"""Named entities by tagging tokens: BIO tags, start and end flags, one threshold.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.align import Fate, align, runs, tag_names  # noqa: F401 (`align` is for the stage)
from wxb.features import IGNORED, Encoded, Targets, read_encoded, read_targets
from wxb.files import read_json, write_json
from wxb.metrics import spans as scorer
from wxb.params import Experiment, Head
from wxb.progress import tracked
from wxb.spans import Span
from wxb.tokenizers import encode
from wxb.tokenizers import load as load_tokenizer

if TYPE_CHECKING:
    import torch

    from wxb.models.tagger import Tagger

SETTINGS = "wxb.json"
TARGETS = Targets._fields
BEST = "f1"  # the validation figure that picks the best checkpoint

BATCH = 32  # texts at a time when predicting; of about one length

# Candidates for the threshold; 0 keeps every span that the tags give.
THRESHOLDS = np.linspace(0, 0.95, 20)


class ScoredSpan(NamedTuple):
    """A predicted span and how sure its edges are: max(p_start, p_end)."""

    span: Span
    score: float


def account(fates: Sequence[Sequence[Fate]]) -> dict[str, int]:
    """How many gold spans met each fate; the counts add up to `gold`."""
    flat = [fate for row in fates for fate in row]
    return {"gold": len(flat), **{fate.value: flat.count(fate) for fate in Fate}}


def build(backbone: Path, types: Sequence[str], experiment: Experiment) -> Tagger:
    """The model that training starts from; seed torch before, the head is random."""
    from wxb.models.backbones import body
    from wxb.models.tagger import Tagger

    return Tagger(body(backbone), len(tag_names(types)), experiment.head)


def dataset(features: Path, targets: Path) -> list[dict[str, NDArray[Any]]]:
    """One item a text: its ids and targets, as the model's `forward` names them."""
    encoded, aligned = read_encoded(features), read_targets(targets)
    columns = {"input_ids": encoded.ids, **aligned._asdict()}
    return [
        {name: values[start:end] for name, values in columns.items()}
        for start, end in pairwise(encoded.splits)
    ]


def collate(items: Sequence[Mapping[str, NDArray[Any]]], pad: int) -> dict[str, torch.Tensor]:
    """Pad items on the right to the longest; targets are IGNORED on padding."""
    import torch

    longest = max(len(item["input_ids"]) for item in items)
    batch = {
        name: np.full((len(items), longest), pad if name == "input_ids" else IGNORED, np.int64)
        for name in items[0]
    }
    mask = np.zeros((len(items), longest), np.int64)
    for row, item in enumerate(items):
        for name, values in item.items():
            batch[name][row, : len(values)] = values
        mask[row, : len(item["input_ids"])] = 1
    return {name: torch.from_numpy(v) for name, v in {**batch, "attention_mask": mask}.items()}


def summarize(logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> torch.Tensor:
    """The likeliest tag of every token (B, T): all that `figures` needs of a batch."""
    return logits[0].argmax(-1)


def figures(predicted: NDArray[Any], labels: Sequence[NDArray[Any]]) -> dict[str, float]:
    """F1 of spans of tokens, without a threshold, while training; truncated gold is not seen."""
    tags = labels[0]
    found = np.where(tags == IGNORED, IGNORED, predicted)
    counts = scorer.counts([_token_spans(r) for r in tags], [_token_spans(r) for r in found])
    return {BEST: scorer.prf(counts.sum(axis=0))[2]}


def _token_spans(tags: NDArray[Any]) -> list[Span]:
    return [Span(first, last, str(kind)) for first, last, kind in runs(tags.tolist())]


class Predictor:
    """A trained tagger: texts in, character spans out. Decoding is this, everywhere."""

    def __init__(
        self, model: Tagger, tokenizer: Any, types: Sequence[str], *, max_length: int
    ) -> None:
        self.model, self.tokenizer, self.types = model.eval(), tokenizer, list(types)
        self.max_length = max_length
        self.threshold = 0.0

    @classmethod
    def load(cls, folder: Path) -> Predictor:
        """Load a folder that `save` wrote."""
        from wxb.models.tagger import Tagger

        settings = read_json(folder / SETTINGS)
        types = settings["types"]
        model = Tagger.from_pretrained(
            folder, tags=len(tag_names(types)), settings=Head(**settings["head"])
        )
        predictor = cls(model, load_tokenizer(folder), types, max_length=settings["max_length"])
        predictor.threshold = settings["threshold"]
        return predictor

    def save(self, folder: Path, experiment: Experiment) -> None:
        """Write model, tokenizer and settings as a folder in Hugging Face's layout."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        write_json(
            folder / SETTINGS,
            {
                "task": experiment.task,
                "types": self.types,
                "threshold": self.threshold,
                "max_length": self.max_length,
                "head": experiment.head.model_dump(),
            },
        )

    def predict(self, texts: Sequence[str], *, label: str = "predict") -> list[list[ScoredSpan]]:
        """The spans of each text whose score reaches the threshold, sorted."""
        return [
            [scored for scored in spans if scored.score >= self.threshold]
            for spans in self.candidates(texts, label=label)
        ]

    def candidates(self, texts: Sequence[str], *, label: str) -> list[list[ScoredSpan]]:
        """The spans of each text whatever their score: BIO argmax, read strictly."""
        import torch

        encoded = encode(self.tokenizer, texts, max_length=self.max_length)
        lengths = np.diff(encoded.splits)
        spans: list[list[ScoredSpan]] = [[] for _ in texts]
        device = next(self.model.parameters()).device
        # Texts of about one length share a batch; the order decides nothing but speed.
        order = np.argsort(lengths, kind="stable")
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        for rows in tracked(batches, label, len(batches), unit="batch"):
            items = [
                {"input_ids": encoded.ids[encoded.splits[r] : encoded.splits[r + 1]]} for r in rows
            ]
            batch = collate(items, self.tokenizer.pad_token_id)
            with torch.inference_mode():
                output = self.model(**{name: value.to(device) for name, value in batch.items()})
            tags = output["tags"].argmax(-1).cpu().numpy()  # (B, T)
            starts, ends = (output[k].float().sigmoid().cpu().numpy() for k in ("starts", "ends"))
            for row, *values in zip(rows, tags, starts, ends, strict=True):
                spans[row] = self._decode(encoded, row, *values)
        return spans

    def _decode(
        self,
        encoded: Encoded,
        row: int,
        tags: NDArray[Any],
        p_start: NDArray[Any],
        p_end: NDArray[Any],
    ) -> list[ScoredSpan]:
        tokens = slice(encoded.splits[row], encoded.splits[row + 1])
        starts, ends = encoded.starts[tokens], encoded.ends[tokens]
        counted = np.where(ends > starts, tags[: len(starts)], IGNORED)
        return [
            ScoredSpan(
                Span(int(starts[first]), int(ends[last - 1]), self.types[kind]),
                float(max(p_start[first], p_end[last - 1])),
            )
            for first, last, kind in runs(counted.tolist())
        ]

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
