"""The base classes of trained models that find entities: texts in, spans out."""

from abc import abstractmethod
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Encoded
from wxb.corpora.text.tokenizers import encode
from wxb.corpora.text.windows import Windows, text_windows
from wxb.tasks.methods import Predictor, batches_by_length
from wxb.tasks.ner.models.bio import align, tag_names
from wxb.tasks.ner.record import Span, bracketed, f1

# Candidates for the threshold; 0 keeps all spans.
THRESHOLDS = np.linspace(0, 0.95, 20)
MERGE_BATCH = 256  # texts that `merge_windows` gets at a time, as decoding many takes little longer

Spans = Sequence[Sequence[Span]]  # of several texts
Outputs = Mapping[int, Mapping[int, Any]]  # of windows, by index of the text, then of the window


class ScoredSpan(NamedTuple):
    """A predicted span and the model's confidence in it, in [0, 1]."""

    span: Span
    score: float


class WindowedTexts(NamedTuple):
    """Texts with their tokens and windows."""

    texts: Sequence[str]
    encoded: Encoded
    windows: Windows


class SpanFinder(Predictor):
    """A trained model that predicts the spans of texts."""

    hub_task, example = "token-classification", '"Call Ann Miller."'
    has_scores = True  # the scores of spans differ

    @property
    def types(self) -> Sequence[str]:
        """The types of spans, in the order of training."""
        return cast("Sequence[str]", self.settings.get("types", self.settings.get("labels")))

    @property
    def threshold(self) -> float:
        """The lowest score of a predicted span; 0 for methods that do not choose one."""
        return cast("float", self.settings.get("threshold", 0.0))

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        self.settings["threshold"] = threshold

    @abstractmethod
    def scored_spans(self, texts: Sequence[str], /, *, caption: str) -> list[list[ScoredSpan]]:
        """The spans of each text before the threshold, sorted and disjoint; shows progress."""

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[list[ScoredSpan]]:
        """The `scored_spans` of each text with scores of at least the threshold; shows progress."""
        return [
            [scored for scored in spans if scored.score >= self.threshold]
            for spans in self.scored_spans(texts, caption=caption)
        ]

    def mask(self, texts: Iterable[Any], /, **options: Any) -> list[Any]:
        """The texts with their spans replaced; the options are those of `masking.Masker`."""
        from wxb.masking.masker import Masker

        return Masker(self, **options).mask(texts)

    def seqeval(self, records: Sequence[Record], predictions: Any) -> dict[str, float]:
        """`{"seqeval_f1": ...}`: micro F1 of spans on the tokens of `tokenizer`, by seqeval."""
        encoded = encode(self.tokenizer, [record.input for record in records])
        gold = [record.gold or () for record in records]
        predicted = [[scored.span for scored in spans] for spans in predictions]
        return {"seqeval_f1": seqeval_f1(encoded, gold, predicted)}

    def output_fields(self, input_: str, prediction: Sequence[ScoredSpan]) -> dict[str, Any]:
        """The spans of a text with mentions and scores of 4 digits, as `{"spans": [...]}`."""
        return {
            "spans": [
                {**span._asdict(), "text": input_[span.start : span.end], "score": round(score, 4)}
                for span, score in prediction
            ]
        }

    def as_text(self, input_: str, prediction: Sequence[ScoredSpan]) -> str:
        """The text with its spans marked as `[mention](TYPE)`."""
        return bracketed(input_, (span for span, _ in prediction))


class Recognizer(SpanFinder):
    """A trained model with its tokenizer. Texts are read in overlapping windows.

    A method defines `predict_windows`, and may merge outputs. All commands share this decoding.
    """

    @abstractmethod
    def predict_windows(self, inputs: WindowedTexts, indices: Sequence[int]) -> list[Any]:
        """Run the model on one batch of windows; returns one output per window."""

    def merge_windows(self, inputs: WindowedTexts, outputs: Outputs) -> list[list[ScoredSpan]]:
        """The spans of each text of `outputs`, which may overlap; by default all of its windows."""
        return [list(chain.from_iterable(windows.values())) for windows in outputs.values()]

    def scored_spans(self, texts: Sequence[str], /, *, caption: str) -> list[list[ScoredSpan]]:
        """The spans of each text before the threshold, sorted and disjoint; shows progress."""
        encoded = encode(self.tokenizer, texts)
        lengths = {name: self.settings[name] for name in ("max_length", "stride")}
        windows = text_windows(encoded, self.tokenizer, **lengths)
        inputs = WindowedTexts(texts, encoded, windows)
        sizes = windows.reads_to - windows.reads_from
        batches = batches_by_length(sizes, self.prediction.batch_size)
        window_counts = np.bincount(windows.rows, minlength=len(texts))
        outputs: dict[int, dict[int, Any]] = {}  # by text and window, of unfinished texts
        finished: dict[int, dict[int, Any]] = {}
        spans: list[list[ScoredSpan]] = [[] for _ in texts]
        for indices in track(batches, caption, len(batches), unit="batch"):
            batch = self.predict_windows(inputs, indices)
            for index, output in zip(indices, batch, strict=True):
                outputs.setdefault(int(windows.rows[index]), {})[index] = output
            for row in dict.fromkeys(windows.rows[indices].tolist()):
                if len(outputs[row]) == window_counts[row]:
                    finished[row] = dict(sorted(outputs.pop(row).items()))
            if len(finished) >= MERGE_BATCH or indices is batches[-1]:
                merged = self.merge_windows(inputs, finished)
                for row, overlapping in zip(finished, merged, strict=True):
                    spans[row] = resolve_overlaps(overlapping)
                finished.clear()
        return spans

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Set the threshold to the lowest of THRESHOLDS with the best F1 on validation records."""
        gold = [record.gold or () for record in records]
        candidates = self.scored_spans([record.input for record in records], caption=caption)

        def score(threshold: float) -> float:
            return f1(gold, [[s for s, p in spans if p >= threshold] for spans in candidates])

        self.threshold = float(max(THRESHOLDS, key=score))


def resolve_overlaps(spans: Iterable[ScoredSpan]) -> list[ScoredSpan]:
    """Sorted spans without overlaps: the highest score wins, then the first, then the longest."""
    kept: list[ScoredSpan] = []
    for scored in sorted(spans, key=lambda s: (-s.score, s.span.start, -s.span.end, s.span.type)):
        start, end = scored.span.start, scored.span.end
        index = bisect(kept, start, key=lambda other: other.span.start)
        neighbours = kept[max(0, index - 1) : index + 1]
        if all(other.span.end <= start or end <= other.span.start for other in neighbours):
            kept.insert(index, scored)
    return kept


def seqeval_f1(encoded: Encoded, gold: Spans, predicted: Spans) -> float:
    """Micro F1 of seqeval in strict IOB2 mode, as in most publications; needs at least one text.

    The spans of each text (sorted and disjoint) are aligned with its tokens as in training: gold
    spans that tokens cannot express are moved to their edges or dropped, but `metrics.Scorer`
    counts them as missed. Tokens without characters are left out.
    """
    # Slow: imports scikit-learn.
    from seqeval.metrics import f1_score
    from seqeval.scheme import IOB2

    types = sorted({span.type for side in (gold, predicted) for row in side for span in row})
    names, labels = np.array(tag_names(types)), []  # of the tokens of each text, for both sides
    for side in (gold, predicted):
        rows = np.split(align(encoded, None, side, types)[0].tags, encoded.row_splits[1:-1])
        labels.append([names[row[row != IGNORED]].tolist() for row in rows])
    return float(f1_score(*labels, mode="strict", scheme=IOB2, zero_division=0))
