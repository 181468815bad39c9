"""Named entities by tagging tokens: BIO tags, start and end flags, one threshold.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wxb.align import Fate, align, likeliest, runs, tag_names
from wxb.corpora.records import Record
from wxb.features import IGNORED, Encoded, Targets, read_encoded, read_targets, write_targets
from wxb.files import read_json
from wxb.metrics import spans as scorer
from wxb.params import Experiment, Head, WordFeatures
from wxb.recognition import SETTINGS, Recognizer, ScoredSpan
from wxb.spans import Span
from wxb.tokenizers import load as load_tokenizer

if TYPE_CHECKING:
    import torch

    from wxb.models.tagger import Tagger

TARGETS = Targets._fields
BEST = "f1"  # the validation figure that picks the best checkpoint


def vocabulary(tokenizer: Any, types: Sequence[str], experiment: Experiment) -> Any:
    """The tokenizer of the model; tags need no tokens of their own."""
    return tokenizer


def write_aligned(
    path: Path,
    encoded: Encoded,
    records: Sequence[Record],
    types: Sequence[str],
    tokenizer: Any,
) -> list[list[Fate]]:
    """Write the tags of every token; tell what became of each gold span of each record."""
    targets, fates = align(encoded, [record.spans or () for record in records], types)
    write_targets(path, targets, encoded.splits)
    return fates


def build(backbone: Path, types: Sequence[str], experiment: Experiment, tokenizer: Any) -> Tagger:
    """The model that training starts from; seed torch before, the head is random."""
    from wxb import tuning
    from wxb.models.backbones import body
    from wxb.models.tagger import Tagger

    assert experiment.head is not None
    settings = experiment.tuning
    bare = body(
        backbone,
        bidirectional=experiment.bidirectional,
        four_bit=settings.four_bit,
    )
    return Tagger(
        tuning.adapt(bare, settings, task_type="FEATURE_EXTRACTION"),
        len(tag_names(types)),
        experiment.head,
        word_features=experiment.word_features,
        neftune_alpha=settings.neftune_alpha,
    )


def dataset(
    features: Path, targets: Path, tokenizer: Any, texts: Sequence[str], experiment: Experiment
) -> list[dict[str, NDArray[Any]]]:
    """One item a text: its ids and targets, as the model's `forward` names them."""
    encoded, aligned = read_encoded(features), read_targets(targets)
    items = _inputs(encoded, range(len(texts)), texts, experiment.word_features)
    for item, (start, end) in zip(items, pairwise(encoded.splits), strict=True):
        item |= {name: values[start:end] for name, values in aligned._asdict().items()}
    return items


def _inputs(
    encoded: Encoded, rows: Iterable[int], texts: Sequence[str], settings: WordFeatures | None
) -> list[dict[str, NDArray[Any]]]:
    """What the model is given of some texts, before they are padded."""
    from wxb import words

    items: list[dict[str, NDArray[Any]]] = []
    for row in rows:
        tokens = slice(encoded.splits[row], encoded.splits[row + 1])
        items.append({"input_ids": encoded.ids[tokens]})
        if settings:
            offsets = encoded.starts[tokens], encoded.ends[tokens]
            items[-1]["words"] = words.features(texts[row], *offsets, settings)
    return items


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


class Predictor(Recognizer):
    """A trained tagger. The score of a span is how sure its edges are: max(p_start, p_end)."""

    word_features: WordFeatures | None = None

    @classmethod
    def load(cls, folder: Path) -> Predictor:
        """Load a folder that `save` wrote."""
        from wxb.models.tagger import Tagger

        settings = read_json(folder / SETTINGS)
        types = settings["types"]
        words = settings["word_features"]
        word_features = WordFeatures(**words) if words else None
        model = Tagger.from_pretrained(
            folder,
            tags=len(tag_names(types)),
            settings=Head(**settings["head"]),
            word_features=word_features,
            bidirectional=settings["bidirectional"],
            four_bit=settings["four_bit"],
        )
        predictor = cls(model, load_tokenizer(folder), types, max_length=settings["max_length"])
        predictor.threshold = settings["threshold"]
        predictor.word_features = word_features
        return predictor

    @classmethod
    def of(
        cls,
        model: Tagger,
        tokenizer: Any,
        types: Sequence[str],
        experiment: Experiment,
        targets: Path,
    ) -> Predictor:
        """The predictor of a model that was just trained."""
        predictor = cls(model, tokenizer, types, max_length=experiment.max_length)
        predictor.word_features = experiment.word_features
        return predictor

    def own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """The shape of the head, what the body is given, and which way it looks."""
        kept = experiment.model_dump(include={"head", "word_features", "bidirectional"})
        return dict(kept)

    def spans_of(
        self, encoded: Encoded, rows: NDArray[Any], texts: Sequence[str]
    ) -> list[list[ScoredSpan]]:
        """The likeliest tags, read strictly."""
        import torch

        from wxb.batches import collate

        items = _inputs(encoded, rows, texts, self.word_features)
        batch = collate(items, self.tokenizer.pad_token_id)
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            output = self.model(**{name: value.to(device) for name, value in batch.items()})
        tags = output["tags"].float().log_softmax(-1).cpu().numpy()  # (B, T, K)
        starts, ends = (output[k].float().sigmoid().cpu().numpy() for k in ("starts", "ends"))
        return [
            self._decode(texts[row], encoded, row, *values)
            for row, *values in zip(rows, tags, starts, ends, strict=True)
        ]

    def _decode(
        self,
        text: str,
        encoded: Encoded,
        row: int,
        tags: NDArray[Any],
        p_start: NDArray[Any],
        p_end: NDArray[Any],
    ) -> list[ScoredSpan]:
        from wxb.words import continued

        tokens = slice(encoded.splits[row], encoded.splits[row + 1])
        starts, ends = encoded.starts[tokens], encoded.ends[tokens]
        inked = np.flatnonzero(ends > starts)
        counted = np.full(len(starts), IGNORED)
        if len(inked):
            joined = continued(text, starts[inked], ends[inked])
            counted[inked] = likeliest(tags[inked], joined)
        return [
            ScoredSpan(
                Span(int(starts[first]), int(ends[last - 1]), self.types[kind]),
                float(max(p_start[first], p_end[last - 1])),
            )
            for first, last, kind in runs(counted.tolist())
        ]
