"""Vectors of texts from any encoder, and which of them are nearest to another by their cosine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.progress import tracked
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.corpora.text.windows import over

Pooling = Literal["mean", "cls"]

LONGEST = 512  # tokens that are read at once, where the model's positions allow it
BATCH = 32  # windows
TINY = np.finfo(float).tiny


class Found(NamedTuple):
    """A text that was found: its place among those searched, and its cosine with the query."""

    place: int
    cosine: float


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """The mean (B, H) of the hidden states (B, T, H) where mask (B, T) is 1: padding has no say.

    A row that is all padding gives zeros.
    """
    weights = mask[:, :, None].to(hidden.dtype)  # (B, T, 1)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def embed(
    backbone: Any,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    pooling: Pooling,
    label: str | None = None,
) -> NDArray[np.float32]:
    """Vectors (N, H) of length 1: the mean over a text's tokens, special ones included, or [CLS].

    The mean is that of Reimers and Gurevych 2019 (Sentence-BERT, section 3). A text longer than the
    model's positions is read through windows, whose vectors are averaged by their tokens. Raises
    WxbError for `cls` where the tokenizer puts no such token first.
    """
    before, after = special_tokens(tokenizer)
    if pooling == "cls" and tokenizer.cls_token_id not in before[:1]:
        raise WxbError("the encoder reads no [CLS] token at the start; use the mean instead")
    size = min(LONGEST, backbone.config.max_position_embeddings)
    encoded = encode(tokenizer, texts)
    windows = over(encoded, tokenizer, max_length=size, stride=0)
    order = np.argsort(windows.lasts - windows.firsts, kind="stable")
    batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
    sums = np.zeros((len(texts), backbone.config.hidden_size))
    for chosen in tracked(batches, label, len(batches), unit="batch") if label else batches:
        rows = [
            np.concatenate([before, encoded.ids[windows.begins[w] : windows.stops[w]], after])
            for w in chosen
        ]
        means = _forward(backbone, rows, tokenizer.pad_token_id, pooling).double().numpy()
        weights = np.array([len(row) for row in rows])
        np.add.at(sums, windows.rows[chosen], means * weights[:, None])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    vectors: NDArray[np.float32] = (sums / np.maximum(lengths, TINY)).astype(np.float32)
    return vectors


def of_texts(
    backbone: Any,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    pooling: Pooling,
    folder: Path | None,
) -> NDArray[np.float32]:
    """The vectors (N, H) of `embed`, with progress; where `folder` has them, from there.

    It keeps them in a file named by the hash of all that they are made of: weights, tokenizer,
    settings and texts.
    """
    if folder is None:
        return embed(backbone, tokenizer, texts, pooling=pooling, label="search")
    file = folder / f"{_hash(backbone, tokenizer, texts, pooling)}.npy"
    if not file.exists():
        vectors = embed(backbone, tokenizer, texts, pooling=pooling, label="search")
        with publish(file) as (draft,), draft.open("wb") as out:
            np.save(out, vectors)
    kept: NDArray[np.float32] = np.load(file, allow_pickle=False)
    return kept


def _hash(
    backbone: Any, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], pooling: Pooling
) -> str:
    spelled = json.loads(tokenizer.backend_tokenizer.to_str())
    settings = [pooling, LONGEST, backbone.config.to_dict(), spelled, list(texts)]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, weights in sorted(backbone.state_dict().items()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
        digest.update(weights.contiguous().reshape(-1).view(torch.uint8).cpu().numpy().data)
    return digest.hexdigest()


def centred(
    query: NDArray[np.float32], vectors: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A query (H,) and vectors (N, H) without the vectors' mean, of length 1 again.

    Vectors of an encoder that was not trained for similarity all lie in one direction, and their
    cosines near 1 (Mu and Viswanath 2018, All-but-the-top). Fewer than two are left as they are.
    """
    if len(vectors) < 2:
        return query, vectors
    moved = np.vstack([query, vectors]).astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    directions: NDArray[np.float32] = (moved / np.maximum(lengths, TINY)).astype(np.float32)
    return directions[0], directions[1:]


def nearest(query: NDArray[np.float32], vectors: NDArray[np.float32], *, top: int) -> list[Found]:
    """The `top` of the vectors (N, H) with the largest cosine to the query (H,), largest first.

    All are of length 1. Of equal ones the first comes first.
    """
    cosines = vectors @ query
    order = np.argsort(-cosines, kind="stable")[:top]
    return [Found(int(place), float(cosines[place])) for place in order]


@torch.inference_mode()
def _forward(backbone: Any, rows: list[NDArray[np.int32]], pad: int, pooling: Pooling) -> Tensor:
    """The vector (B, H) of each row of token ids."""
    ids = torch.full((len(rows), max(map(len, rows))), pad)  # (B, T)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.from_numpy(row.astype(np.int64))
        mask[place, : len(row)] = 1
    hidden = backbone(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, H)
    return hidden[:, 0] if pooling == "cls" else mean(hidden, mask)
