"""Pretraining: MLM + NSP for an encoder, next-token prediction for a decoder, on the same texts.

All randomness of item j is a function of seed and j, so two backbones read the same documents at
the same step, and a resumed run reads what an uninterrupted one does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from wxb.features import IGNORED

# After a full stop and white space, after a Chinese one, or at a line break.
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")

MASKED, REPLACED = 0.8, 0.1  # of the 15% chosen (BERT: Devlin et al. 2019, section 3.1)
CHOSEN = 0.15

Item = dict[str, NDArray[np.int64]]


def sentences(text: str) -> list[str]:
    """The sentences of a text by its punctuation; none is blank."""
    return [s.strip() for s in _SENTENCE_END.split(text) if s.strip()]


class _Stream(Dataset[Item]):
    """`length` items drawn from documents: one seeded shuffle after another, without an end."""

    def __init__(
        self, documents: Sequence[Any], *, length: int, max_length: int, seed: int
    ) -> None:
        self.documents, self.max_length, self.seed = documents, max_length, seed
        rounds = -(-length // len(documents))
        shuffles = np.random.default_rng(seed)
        self.order = np.concatenate([shuffles.permutation(len(documents)) for _ in range(rounds)])[
            :length
        ]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Item:
        rng = np.random.default_rng([self.seed, index])
        return self._item(int(self.order[index]), rng)

    def _item(self, number: int, rng: np.random.Generator) -> Item:
        """Make one training item of the document with this number."""
        raise NotImplementedError


class CausalDocuments(_Stream):
    """`<s> document </s>`, cut to length; every token is predicted from those before it."""

    def __init__(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> None:
        super().__init__(_ids(tokenizer, texts), **options)
        self.begin, self.end = tokenizer.bos_token_id, tokenizer.eos_token_id

    def _item(self, number: int, rng: np.random.Generator) -> Item:
        ids = np.concatenate([[self.begin], self.documents[number], [self.end]])[: self.max_length]
        return {"input_ids": ids, "labels": ids}


class MaskedPairs(_Stream):
    """`[CLS] a [SEP] b [SEP]`: b follows a in its document, or half the time is from another."""

    def __init__(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> None:
        cut = [sentences(text) or [text] for text in texts]
        ids = iter(_ids(tokenizer, [s for document in cut for s in document]))
        super().__init__([[next(ids) for _ in document] for document in cut], **options)
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.mask, self.vocabulary = tokenizer.mask_token_id, len(tokenizer)
        self.first_plain = max(tokenizer.all_special_ids) + 1

    def _item(self, number: int, rng: np.random.Generator) -> Item:
        count = len(self.documents)
        a, b = _halves(self.documents[number], rng)
        random_next = count > 1 and rng.random() < 0.5
        if random_next:
            other = (number + int(rng.integers(1, count))) % count
            b = _halves(self.documents[other], rng)[1]
        room = self.max_length - 3
        a = a[: max(room - len(b), room // 2)]
        b = b[: room - len(a)]
        plain = np.concatenate([[self.cls], a, [self.sep], b, [self.sep]])
        ids, labels = self._mask(plain, rng)
        return {
            "input_ids": ids,
            "token_type_ids": np.repeat([0, 1], [len(a) + 2, len(b) + 1]),
            "labels": labels,
            "next_sentence_label": np.array(int(random_next)),
        }

    def _mask(
        self, plain: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        candidates = np.flatnonzero((plain != self.cls) & (plain != self.sep))
        count = max(1, round(CHOSEN * len(candidates)))
        chosen = rng.permutation(candidates)[:count]
        labels = np.full_like(plain, IGNORED)
        labels[chosen] = plain[chosen]
        fate = rng.random(len(chosen))
        noise = rng.integers(self.first_plain, self.vocabulary, len(chosen))
        ids = plain.copy()
        ids[chosen] = np.select(
            [fate < MASKED, fate < MASKED + REPLACED], [self.mask, noise], ids[chosen]
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


def _ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[NDArray[np.int64]]:
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    encodings = backend.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int64) for encoding in encodings]


def stream(
    objective: str,
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int,
    max_length: int,
    seed: int,
) -> Dataset[Item]:
    """The items of an objective, `mlm+nsp` or `causal-lm`."""
    cls = {"mlm+nsp": MaskedPairs, "causal-lm": CausalDocuments}[objective]
    return cls(texts, tokenizer, length=length, max_length=max_length, seed=seed)


def collate(items: Sequence[Mapping[str, NDArray[np.int64]]], pad: int) -> dict[str, Tensor]:
    """Pad items on the right to the longest of the batch."""
    fill = {"input_ids": pad, "labels": IGNORED, "token_type_ids": 0}
    longest = max(len(item["input_ids"]) for item in items)
    batch = {
        name: np.stack([item[name] for item in items])
        if items[0][name].ndim == 0
        else np.stack(
            [
                np.pad(i[name], (0, longest - len(i[name])), constant_values=fill[name])
                for i in items
            ]
        )
        for name in items[0]
    }
    lengths = np.array([len(item["input_ids"]) for item in items])
    batch["attention_mask"] = (np.arange(longest) < lengths[:, None]).astype(np.int64)
    return {name: torch.from_numpy(values) for name, values in batch.items()}


@torch.inference_mode()
def measure(
    model: PreTrainedModel, items: Dataset[Item], *, pad: int, batch_size: int
) -> dict[str, float]:
    """Loss (nats a predicted token), perplexity and accuracies on held-out documents."""
    model.eval()
    nll, hits, tokens, pairs_right, pairs = 0.0, 0, 0, 0, 0
    everything = [items[index] for index in range(len(items))]  # type: ignore[arg-type]
    for start in range(0, len(everything), batch_size):
        batch = collate(everything[start : start + batch_size], pad)
        batch = {name: values.to(model.device) for name, values in batch.items()}
        labels, follows = batch.pop("labels"), batch.pop("next_sentence_label", None)
        output = model(**batch)
        if follows is None:
            logits, labels = output.logits[:, :-1], labels[:, 1:]
        else:
            logits = output.prediction_logits
            pairs_right += int((output.seq_relationship_logits.argmax(-1) == follows).sum())
            pairs += len(follows)
        nll += float(
            F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="sum")
        )
        hits += int((logits.argmax(-1) == labels).sum())
        tokens += int((labels != IGNORED).sum())
    loss = nll / tokens
    figures = {"loss": loss, "perplexity": math.exp(loss)}
    if pairs:
        return {**figures, "mlm_accuracy": hits / tokens, "nsp_accuracy": pairs_right / pairs}
    return {**figures, "accuracy": hits / tokens}
