"""Named entities by tagging tokens: BIO tags, start and end flags, one threshold."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Encoded, read_columns, read_encoded
from wxb.corpora.text.tokenizers import special_tokens
from wxb.corpora.text.windows import Windows
from wxb.tasks.methods import LazyItems
from wxb.tasks.ner.models import words
from wxb.tasks.ner.models.bio import OUTSIDE, Targets, align, best_tags, decode_tags, tag_names
from wxb.tasks.ner.models.predictor import Outputs, Recognizer, ScoredSpan, WindowedTexts
from wxb.tasks.ner.models.windowed import SpanAlignment, WindowedMethod
from wxb.tasks.ner.params import Experiment, TaggingModel, WordFeatures
from wxb.tasks.ner.record import Span, f1


class TaggingExperiment(Experiment):
    """An experiment that tags tokens."""

    required_weights = "hidden states"

    model: TaggingModel

    @property
    def traits(self) -> list[str]:
        """Names of the features that the model has, for tables: bidirectional, word features."""
        model = self.model
        traits = {"bidirectional": model.bidirectional, "word features": model.word_features}
        return [trait for trait, setting in traits.items() if setting]


def _inputs(
    inputs: WindowedTexts, window: int, tokenizer: Any, word_features: WordFeatures | None
) -> dict[str, NDArray[Any]]:
    """`input_ids` with special tokens, and any word features as `words`; no padding or mask."""
    texts, encoded, windows = inputs
    before, after = special_tokens(tokenizer)
    tokens = slice(windows.reads_from[window], windows.reads_to[window])
    ids = np.concatenate([before, encoded.ids[tokens], after])
    item: dict[str, NDArray[Any]] = {"input_ids": ids}
    if word_features:
        edges = encoded.starts[tokens], encoded.ends[tokens]
        features = words.features(texts[windows.rows[window]], *edges, word_features)
        item["words"] = np.pad(features, ((len(before), len(after)), (0, 0)))
    return item


class TaggingRecognizer(Recognizer):
    """A trained tagger. The score of a span is the larger of p_start and p_end at its edges."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the tagger that `save` wrote to a folder."""
        from wxb.tasks.ner.models.tagger import Tagger

        shape = TaggingModel(**{name: settings[name] for name in TaggingModel.model_fields})
        return Tagger.from_pretrained(
            folder,
            tags=len(tag_names(settings["types"])),
            settings=shape,
            bidirectional=shape.bidirectional,
            four_bit=settings["four_bit"],
        )

    def predict_windows(self, inputs: WindowedTexts, indices: Sequence[int]) -> list[Any]:
        """For a window's tokens: log P(tag) (T, K), P(a span starts) (T,), P(a span ends) (T,)."""
        import torch

        windows, tokenizer = inputs.windows, self.tokenizer
        features = self.settings["word_features"]
        word_features = WordFeatures(**features) if features else None
        items = [_inputs(inputs, window, tokenizer, word_features) for window in indices]
        with torch.inference_mode():
            output = self.model(**self.batch(items))
        tags = output["tags"].float().log_softmax(-1).cpu().numpy()  # (B, T, K)
        starts, ends = (output[k].float().sigmoid().cpu().numpy() for k in ("starts", "ends"))
        before, lengths = len(special_tokens(tokenizer)[0]), windows.reads_to - windows.reads_from
        inner = [slice(before, before + lengths[window]) for window in indices]
        return [(tags[i, real], starts[i, real], ends[i, real]) for i, real in enumerate(inner)]

    def merge_windows(self, inputs: WindowedTexts, outputs: Outputs) -> list[list[ScoredSpan]]:
        """The spans of each text's best tags; the scores of each token come from one window."""
        texts, encoded, windows = inputs
        columns = []  # of the tokens of each text that are not blank
        for row, parts in outputs.items():
            tokens = slice(*encoded.row_splits[row : row + 2])
            starts, ends = encoded.starts[tokens], encoded.ends[tokens]
            values = (*_merged_windows(windows, parts), starts, ends)
            columns.append([each[ends > starts] for each in values])
        edges = zip(outputs, (each[3:] for each in columns), strict=True)
        continues = [words.continues_word(texts[row], *ends) for row, ends in edges]
        best = best_tags([tags for tags, *_ in columns], continues)
        spans: list[list[ScoredSpan]] = []
        for (_, p_start, p_end, starts, ends), tags in zip(columns, best, strict=True):
            spans.append([])
            for first, stop, kind in decode_tags(tags.tolist()):
                span = Span(int(starts[first]), int(ends[stop - 1]), self.types[kind])
                spans[-1].append(ScoredSpan(span, float(max(p_start[first], p_end[stop - 1]))))
        return spans

    model_metrics = Recognizer.seqeval  # on tokens


def _merged_windows(
    windows: Windows, outputs: Mapping[int, tuple[NDArray[Any], ...]]
) -> tuple[NDArray[Any], ...]:
    """The outputs for all tokens of a text, from those of its windows.

    Of two windows, the next one begins to predict at the token nearest to the middle of their
    overlap that continues no span in either, so that one window sees each span.
    """

    def between(window: int, begin: int, end: int) -> list[NDArray[Any]]:
        first = windows.reads_from[window]
        return [values[begin - first : end - first] for values in outputs[window]]

    indices = [*outputs]
    cuts = [windows.reads_from[indices[0]]]
    for left, right in pairwise(indices):
        begin, end = max(cuts[-1], windows.reads_from[right]), windows.reads_to[left]
        tags = np.array([between(w, begin, end)[0].argmax(axis=1) for w in (left, right)])  # (2, T)
        is_free = ~((tags % 2 == 0) & (tags != OUTSIDE)).any(axis=0)
        free, middle = begin + np.flatnonzero(is_free), windows.predicts_to[left]
        cuts.append(free[np.abs(free - middle).argmin()] if free.size else max(cuts[-1], middle))
    cuts.append(windows.predicts_to[indices[-1]])
    parts = [between(w, *ends) for w, ends in zip(indices, pairwise(cuts), strict=True)]
    return tuple(np.concatenate(values) for values in zip(*parts, strict=True))


class TaggingMethod(WindowedMethod):
    """A tagger of tokens: BIO tags, start and end flags."""

    experiment: TaggingExperiment
    TARGETS = Targets._fields
    METRIC = "f1"
    PREDICTOR = TaggingRecognizer

    def align(self, encoded: Encoded, windows: Windows, records: Sequence[Record]) -> SpanAlignment:
        """The targets of every token, where each text's begin, and the status of gold spans."""
        gold = [record.gold for record in records]
        targets, statuses = align(encoded, windows, gold, self.labels)
        return targets._asdict(), encoded.row_splits, statuses

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> LazyItems:
        """One item per window: inputs and targets; reads `records` only for word features."""
        encoded, (columns, _) = read_encoded(features), read_columns(targets, self.TARGETS)
        windows = self.windows(encoded)
        special = special_tokens(self.tokenizer)
        before, after = (np.full(len(ids), IGNORED, np.int8) for ids in special)
        word_features = self.experiment.model.word_features
        texts = [record.input for record in records] if word_features else []
        inputs = WindowedTexts(texts, encoded, windows)

        def item(window: int) -> dict[str, NDArray[Any]]:
            tokens = slice(windows.reads_from[window], windows.reads_to[window])
            own = _inputs(inputs, window, self.tokenizer, word_features)
            for name, values in columns.items():
                own[name] = np.concatenate([before, values[tokens], after])
            return own

        return LazyItems(range(len(windows.rows)), item)

    def new_model(self, backbone: Path) -> Any:
        """A new tagger on a backbone; the head and any embedding of word features are random."""
        from wxb.tasks.ner.models.tagger import Tagger

        shape = self.experiment.model
        return Tagger.from_backbone(
            backbone,
            self.experiment.tuning,
            {"bidirectional": shape.bidirectional, "native": shape.implementation == "native"},
            tags=len(tag_names(self.labels)),
            settings=shape,
        )

    @staticmethod
    def summarize(outputs: Any, labels: Any) -> Any:
        """The likeliest tag of every token (B, T), padding included; `tags` is the first output."""
        return outputs[0].argmax(-1)

    @staticmethod
    def compute_metrics(predicted: Any, labels: Any) -> dict[str, float]:
        """F1 of spans of tokens during training: over windows, without a threshold."""
        gold = labels[0]
        predicted = np.where(gold == IGNORED, IGNORED, predicted)
        return {"f1": f1(*(map(decode_tags, tags.tolist()) for tags in (gold, predicted)))}

    def model_settings(self, targets: Path) -> dict[str, Any]:
        """The experiment's `model` settings by name: `head`, `word_features` and others."""
        return dict(self.experiment.model.model_dump())
