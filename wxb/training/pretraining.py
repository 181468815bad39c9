"""Pretraining: MLM + NSP for an encoder, next-token prediction for a decoder, on the same texts.

All randomness of item j is a function of seed and j, so two backbones read the same documents at
the same step, and a resumed run reads what an uninterrupted one does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import ids_of
from wxb.training.backbones.weights import logits_only_at
from wxb.training.batches import collate

# After a full stop and white space, after a Chinese one, or at a line break.
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")

MASKED, REPLACED = 0.8, 0.1  # of the 15% chosen (BERT: Devlin et al. 2019, section 3.1)
CHOSEN = 0.15

Item = dict[str, NDArray[np.int64]]


def sentences(text: str) -> list[str]:
    """The sentences of a text by its punctuation; none is blank."""
    return [s.strip() for s in _SENTENCE_END.split(text) if s.strip()]


class _Stream(Dataset[Item]):
    """`length` items drawn from documents: one seeded shuffle after another, without an end.

    A share of them, `copying`, holds a passage of its document twice: to predict the second, a
    model has to find the first and read on from there, which plain text hardly ever asks for.
    """

    def __init__(
        self,
        documents: Sequence[Any],
        *,
        length: int,
        max_length: int,
        seed: int,
        copying: float = 0.0,
    ) -> None:
        self.documents, self.max_length, self.seed = documents, max_length, seed
        self.copying = copying
        rounds = -(-length // len(documents))
        shuffles = np.random.default_rng(seed)
        self.order = np.concatenate([shuffles.permutation(len(documents)) for _ in range(rounds)])[
            :length
        ]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Item:
        rng = np.random.default_rng([self.seed, index])
        number = int(self.order[index])
        return (self._twice if rng.random() < self.copying else self._item)(number, rng)

    def _item(self, number: int, rng: np.random.Generator) -> Item:
        """Make one training item of the document with this number."""
        raise NotImplementedError

    def _twice(self, number: int, rng: np.random.Generator) -> Item:
        """Make one training item that holds a passage of this document twice."""
        raise NotImplementedError


class CausalDocuments(_Stream):
    """`<s> document </s>`, cut to length; every token is predicted from those before it."""

    def __init__(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> None:
        super().__init__(ids_of(tokenizer, texts), **options)
        self.begin, self.end = tokenizer.bos_token_id, tokenizer.eos_token_id

    def _item(self, number: int, rng: np.random.Generator) -> Item:
        ids = np.concatenate([[self.begin], self.documents[number], [self.end]])[: self.max_length]
        return {"input_ids": ids, "labels": ids}

    def _twice(self, number: int, rng: np.random.Generator) -> Item:
        passage = _passage(self.documents[number], (self.max_length - 2) // 2, rng)
        ids = np.concatenate([[self.begin], passage, passage, [self.end]])
        labels = ids.copy()
        labels[: 1 + len(passage)] = IGNORED  # the first passage is what the other items teach
        return {"input_ids": ids, "labels": labels}


class MaskedPairs(_Stream):
    """`[CLS] a [SEP] b [SEP]`: b follows a in its document, or half the time is from another."""

    def __init__(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> None:
        cut = [sentences(text) or [text] for text in texts]
        ids = iter(ids_of(tokenizer, [s for document in cut for s in document]))
        super().__init__([[next(ids) for _ in document] for document in cut], **options)
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.mask, self.vocabulary = tokenizer.mask_token_id, len(tokenizer)
        self.first_plain = max(tokenizer.all_special_ids) + 1

    def _item(self, number: int, rng: np.random.Generator) -> Item:
        count = len(self.documents)
        a, b = _halves(self.documents[number], rng)
        follows = count == 1 or rng.random() >= 0.5
        if not follows:
            other = (number + int(rng.integers(1, count))) % count
            b = _halves(self.documents[other], rng)[1]
        room = self.max_length - 3
        a = a[: max(room - len(b), room // 2)]
        b = b[: room - len(a)]
        return self._pair(a, b, rng, follows=follows)

    def _twice(self, number: int, rng: np.random.Generator) -> Item:
        document = np.concatenate(self.documents[number])
        passage = _passage(document, (self.max_length - 3) // 2, rng)
        return self._pair(passage, passage, rng, follows=False)  # it stands in the same place

    def _pair(
        self, a: NDArray[np.int64], b: NDArray[np.int64], rng: np.random.Generator, *, follows: bool
    ) -> Item:
        plain = np.concatenate([[self.cls], a, [self.sep], b, [self.sep]])
        ids, labels = self._mask(plain, rng)
        return {
            "input_ids": ids,
            "token_type_ids": np.repeat([0, 1], [len(a) + 2, len(b) + 1]),
            "labels": labels,
            "next_sentence_label": np.array(int(not follows)),
        }

    def _mask(
        self, plain: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        candidates = np.flatnonzero((plain != self.cls) & (plain != self.sep))
        count = max(1, round(CHOSEN * len(candidates)))
        chosen = rng.permutation(candidates)[:count]
        labels = np.full_like(plain, IGNORED)
        labels[chosen] = plain[chosen]
        drawn = rng.random(len(chosen))
        noise = rng.integers(self.first_plain, self.vocabulary, len(chosen))
        ids = plain.copy()
        ids[chosen] = np.select(
            [drawn < MASKED, drawn < MASKED + REPLACED], [self.mask, noise], ids[chosen]
        )
        return ids, labels


def _halves(
    document: list[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two adjacent parts: cut between sentences, or in the middle of the only one."""
    if len(document) == 1:
        middle = len(document[0]) // 2
        return document[0][:middle], document[0][middle:]
    cut = int(rng.integers(1, len(document)))
    return np.concatenate(document[:cut]), np.concatenate(document[cut:])


def _passage(
    document: NDArray[np.int64], longest: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """At most `longest` tokens of a document, from anywhere in it."""
    start = int(rng.integers(0, max(0, len(document) - longest) + 1))
    return document[start : start + longest]


def stream(
    objective: str,
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    **options: Any,
) -> Dataset[Item]:
    """The items of an objective, `mlm+nsp` or `causal-lm`; options as of `_Stream`."""
    cls = {"mlm+nsp": MaskedPairs, "causal-lm": CausalDocuments}[objective]
    return cls(texts, tokenizer, **options)


class Objective(nn.Module):
    """A model with the loss that transformers gives it, from the logits of what is asked alone."""

    unasked = 1  # labels at the start of a row: nothing comes before to predict them from

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor,  # (B, T), 1 where there is a token
        labels: Tensor,  # (B, T), IGNORED where nothing is asked
        token_type_ids: Tensor | None = None,  # (B, T), of MLM + NSP
        next_sentence_label: Tensor | None = None,  # (B,), 0 where the second part follows
    ) -> dict[str, Tensor]:
        """The loss, and what it comes from: `logits` (N, V), `labels` (N,), and with NSP `pairs`
        (B, 2)."""
        inputs: dict[str, Tensor | None] = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
        }
        if next_sentence_label is None:
            labels = F.pad(labels[:, 1:], (0, 1), value=IGNORED)  # the token before predicts one
        else:
            inputs["token_type_ids"] = token_type_ids
        chosen = labels != IGNORED
        with logits_only_at(self.model, chosen):
            output = self.model(**inputs)
        labels = labels[chosen]
        if next_sentence_label is None:
            logits = output.logits.float()
            return {"loss": F.cross_entropy(logits, labels), "logits": logits, "labels": labels}
        logits, pairs = output.prediction_logits.float(), output.seq_relationship_logits.float()
        loss = F.cross_entropy(logits, labels) + F.cross_entropy(pairs, next_sentence_label)
        return {"loss": loss, "logits": logits, "labels": labels, "pairs": pairs}


@torch.inference_mode()
def measure(
    model: PreTrainedModel, items: Dataset[Item], *, pad: int, batch_size: int
) -> dict[str, float]:
    """Loss (nats a predicted token), perplexity and accuracies on held-out documents."""
    objective = Objective(model).eval()
    nll, hits, tokens, pairs_right, pairs = 0.0, 0, 0, 0, 0
    everything = [items[index] for index in range(len(items))]  # type: ignore[arg-type]
    for start in range(0, len(everything), batch_size):
        batch = collate(everything[start : start + batch_size], pad)
        batch = {name: values.to(model.device) for name, values in batch.items()}
        found = objective(**batch)
        logits, labels = found["logits"], found["labels"]
        nll += float(F.cross_entropy(logits, labels, reduction="sum"))
        hits += int((logits.argmax(-1) == labels).sum())
        tokens += len(labels)
        if "pairs" in found:
            apart = batch["next_sentence_label"]
            pairs_right += int((found["pairs"].argmax(-1) == apart).sum())
            pairs += len(apart)
    loss = nll / tokens
    metrics = {"loss": loss, "perplexity": math.exp(loss), "accuracy": hits / tokens}
    return {**metrics, "nsp_accuracy": pairs_right / pairs} if pairs else metrics
