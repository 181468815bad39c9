"""Translation by a model that reads the source and then writes, a token at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.core.progress import tracked
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Columns, read_columns, write_columns
from wxb.corpora.text.tokenizers import CHUNK, ids_of, special_tokens
from wxb.tasks import methods
from wxb.tasks.translation.metrics import Scorer, sums
from wxb.tasks.translation.params import Experiment
from wxb.tasks.translation.predictor import Translator, source_ids, special

if TYPE_CHECKING:
    import torch

    from wxb.tasks.translation.seq2seq.model import Learner


def _columns(name: str, rows: Sequence[NDArray[np.int32]]) -> Columns:
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return {name: np.concatenate([np.zeros(0, np.int32), *rows])}, splits


class Seq2SeqTranslator(Translator):
    """A trained model of this method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Learner:
        """The model that was saved in a folder."""
        from wxb.tasks.translation.seq2seq import model

        made = model.made(settings["shape"], settings["special"], settings["max_length"])
        learner = model.Learner(
            made, tokenizer, longest=settings["longest"], shape=settings["shape"]
        )
        learner.read(folder)
        return learner


class Method(methods.Method):
    """An encoder and a decoder, trained from random weights."""

    experiment: Experiment
    BEST = Scorer.METRICS[0]
    Predictor = Seq2SeqTranslator

    def vocabulary(self) -> Any:
        """The tokenizer as it is. Raises WxbError if it cannot begin or end a translation."""
        tokenizer = self.tokenizer
        lacking = {
            "an end of text": tokenizer.eos_token_id is None,
            "a beginning of text": not len(special_tokens(tokenizer)[0]),
            "padding of its own": tokenizer.pad_token_id in (None, tokenizer.eos_token_id),
        }
        for what, lacks in lacking.items():
            if lacks:
                raise WxbError(
                    f"experiments on backbone {self.experiment.backbone!r} translate: found a"
                    f" tokenizer without {what}; expected"
                    " `tokenizer: {kind: byte-level-bpe, ...}`"
                )
        return tokenizer

    def encode(self, records: Sequence[Record], path: Path, *, label: str) -> None:
        """Write the tokens of the sources."""
        rows: list[NDArray[np.int32]] = []
        starts = range(0, len(records), CHUNK)
        for start in tracked(starts, label, len(starts), unit="chunk"):
            texts = [record.input for record in records[start : start + CHUNK]]
            rows += source_ids(self.tokenizer, texts)
        write_columns(path, *_columns("ids", rows))

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The tokens of every reference with the end of text, and how many are too long.

        These are lost, and have no tokens.
        """
        longest, end = self.experiment.encoding.max_length, [self.tokenizer.eos_token_id]
        rows = [
            np.concatenate([ids, end]).astype(np.int32)
            for records in chunks
            for record in records
            for ids in ids_of(self.tokenizer, record.gold)
        ]
        kept = [row if len(row) <= longest else row[:0] for row in rows]
        lost = sum(not len(row) for row in kept)
        account = {"gold": len(rows), "kept": len(rows) - lost, "lost": lost}
        return *_columns("labels", kept), account

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item for each reference: the tokens of its source and its own, the shortest first.

        Long sources are truncated.
        """
        longest = self.experiment.encoding.max_length
        columns, splits = read_columns(features, ["ids"])
        sources = [columns["ids"][start:end] for start, end in pairwise(splits)]
        columns, splits = read_columns(targets, self.TARGETS)
        of = [source for source, r in zip(sources, records, strict=True) for _ in r.gold]
        items = [
            {"input_ids": source[:longest], "labels": columns["labels"][start:end]}
            for source, (start, end) in zip(of, pairwise(splits), strict=True)
            if end > start
        ]
        if not items:
            raise WxbError(
                f"all {len(splits) - 1} references of {targets} have more than"
                f" {longest} tokens; raise `encoding.max_length`"
            )
        # Batches of validation are taken as they come: those of one length waste no padding.
        return sorted(items, key=lambda item: (len(item["labels"]), len(item["input_ids"])))

    def build(self, backbone: Path) -> Learner:
        """The model that training starts from."""
        from wxb.tasks.translation.seq2seq import model

        shape, length = self.experiment.model.model_dump(), self.experiment.encoding.max_length
        made = model.made(shape, special(self.tokenizer), length)
        return model.Learner(made, self.tokenizer, longest=length, shape=shape)

    @staticmethod
    def summarize(statistics: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The statistics of BLEU, as they are."""
        return statistics

    @staticmethod
    def compute_metrics(statistics: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
        """BLEU of greedy translations on the validation records, each reference by itself."""
        return {Method.BEST.key: float(sums.bleu(statistics.sum(axis=0)))}
