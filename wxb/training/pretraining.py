"""Pretraining: MLM + NSP for an encoder, next-token prediction for a decoder, on the same texts.

All randomness of item j is a function of seed and j. So two backbones read the same documents at
the same step, and a resumed run reads the same items as an uninterrupted one.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from wxb.core.params.backbones import Backbone
from wxb.corpora import clean
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import load, token_ids
from wxb.training import processes
from wxb.training.backbones import weights
from wxb.training.backbones.tuning import logits_only_at, parameter_count
from wxb.training.batches import collate
from wxb.training.curves import write_curves
from wxb.training.trainer import fit

# After punctuation and white space, after Chinese punctuation, or at a line break.
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")

MASKED, REPLACED = 0.8, 0.1  # of the 15% selected (BERT: Devlin et al. 2019, section 3.1)
SELECTED = 0.15
VALID_DOCUMENTS = 1000  # enough for two digits of perplexity

Ids = NDArray[np.int64]
Item = dict[str, Ids]


def sentences(text: str) -> list[str]:
    """The stripped, non-blank sentences of a text, by its punctuation and line breaks."""
    return [s.strip() for s in _SENTENCE_END.split(text) if s.strip()]


class Stream(Dataset[Item], ABC):
    """`length` items drawn from documents, which are reshuffled in each round."""

    def __init__(
        self, documents: Sequence[Any], *, length: int, max_length: int, seed: int
    ) -> None:
        self.documents, self.max_length, self.seed = documents, max_length, seed
        rounds = -(-length // len(documents))
        shuffles = np.random.default_rng(seed)
        order = [shuffles.permutation(len(documents)) for _ in range(rounds)]
        self.order = np.concatenate(order)[:length]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Item:
        return self._item(int(self.order[index]), np.random.default_rng([self.seed, index]))

    @abstractmethod
    def _item(self, row: int, rng: np.random.Generator) -> Item:
        """A training item of document `row`."""


class CausalDocuments(Stream):
    """Items for next-token prediction: `<s> document </s>`, truncated."""

    def __init__(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> None:
        super().__init__(token_ids(tokenizer, texts), **options)
        ends = tokenizer.bos_token_id, tokenizer.eos_token_id  # None: the tokenizer has none
        self.begin, self.end = (np.array([i for i in [end] if i is not None], int) for end in ends)

    def _item(self, row: int, rng: np.random.Generator) -> Item:
        ids = np.concatenate([self.begin, self.documents[row], self.end])[: self.max_length]
        return {"input_ids": ids, "labels": ids}


class MaskedPairs(Stream):
    """Truncated items for MLM + NSP, `[CLS] a [SEP] b [SEP]`; half of the b are of other texts."""

    def __init__(
        self, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **options: Any
    ) -> None:
        documents = [sentences(text) or [text] for text in texts]
        ids = iter(token_ids(tokenizer, [s for document in documents for s in document]))
        super().__init__([[next(ids) for _ in document] for document in documents], **options)
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.mask = tokenizer.mask_token_id
        self.plain = np.setdiff1d(np.arange(len(tokenizer)), tokenizer.all_special_ids)

    def _item(self, row: int, rng: np.random.Generator) -> Item:
        """A pair with masked tokens; `next_sentence_label` is 1 if b is of another document."""
        count = len(self.documents)
        a, b = _adjacent_parts(self.documents[row], rng)
        follows = count == 1 or rng.random() >= 0.5
        if not follows:
            other = (row + int(rng.integers(1, count))) % count
            b = _adjacent_parts(self.documents[other], rng)[1]
        room = self.max_length - 3
        a = a[: max(room - len(b), room // 2)]
        b = b[: room - len(a)]
        plain = np.concatenate([[self.cls], a, [self.sep], b, [self.sep]])
        ids, labels = self._mask(plain, rng)
        return {
            "input_ids": ids,
            "token_type_ids": np.repeat([0, 1], [len(a) + 2, len(b) + 1]),
            "labels": labels,
            "next_sentence_label": np.array(int(not follows)),
        }

    def _mask(self, plain: Ids, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Select 15% of the ids, at least one, and mask or replace most: new ids, and labels."""
        candidates = np.flatnonzero((plain != self.cls) & (plain != self.sep))
        count = max(1, round(SELECTED * len(candidates)))
        selected = rng.permutation(candidates)[:count]
        labels = np.full_like(plain, IGNORED)
        labels[selected] = plain[selected]
        uniform = rng.random(len(selected))
        noise = self.plain[rng.integers(0, len(self.plain), len(selected))]
        ids = plain.copy()
        conditions = [uniform < MASKED, uniform < MASKED + REPLACED]
        ids[selected] = np.select(conditions, [self.mask, noise], ids[selected])
        return ids, labels


def _adjacent_parts(document: list[Ids], rng: np.random.Generator) -> tuple[Ids, Ids]:
    """The parts of a document around a random end of a sentence, or the halves of a single one."""
    if len(document) == 1:
        middle = len(document[0]) // 2
        return document[0][:middle], document[0][middle:]
    cut = int(rng.integers(1, len(document)))
    return np.concatenate(document[:cut]), np.concatenate(document[cut:])


STREAMS = {"mlm+nsp": MaskedPairs, "causal-lm": CausalDocuments}  # by objective


class Objective(nn.Module):
    """A model with the loss of transformers, which computes no logits for tokens without labels."""

    unpredicted_labels = 1  # the first label of a row has no token before it

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        attention_mask: Tensor,  # (B, T), 1 = token, 0 = padding
        labels: Tensor,  # (B, T), shifted here without NSP; IGNORED for tokens without loss
        token_type_ids: Tensor | None = None,  # (B, T), of MLM + NSP
        next_sentence_label: Tensor | None = None,  # (B,), 0 = b follows a, 1 = it does not
    ) -> dict[str, Tensor]:
        """The `loss`, `logits` (N, V) and `labels` (N,), and for NSP the logits `pairs` (B, 2)."""
        if next_sentence_label is None:
            labels = F.pad(labels[:, 1:], (0, 1), value=IGNORED)  # each token predicts the next
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        has_label = labels != IGNORED
        with logits_only_at(self.model, has_label):
            output = self.model(input_ids=input_ids, attention_mask=attention_mask, **segments)
        labels = labels[has_label]
        if next_sentence_label is None:
            logits = output.logits.float()
            return {"loss": F.cross_entropy(logits, labels), "logits": logits, "labels": labels}
        logits, pairs = output.prediction_logits.float(), output.seq_relationship_logits.float()
        loss = F.cross_entropy(logits, labels) + F.cross_entropy(pairs, next_sentence_label)
        return {"loss": loss, "logits": logits, "labels": labels, "pairs": pairs}


@torch.inference_mode()
def measure(
    model: PreTrainedModel, items: Stream, *, pad: int, batch_size: int
) -> dict[str, float]:  # the model stays in evaluation mode
    """Held-out `loss` of tokens in nats, `perplexity`, `accuracy`, and for NSP `nsp_accuracy`."""
    objective = Objective(model).eval()
    nll, hits, tokens, pairs_right = 0.0, 0, 0, 0
    for batch in DataLoader(items, batch_size, collate_fn=partial(collate, pad=pad)):
        batch = {name: values.to(model.device) for name, values in batch.items()}
        output = objective(**batch)
        logits, labels = output["logits"], output["labels"]
        nll += float(F.cross_entropy(logits, labels, reduction="sum"))
        hits += int((logits.argmax(-1) == labels).sum())
        tokens += len(labels)
        if "pairs" in output:
            pairs_right += int((output["pairs"].argmax(-1) == batch["next_sentence_label"]).sum())
    loss = nll / tokens
    metrics = {"loss": loss, "perplexity": math.exp(loss), "accuracy": hits / tokens}
    return {**metrics, "nsp_accuracy": pairs_right / len(items)} if "pairs" in output else metrics


def pretrain(
    backbone: Backbone,
    corpus: Path,
    tokenizer_folder: Path,
    *,
    seed: int,
    checkpoints: Path,
    caption: str,
    model_folder: Path,
    curves: Path,
) -> dict[str, Any]:
    """Pretrain a backbone; write the model with its tokenizer, and the training curves.

    `corpus` is the folder of training data; training resumes from the folder `checkpoints`. Returns
    metrics on VALID_DOCUMENTS at most, `parameters` without heads and `trainable_parameters` with
    them. Without `pretraining` settings, writes the initial model, and returns no metrics and 0
    `trainable_parameters`. If several processes train, only the first writes; others return {}.
    """
    tokenizer, settings = load(tokenizer_folder), backbone.pretraining
    set_seed(seed)
    model = weights.initial_model(backbone, tokenizer)
    history: list[dict[str, float]] = []
    metrics: dict[str, float] = {}
    if settings:
        files = [corpus / f"{split}.parquet" for split in clean.TRAINING_SPLITS]
        texts = [clean.texts(file, "input") for file in files]
        lengths = settings.steps * settings.batch_size, min(len(texts[1]), VALID_DOCUMENTS)
        options = {"max_length": settings.max_length, "seed": seed}
        train, valid = (
            STREAMS[backbone.objective](own, tokenizer, length=length, **options)
            for own, length in zip(texts, lengths, strict=True)
        )
        pad = tokenizer.pad_token_id
        history = fit(
            Objective(model),
            settings,
            train,
            valid,
            collate=partial(collate, pad=pad),
            seed=seed,
            checkpoints=checkpoints,
            caption=caption,
        )
        metrics = measure(model, valid, pad=pad, batch_size=settings.batch_size)
    if processes.rank():
        return {}
    model.save_pretrained(model_folder)
    tokenizer.save_pretrained(model_folder)
    write_curves(curves, history)
    size = {
        "parameters": parameter_count(weights.load_backbone(model_folder)),
        "trainable_parameters": parameter_count(model) if settings else 0,
    }
    return {**metrics, **size}
