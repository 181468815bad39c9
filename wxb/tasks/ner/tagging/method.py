"""Named entities by tagging tokens: BIO tags, start and end flags, one threshold.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import IGNORED, Columns, Encoded, read_encoded
from wxb.corpora.text.tokenizers import special_tokens
from wxb.corpora.text.windows import Windows
from wxb.metrics import Metric
from wxb.tasks import methods
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.params import Head, Tagging, WordFeatures
from wxb.tasks.ner.predictor import Recognizer, ScoredSpan
from wxb.tasks.ner.record import encoding
from wxb.tasks.ner.record.spans import Span
from wxb.tasks.ner.tagging.bio import Targets, align, likeliest, read_targets, runs, tag_names

if TYPE_CHECKING:
    import torch

    from wxb.tasks.ner.tagging.model import Tagger


def _inputs(
    encoded: Encoded,
    windows: Windows,
    chosen: Iterable[int],
    texts: Sequence[str],
    tokenizer: Any,
    settings: WordFeatures | None,
) -> list[dict[str, NDArray[Any]]]:
    """What the model is given of some windows, before they are padded."""
    from wxb.tasks.ner.tagging import words

    before, after = special_tokens(tokenizer)
    items: list[dict[str, NDArray[Any]]] = []
    for window in chosen:
        tokens = slice(windows.firsts[window], windows.lasts[window])
        items.append({"input_ids": np.concatenate([before, encoded.ids[tokens], after])})
        if settings:
            text, offsets = (
                texts[windows.rows[window]],
                (encoded.starts[tokens], encoded.ends[tokens]),
            )
            told = words.features(text, *offsets, settings)
            items[-1]["words"] = np.pad(told, ((len(before), len(after)), (0, 0)))
    return items


def _token_spans(tags: NDArray[Any]) -> list[Span]:
    return [Span(first, last, str(kind)) for first, last, kind in runs(tags.tolist())]


class TaggingRecognizer(Recognizer):
    """A trained tagger. The score of a span is how sure its edges are: max(p_start, p_end)."""

    @classmethod
    def from_training(cls, model: Any, method: methods.Method, targets: Path) -> Self:
        """A model that was just trained."""
        predictor = super().from_training(model, method, targets)
        predictor.settings |= predictor.own_settings(method.experiment)
        return predictor

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Tagger:
        """The model that was saved in a folder."""
        from wxb.tasks.ner.tagging.model import Tagger

        return Tagger.from_pretrained(
            folder,
            tags=len(tag_names(settings["types"])),
            settings=Head(**settings["head"]),
            word_features=_word_features(settings),
            bidirectional=settings["bidirectional"],
            four_bit=settings["four_bit"],
        )

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """The shape of the head, what the backbone is given, its direction, and whose it is."""
        own = {"head", "word_features", "bidirectional", "implementation"}
        kept = experiment.model.model_dump(include=own)
        return dict(kept)

    def predict_windows(
        self, encoded: Encoded, windows: Windows, chosen: Sequence[int], texts: Sequence[str]
    ) -> list[tuple[NDArray[Any], ...]]:
        """For the tokens (T,) of each window: log p of every tag (T, K), p of start and of end."""
        import torch

        from wxb.training.batches import collate

        items = _inputs(
            encoded, windows, chosen, texts, self.tokenizer, _word_features(self.settings)
        )
        batch = collate(items, self.tokenizer.pad_token_id)
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            output = self.model(**{name: value.to(device) for name, value in batch.items()})
        tags = output["tags"].float().log_softmax(-1).cpu().numpy()  # (B, T, K)
        starts, ends = (output[k].float().sigmoid().cpu().numpy() for k in ("starts", "ends"))
        before = len(special_tokens(self.tokenizer)[0])
        tokens = [
            slice(before, before + windows.lasts[window] - windows.firsts[window])
            for window in chosen
        ]
        return [
            (tags[at, kept], starts[at, kept], ends[at, kept]) for at, kept in enumerate(tokens)
        ]

    def merge_windows(
        self, encoded: Encoded, windows: Windows, found: Mapping[int, Any], text: str
    ) -> list[ScoredSpan]:
        """The likeliest tags of the whole text, read strictly."""
        from wxb.tasks.ner.tagging.words import continued

        decided = [
            [
                values[windows.begins[w] - windows.firsts[w] :][
                    : windows.stops[w] - windows.begins[w]
                ]
                for values in outputs
            ]
            for w, outputs in found.items()
        ]
        tags, p_start, p_end = (np.concatenate(parts) for parts in zip(*decided, strict=True))
        row = windows.rows[next(iter(found))]
        tokens = slice(encoded.splits[row], encoded.splits[row + 1])
        starts, ends = encoded.starts[tokens], encoded.ends[tokens]
        non_blank = np.flatnonzero(ends > starts)
        counted = np.full(len(starts), IGNORED)
        if len(non_blank):
            joined = continued(text, starts[non_blank], ends[non_blank])
            counted[non_blank] = likeliest(tags[non_blank], joined)
        return [
            ScoredSpan(
                Span(int(starts[first]), int(ends[last - 1]), self.types[kind]),
                float(max(p_start[first], p_end[last - 1])),
            )
            for first, last, kind in runs(counted.tolist())
        ]

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Sequence[ScoredSpan]]
    ) -> dict[str, float]:
        """Micro F1 of the spans on this tagger's tokens by seqeval, strictly IOB2."""
        from wxb.tasks.ner.tagging.seqeval_f1 import seqeval_f1

        gold = [record.gold or () for record in records]
        predicted = [[scored.span for scored in spans] for spans in predictions]
        encoded = tokenizers.encode(self.tokenizer, [record.input for record in records])
        return {"seqeval_f1": seqeval_f1(encoded, gold, predicted)}


def _word_features(settings: Mapping[str, Any]) -> WordFeatures | None:
    shape = settings["word_features"]
    return WordFeatures(**shape) if shape else None


class Method(methods.Method):
    """BIO tags, start and end flags of tokens."""

    experiment: Tagging
    TARGETS = Targets._fields
    BEST = Metric("f1", "F1")
    Predictor = TaggingRecognizer

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The tags of every token, where each text's begin, and counts of gold spans."""

        def lay(
            encoded: Encoded, windows: Windows, records: Sequence[Record]
        ) -> tuple[*Columns, NDArray[np.int8]]:
            gold = [record.gold for record in records]
            targets, statuses = align(encoded, windows, gold, self.labels)
            return targets._asdict(), encoded.splits, statuses

        return encoding.aligned(path, chunks, self.tokenizer, self.experiment.encoding, lay)

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item a window: its ids and targets, as the model's `forward` names them."""
        encoded, tagged = read_encoded(features), read_targets(targets)
        windows = encoding.windows(encoded, self.tokenizer, self.experiment.encoding)
        before, after = map(len, special_tokens(self.tokenizer))
        every = range(len(windows.rows))
        texts = [record.input for record in records]
        word_features = self.experiment.model.word_features
        items = _inputs(encoded, windows, every, texts, self.tokenizer, word_features)
        for item, first, last in zip(items, windows.firsts, windows.lasts, strict=True):
            for name, values in tagged._asdict().items():
                item[name] = np.pad(values[first:last], (before, after), constant_values=IGNORED)
        return items

    def build(self, backbone: Path) -> Tagger:
        """The model that training starts from; the head is random."""
        from wxb.tasks.ner.tagging.model import Tagger

        shape = self.experiment.model
        return Tagger.to_learn(
            backbone,
            self.experiment.tuning,
            bidirectional=shape.bidirectional,
            native=shape.implementation == "native",
            tags=len(tag_names(self.labels)),
            settings=shape.head,
            word_features=shape.word_features,
        )

    @staticmethod
    def summarize(logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> torch.Tensor:
        """The likeliest tag of every token (B, T): all that `compute_metrics` needs of a batch."""
        return logits[0].argmax(-1)

    @staticmethod
    def compute_metrics(
        predicted: NDArray[Any], labels: Sequence[NDArray[Any]]
    ) -> dict[str, float]:
        """F1 of spans of tokens, without a threshold, while training: of windows, not of texts."""
        tags = labels[0]
        found = np.where(tags == IGNORED, IGNORED, predicted)
        counts = scorer.counts([_token_spans(r) for r in tags], [_token_spans(r) for r in found])
        return {Method.BEST.key: scorer.prf(counts.sum(axis=0))[2]}
