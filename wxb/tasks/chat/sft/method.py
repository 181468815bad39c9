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

from wxb.core.errors import WxbError
from wxb.core.progress import tracked
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Columns, read_columns, write_columns
from wxb.tasks import methods
from wxb.tasks.chat import predictor
from wxb.tasks.chat.params import Sft
from wxb.tasks.chat.record.conversation import message, of_text
from wxb.tasks.chat.sft import template
from wxb.tasks.chat.sft.window import fitting

if TYPE_CHECKING:
    from wxb.training.backbones.generator import Generator

TRAIN = "train"  # the split that is learnt; on others the loss is that of answers, to be compared
CHUNK = 1000  # conversations that are tokenized at a time


class Method(methods.Method):
    """Supervised fine-tuning of a decoder."""

    experiment: Sft
    Predictor = predictor.Replier
    summarize = staticmethod(methods.summarize_tokens)

    def vocabulary(self) -> Any:
        """The tokenizer with the markers of roles and the chat template.

        Raises WxbError for one that cannot end an answer.
        """
        if self.tokenizer.eos_token_id is None:
            raise WxbError(
                f"experiments on backbone {self.experiment.backbone!r} chat: found a tokenizer"
                " without an end of text; expected `tokenizer: {kind: byte-level-bpe, ...}` or a"
                " decoder's checkpoint"
            )
        return template.prepare(self.tokenizer, self.experiment.encoding.template)

    def encode(self, records: Sequence[Record], path: Path, *, label: str) -> None:
        """Write the tokens of each conversation with its answer, and which the assistant wrote.

        The oldest turns of a long one are left out. It has no tokens if its last turn is too long.
        """
        settings, tokenizer = self.experiment.encoding, self.vocabulary()
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

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The label of each token that is learnt, and counts of the answers.

        `shortened` are those before which turns were left out, `lost` those that are too long.
        """
        columns, splits = read_columns(path, ["ids", "generated"])
        everything = self.experiment.encoding.loss == "all" and path.stem == TRAIN
        learnt = np.ones(len(columns["ids"]), bool) if everything else columns["generated"] == 1
        account = {"gold": 0, "kept": 0, "shortened": 0, "lost": 0}
        records = (record for chunk in chunks for record in chunk)
        for record, (start, end) in zip(records, pairwise(splits.tolist()), strict=True):
            answers = 1 + sum(each["role"] == "assistant" for each in of_text(record.input))
            begun = np.diff(columns["generated"][start:end], prepend=0) == 1
            status = "kept" if begun.sum() == answers else "shortened" if end > start else "lost"
            account["gold"] += 1
            account[status] += 1
        labels = np.where(learnt, columns["ids"], IGNORED).astype(np.int32)
        return {"labels": labels}, splits, account

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item a conversation, without those that are too long.

        Raises WxbError if none is left.
        """
        columns, splits = read_columns(features, ["ids"])
        learnt, _ = read_columns(targets, self.TARGETS)
        items = [
            {"input_ids": columns["ids"][start:end], "labels": learnt["labels"][start:end]}
            for start, end in pairwise(splits.tolist())
            if end > start
        ]
        if not items:
            raise WxbError(
                f"{features}: all {len(records)} conversations are longer than encoding.max_length"
                f" {self.experiment.encoding.max_length}; raise it"
            )
        return items

    def build(self, backbone: Path) -> Generator:
        """The model that training starts from; new embeddings are random."""
        from wxb.training.backbones.generator import Generator

        return Generator.to_learn(backbone, self.experiment.tuning, tokens=len(self.tokenizer))
