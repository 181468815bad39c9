"""Named entities by tagging tokens: BIO tags, start and end flags, one threshold.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.files import read_json
from wxb.params.experiments import Experiment, Head, WordFeatures
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.predictor import SETTINGS, Recognizer, ScoredSpan
from wxb.tasks.ner.spans import Span
from wxb.tasks.ner.tagging.bio import align, likeliest, runs, tag_names
from wxb.text.encoded import IGNORED, Encoded, Targets, read_encoded, read_targets
from wxb.text.tokenizers import SavedTokenizer, encode, frame
from wxb.text.windows import Windows, over

if TYPE_CHECKING:
    import torch

    from wxb.tasks.ner.tagging.model import Tagger

TARGETS = Targets._fields
BEST = "f1"  # the validation figure that picks the best checkpoint


def vocabulary(tokenizer: Any, types: Sequence[str], experiment: Experiment) -> Any:
    """The tokenizer of the model; tags need no tokens of their own."""
    return tokenizer


def aligned(
    encoded: Encoded,
    windows: Windows,
    records: Sequence[Record],
    types: Sequence[str],
    tokenizer: Any,
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64], NDArray[np.int8]]:
    """The tags of every token, where each text's begin, and the fate of every gold span."""
    targets, fates = align(encoded, windows, [record.spans or () for record in records], types)
    return targets._asdict(), encoded.splits, fates


def build(backbone: Path, types: Sequence[str], experiment: Experiment, tokenizer: Any) -> Tagger:
    """The model that training starts from; seed torch before, the head is random."""
    from wxb.backbones import tuning
    from wxb.backbones.weights import body
    from wxb.tasks.ner.tagging.model import Tagger

    assert experiment.head is not None
    settings = experiment.tuning
    bare = body(
        backbone,
        bidirectional=experiment.bidirectional,
        four_bit=settings.four_bit,
        written_out=experiment.implementation == "wxb",
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
    """One item a window: its ids and targets, as the model's `forward` names them."""
    encoded, tagged = read_encoded(features), read_targets(targets)
    windows = over(encoded, tokenizer, max_length=experiment.max_length, stride=experiment.stride)
    before, after = map(len, frame(tokenizer))
    every = range(len(windows.rows))
    items = _inputs(encoded, windows, every, texts, tokenizer, experiment.word_features)
    for item, first, last in zip(items, windows.firsts, windows.lasts, strict=True):
        for name, values in tagged._asdict().items():
            item[name] = np.pad(values[first:last], (before, after), constant_values=IGNORED)
    return items


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

    before, after = frame(tokenizer)
    items: list[dict[str, NDArray[Any]]] = []
    for window in chosen:
        seqeval_f1 = slice(windows.firsts[window], windows.lasts[window])
        items.append({"input_ids": np.concatenate([before, encoded.ids[seqeval_f1], after])})
        if settings:
            text, offsets = (
                texts[windows.rows[window]],
                (encoded.starts[seqeval_f1], encoded.ends[seqeval_f1]),
            )
            told = words.features(text, *offsets, settings)
            items[-1]["words"] = np.pad(told, ((len(before), len(after)), (0, 0)))
    return items


def summarize(logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> torch.Tensor:
    """The likeliest tag of every token (B, T): all that `figures` needs of a batch."""
    return logits[0].argmax(-1)


def figures(predicted: NDArray[Any], labels: Sequence[NDArray[Any]]) -> dict[str, float]:
    """F1 of spans of tokens, without a threshold, while training: of windows, not of texts."""
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
        from wxb.tasks.ner.tagging.model import Tagger

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
        lengths = {name: settings[name] for name in ("max_length", "stride")}
        predictor = cls(model, SavedTokenizer(folder), types, **lengths)
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
        lengths = experiment.model_dump(include={"max_length", "stride"})
        predictor = cls(model, tokenizer, types, **lengths)
        predictor.word_features = experiment.word_features
        return predictor

    def own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """The shape of the head, what the body is given, which way it looks, and whose it is."""
        own = {"head", "word_features", "bidirectional", "implementation"}
        kept = experiment.model_dump(include=own)
        return dict(kept)

    def read(
        self, encoded: Encoded, windows: Windows, chosen: Sequence[int], texts: Sequence[str]
    ) -> list[tuple[NDArray[Any], ...]]:
        """For the tokens (T,) of each window: log p of every tag (T, K), p of start and of end."""
        import torch

        from wxb.training.batches import collate

        items = _inputs(encoded, windows, chosen, texts, self.tokenizer, self.word_features)
        batch = collate(items, self.tokenizer.pad_token_id)
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            output = self.model(**{name: value.to(device) for name, value in batch.items()})
        tags = output["tags"].float().log_softmax(-1).cpu().numpy()  # (B, T, K)
        starts, ends = (output[k].float().sigmoid().cpu().numpy() for k in ("starts", "ends"))
        before = len(frame(self.tokenizer)[0])
        seqeval_f1 = [
            slice(before, before + windows.lasts[window] - windows.firsts[window])
            for window in chosen
        ]
        return [
            (tags[at, kept], starts[at, kept], ends[at, kept]) for at, kept in enumerate(seqeval_f1)
        ]

    def glue(
        self, encoded: Encoded, windows: Windows, said: Mapping[int, Any], text: str
    ) -> list[ScoredSpan]:
        """The likeliest tags of the whole text, read strictly."""
        from wxb.tasks.ner.tagging.words import continued

        decided = [
            [
                values[windows.begins[w] - windows.firsts[w] :][
                    : windows.stops[w] - windows.begins[w]
                ]
                for values in heard
            ]
            for w, heard in said.items()
        ]
        tags, p_start, p_end = (np.concatenate(parts) for parts in zip(*decided, strict=True))
        row = windows.rows[next(iter(said))]
        seqeval_f1 = slice(encoded.splits[row], encoded.splits[row + 1])
        starts, ends = encoded.starts[seqeval_f1], encoded.ends[seqeval_f1]
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

    def token_f1(
        self,
        texts: Sequence[str],
        gold: Sequence[Sequence[Span]],
        predicted: Sequence[Sequence[Span]],
    ) -> float:
        """Micro F1 of the spans (sorted and disjoint) on this tagger's tokens, strictly IOB2."""
        from wxb.tasks.ner.tagging import seqeval_f1

        return seqeval_f1.seqeval_f1(encode(self.tokenizer, texts), gold, predicted)
