"""Fine-tuning on conversations: the loss is that of the assistant's tokens, or of all.

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

from wxb.corpora.records import Record
from wxb.errors import WxbError
from wxb.progress import tracked
from wxb.tasks import methods
from wxb.tasks.chat import predictor
from wxb.tasks.chat.params import Sft
from wxb.tasks.chat.record.conversation import message, of_text
from wxb.tasks.chat.sft import template
from wxb.tasks.chat.sft.window import fitting
from wxb.text.encoded import IGNORED, Columns, read_columns, write_columns

if TYPE_CHECKING:
    from wxb.backbones.generator import Generator

TARGETS = ("labels",)
BEST = methods.ACCURACY
TRAIN = "train"  # the split that is learnt; on others the loss is that of answers, to be compared
CHUNK = 1000  # conversations that are tokenized at a time

collator, fit = methods.collator, methods.fit
summarize, compute_metrics = methods.summarize_tokens, methods.token_accuracy
Predictor = predictor.Replier


def vocabulary(tokenizer: Any, labels: Sequence[str], experiment: Sft) -> Any:
    """The tokenizer with the markers of roles and the chat template.

    Raises WxbError for one that cannot end an answer.
    """
    if tokenizer.eos_token_id is None:
        raise WxbError(
            f"experiments on backbone {experiment.backbone!r} chat: found a tokenizer without an"
            " end of text; expected `tokenizer: {kind: byte-level-bpe, ...}` or a decoder's"
            " checkpoint"
        )
    return template.prepare(tokenizer, experiment.encoding.template)


def encode(
    records: Sequence[Record], tokenizer: Any, experiment: Sft, path: Path, *, label: str
) -> None:
    """Write the tokens of each conversation with its answer, and which the assistant wrote.

    The oldest turns of a long one are left out. It has no tokens if its last turn is too long.
    """
    settings = experiment.encoding
    tokenizer = vocabulary(tokenizer, [], experiment)
    rows: list[template.Tokens] = []
    starts = range(0, len(records), CHUNK)
    for start in tracked(starts, label, len(starts), unit="chunk"):
        whole = [
            [*of_text(record.input), message("assistant", record.gold["text"])]
            for record in records[start : start + CHUNK]
        ]
        encoded = template.tokens(tokenizer, whole, settings.template)
        for conversation, tokens in zip(whole, encoded, strict=True):
            if len(tokens.ids) > settings.max_length:
                fits = fitting(tokenizer, conversation, settings.template, settings.max_length)
                tokens = fits.tokens or template.Tokens(tokens.ids[:0], tokens.generated[:0])
            rows.append(tokens)
    splits = np.concatenate([[0], np.cumsum([len(row.ids) for row in rows])]).astype(np.int64)
    columns = {
        "ids": np.concatenate([np.zeros(0, np.int32), *(row.ids for row in rows)]),
        "generated": np.concatenate([np.zeros(0, np.int8), *(row.generated for row in rows)]),
    }
    columns["generated"] = columns["generated"].astype(np.int8)
    write_columns(path, columns, splits)


def aligned(
    path: Path,
    chunks: Iterable[Sequence[Record]],
    labels: Sequence[str],
    tokenizer: Any,
    experiment: Sft,
) -> tuple[*Columns, dict[str, int]]:
    """What is learnt of each token, and what became of the answers.

    `shortened` are those before which turns were left out, `lost` those that are too long.
    """
    columns, splits = read_columns(path, ["ids", "generated"])
    everything = experiment.encoding.loss == "all" and path.stem == TRAIN
    learnt = np.ones(len(columns["ids"]), bool) if everything else columns["generated"] == 1
    account = {"gold": 0, "kept": 0, "shortened": 0, "lost": 0}
    records = (record for chunk in chunks for record in chunk)
    for record, (start, end) in zip(records, pairwise(splits.tolist()), strict=True):
        answers = 1 + sum(each["role"] == "assistant" for each in of_text(record.input))
        begun = np.diff(columns["generated"][start:end], prepend=0) == 1
        became = "kept" if begun.sum() == answers else "shortened" if end > start else "lost"
        account["gold"] += 1
        account[became] += 1
    return {"labels": np.where(learnt, columns["ids"], IGNORED).astype(np.int32)}, splits, account


def dataset(
    features: Path, targets: Path, tokenizer: Any, records: Sequence[Record], experiment: Sft
) -> list[dict[str, NDArray[Any]]]:
    """One item a conversation, without those that are too long. Raises WxbError if none is left."""
    columns, splits = read_columns(features, ["ids"])
    learnt, _ = read_columns(targets, ["labels"])
    items = [
        {"input_ids": columns["ids"][start:end], "labels": learnt["labels"][start:end]}
        for start, end in pairwise(splits.tolist())
        if end > start
    ]
    if not items:
        raise WxbError(
            f"{features}: all {len(records)} conversations are longer than encoding.max_length"
            f" {experiment.encoding.max_length}; raise it"
        )
    return items


def build(backbone: Path, labels: Sequence[str], experiment: Sft, tokenizer: Any) -> Generator:
    """The model that training starts from; seed torch before, new embeddings are random."""
    from wxb.backbones.generator import Generator

    return Generator.to_learn(backbone, experiment.tuning, tokens=len(tokenizer))
