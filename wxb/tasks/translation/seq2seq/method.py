"""Translation by a model that reads the source and then writes, a token at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.errors import WxbError
from wxb.progress import tracked
from wxb.tasks import methods
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.params import Experiment
from wxb.tasks.translation.predictor import Translator, source_ids, special
from wxb.text.encoded import Columns, read_columns, write_columns
from wxb.text.tokenizers import CHUNK, ids_of, special_tokens

if TYPE_CHECKING:
    import torch

    from wxb.tasks.translation.seq2seq.model import Learner

TARGETS = ("labels",)
BEST = next(metric for metric in metrics.METRICS if metric.key == metrics.HEADLINE)

collator, fit = methods.collator, methods.fit


def vocabulary(tokenizer: Any, labels: Sequence[str], experiment: Experiment) -> Any:
    """The tokenizer as it is. Raises WxbError for one that cannot begin and end a translation."""
    lacking = {
        "an end of text": tokenizer.eos_token_id is None,
        "a beginning of text": not len(special_tokens(tokenizer)[0]),
        "padding of its own": tokenizer.pad_token_id in (None, tokenizer.eos_token_id),
    }
    for what, lacks in lacking.items():
        if lacks:
            raise WxbError(
                f"experiments on backbone {experiment.backbone!r} translate: found a tokenizer"
                f" without {what}; expected `tokenizer: {{kind: byte-level-bpe, ...}}`"
            )
    return tokenizer


def encode(
    records: Sequence[Record], tokenizer: Any, experiment: Experiment, path: Path, *, label: str
) -> None:
    """Write the tokens of the sources."""
    rows: list[NDArray[np.int32]] = []
    starts = range(0, len(records), CHUNK)
    for start in tracked(starts, label, len(starts), unit="chunk"):
        rows += source_ids(tokenizer, [record.input for record in records[start : start + CHUNK]])
    write_columns(path, *_columns("ids", rows))


def _columns(name: str, rows: Sequence[NDArray[np.int32]]) -> Columns:
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return {name: np.concatenate([np.zeros(0, np.int32), *rows])}, splits


def aligned(
    path: Path,
    chunks: Iterable[Sequence[Record]],
    labels: Sequence[str],
    tokenizer: Any,
    experiment: Experiment,
) -> tuple[*Columns, dict[str, int]]:
    """The tokens of every reference with the end of text, and how many are too long to learn.

    These are lost, and have no tokens.
    """
    longest, end = experiment.encoding.max_length, [tokenizer.eos_token_id]
    rows = [
        np.concatenate([ids, end]).astype(np.int32)
        for records in chunks
        for record in records
        for ids in ids_of(tokenizer, record.gold)
    ]
    kept = [row if len(row) <= longest else row[:0] for row in rows]
    lost = sum(not len(row) for row in kept)
    account = {"gold": len(rows), "kept": len(rows) - lost, "lost": lost}
    return *_columns("labels", kept), account


def dataset(
    features: Path, targets: Path, tokenizer: Any, records: Sequence[Record], experiment: Experiment
) -> list[dict[str, NDArray[Any]]]:
    """One item for each reference: the tokens of its source and its own, the shortest first.

    The end of a long source is cut off.
    """
    columns, splits = read_columns(features, ["ids"])
    sources = [columns["ids"][start:end] for start, end in pairwise(splits)]
    columns, splits = read_columns(targets, ["labels"])
    of = [source for source, r in zip(sources, records, strict=True) for _ in r.gold]
    items = [
        {
            "input_ids": source[: experiment.encoding.max_length],
            "labels": columns["labels"][start:end],
        }
        for source, (start, end) in zip(of, pairwise(splits), strict=True)
        if end > start
    ]
    if not items:
        raise WxbError(
            f"all {len(splits) - 1} references of {targets} have more than"
            f" {experiment.encoding.max_length} tokens; raise `encoding.max_length`"
        )
    # Batches of validation are taken as they come: those of one length waste no padding.
    return sorted(items, key=lambda item: (len(item["labels"]), len(item["input_ids"])))


def build(backbone: Path, labels: Sequence[str], experiment: Experiment, tokenizer: Any) -> Learner:
    """The model that training starts from; seed torch before."""
    from wxb.tasks.translation.seq2seq import model

    shape, length = experiment.model.model_dump(), experiment.encoding.max_length
    made = model.made(shape, special(tokenizer), length)
    return model.Learner(made, tokenizer, longest=length, shape=shape)


def summarize(statistics: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """What BLEU is made of, as it is."""
    return statistics


def compute_metrics(statistics: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    """BLEU of greedy translations on the validation records, each reference by itself."""
    return {BEST.key: float(sums.bleu(statistics.sum(axis=0)))}


class Predictor(Translator):
    """A trained model of this method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any]) -> Learner:
        """The model that was saved in a folder."""
        from wxb.tasks.translation.seq2seq import model
        from wxb.text.tokenizers import SavedTokenizer

        made = model.made(settings["shape"], settings["special"], settings["max_length"])
        learner = model.Learner(
            made, SavedTokenizer(folder), longest=settings["longest"], shape=settings["shape"]
        )
        learner.read(folder)
        return learner
