"""Named entities by writing: the model answers a text with `TYPE|mention;;TYPE|mention`.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb import answers
from wxb.align import Fate
from wxb.corpora.records import Record
from wxb.features import IGNORED, Encoded, read_columns, read_encoded, write_columns
from wxb.files import read_json
from wxb.params import Experiment
from wxb.recognition import SETTINGS, Recognizer, ScoredSpan
from wxb.spans import Span
from wxb.tokenizers import ids_of
from wxb.tokenizers import load as load_tokenizer

if TYPE_CHECKING:
    import torch

    from wxb.models.generator import Generator

TARGETS = ("labels",)
BEST = "accuracy"  # the validation figure that picks the best checkpoint


def vocabulary(tokenizer: Any, types: Sequence[str], experiment: Experiment) -> Any:
    """The tokenizer of the model: where asked for, every marker of an answer is one token."""
    assert experiment.generation is not None
    if experiment.generation.special_tokens:
        markers = [answers.BOUNDARY, answers.SEPARATOR, *map(answers.opening, types)]
        tokenizer.add_tokens(
            [AddedToken(marker, special=True, normalized=False) for marker in markers],
            special_tokens=True,
        )
    return tokenizer


def write_aligned(
    path: Path,
    encoded: Encoded,
    records: Sequence[Record],
    types: Sequence[str],
    tokenizer: Any,
) -> list[list[Fate]]:
    """Write the tokens of every answer; tell what became of each gold span of each record.

    The answer to a text that was cut off names what is left of it. A span is aligned when reading
    the answer finds it where it stands.
    """
    told, fates = [], []
    for row, record in enumerate(records):
        ends = encoded.ends[encoded.splits[row] : encoded.splits[row + 1]]
        reach = int(ends.max(initial=0)) if encoded.truncated[row] else len(record.text)
        gold = record.spans or ()
        told.append([span for span in gold if span.end <= reach and span.type in types])
        answer = "".join(answers.pieces(record.text, told[-1]))
        found = set(answers.locate(record.text, answers.parse(answer)))
        fates.append([_fate(span, reach, found, types) for span in gold])
    ids, splits = _answer_ids(tokenizer, [record.text for record in records], told)
    write_columns(path, {"labels": ids}, splits)
    return fates


def _fate(span: Span, reach: int, found: set[Span], types: Sequence[str]) -> Fate:
    if span.type not in types:
        return Fate.DROPPED
    if span.end > reach:
        return Fate.TRUNCATED
    return Fate.ALIGNED if span in found else Fate.REPAIRED


def _answer_ids(
    tokenizer: Any, texts: Sequence[str], told: Sequence[Sequence[Span]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The tokens of every answer with the end of text, end to end, and where each begins."""
    cut = [answers.pieces(text, spans) for text, spans in zip(texts, told, strict=True)]
    markers = sorted({piece for row in cut for piece in (*row[0::3], *row[2::3])})
    known = dict(zip(markers, ids_of(tokenizer, markers, special=True), strict=True))
    mentions = iter(ids_of(tokenizer, [piece for row in cut for piece in row[1::3]]))
    rows = [
        np.concatenate(
            [
                *(
                    next(mentions) if place % 3 == 1 else known[piece]
                    for place, piece in enumerate(row)
                ),
                [tokenizer.eos_token_id],
            ]
        )
        for row in cut
    ]
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.concatenate([np.zeros(0), *rows]).astype(np.int32), splits.astype(np.int64)


def build(
    backbone: Path, types: Sequence[str], experiment: Experiment, tokenizer: Any
) -> Generator:
    """The model that training starts from; seed torch before, new embeddings are random."""
    from wxb import tuning
    from wxb.models.generator import Generator, language_model

    settings = experiment.tuning
    size = len(load_tokenizer(backbone))
    bare = language_model(backbone, tokens=len(tokenizer), four_bit=settings.four_bit)
    new = list(range(size, len(tokenizer)))
    return Generator(
        tuning.adapt(bare, settings, task_type="CAUSAL_LM", new_tokens=new),
        neftune_alpha=settings.neftune_alpha,
    )


def dataset(
    features: Path, targets: Path, tokenizer: Any, texts: Sequence[str], experiment: Experiment
) -> list[dict[str, NDArray[Any]]]:
    """One item a text: prompt and answer, with labels on the answer only."""
    encoded = read_encoded(features)
    columns, splits = read_columns(targets, ["labels"])
    boundary = _boundary(tokenizer)
    items = []
    for prompt, answer in zip(pairwise(encoded.splits), pairwise(splits), strict=True):
        prompt_ids = np.concatenate([encoded.ids[slice(*prompt)], boundary])
        answer_ids = columns["labels"][slice(*answer)]
        items.append(
            {
                "input_ids": np.concatenate([prompt_ids, answer_ids]),
                "labels": np.concatenate([np.full(len(prompt_ids), IGNORED), answer_ids]),
            }
        )
    return items


def _boundary(tokenizer: Any) -> NDArray[np.int32]:
    """What follows a text's tokens, in training as in prediction, to ask for the answer."""
    return ids_of(tokenizer, [answers.BOUNDARY], special=True)[0]


def summarize(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The likeliest token at every label (B, T): all that `figures` needs of a batch."""
    predicted = logits.argmax(-1)
    full = labels.new_full(labels.shape, IGNORED)
    full[:, -predicted.shape[1] :] = predicted
    return full


def figures(predicted: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    """The share of answer tokens that are right when all before them are, while training."""
    asked = labels != IGNORED
    return {BEST: float((predicted == labels)[asked].mean())}


class Predictor(Recognizer):
    """A trained generator. The score of a span is how sure the whole answer is: its tokens' mean
    probability (geometric)."""

    longest: int  # tokens of an answer

    @classmethod
    def load(cls, folder: Path) -> Predictor:
        """Load a folder that `save` wrote."""
        from wxb.models.generator import Generator

        settings = read_json(folder / SETTINGS)
        tokenizer = load_tokenizer(folder)
        model = Generator.from_pretrained(
            folder, tokens=len(tokenizer), four_bit=settings["four_bit"]
        )
        predictor = cls(model, tokenizer, settings["types"], max_length=settings["max_length"])
        predictor.threshold, predictor.longest = settings["threshold"], settings["longest"]
        predictor.batch_size = settings["batch_size"]
        return predictor

    @classmethod
    def of(
        cls,
        model: Generator,
        tokenizer: Any,
        types: Sequence[str],
        experiment: Experiment,
        targets: Path,
    ) -> Predictor:
        """The predictor of a model that was just trained; answers grow as long as in training."""
        assert experiment.generation is not None
        predictor = cls(model, tokenizer, types, max_length=experiment.max_length)
        _, splits = read_columns(targets, ["labels"])
        predictor.longest = int(np.diff(splits).max())
        predictor.batch_size = experiment.generation.batch_size
        return predictor

    def own_settings(self, experiment: Experiment) -> dict[str, Any]:
        """How answers are generated."""
        return {"longest": self.longest, "batch_size": self.batch_size}

    def spans_of(
        self, encoded: Encoded, rows: NDArray[Any], texts: Sequence[str]
    ) -> list[list[ScoredSpan]]:
        """Write the answers, read them, and find their mentions in the texts."""
        from wxb.batches import collate

        pad, end = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        boundary = _boundary(self.tokenizer)
        splits = encoded.splits
        items = [
            {"input_ids": np.concatenate([encoded.ids[splits[r] : splits[r + 1]], boundary])}
            for r in rows
        ]
        device = next(self.model.parameters()).device
        batch = {k: v.to(device) for k, v in collate(items, pad, side="left").items()}
        ids, chosen = self.model.write(**batch, longest=self.longest, end=end, pad=pad)
        found = []
        for row, answer, logs in zip(rows, ids.cpu().numpy(), chosen.cpu().numpy(), strict=True):
            length = int(np.argmax(answer == end)) + 1 if end in answer else len(answer)
            written = self.tokenizer.decode(
                answer[:length][answer[:length] != end], clean_up_tokenization_spaces=False
            )
            mentions = [m for m in answers.parse(written) if m[0] in self.types]
            score = float(np.exp(logs[:length].mean()))
            found.append([ScoredSpan(span, score) for span in answers.locate(texts[row], mentions)])
        return found
