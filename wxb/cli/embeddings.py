"""Embeddings of texts from any encoder, and their nearest neighbours by cosine."""

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
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.progress import track
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.corpora.text.windows import text_windows

Pooling = Literal["mean", "cls"]

MAX_LENGTH = 512  # tokens of a window, if the model has as many positions
BATCH = 32  # windows
TINY = np.finfo(float).tiny


class Neighbour(NamedTuple):
    """A text by its row among those searched, and its cosine with the query."""

    row: int
    cosine: float


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Mean (B, H) of hidden states (B, T, H) where mask (B, T) is 1; zeros for empty rows."""
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
    """Unit vectors (N, H): means over all tokens, special ones included, or those of [CLS].

    Mean pooling: Reimers and Gurevych 2019 (Sentence-BERT, section 3). Longer texts are split into
    windows, whose vectors are averaged, weighted by their number of tokens. Shows progress under
    `label`, if any. Raises WxbError for `cls` if the tokenizer does not put [CLS] first.
    """
    before, after = special_tokens(tokenizer)
    if pooling == "cls" and tokenizer.cls_token_id not in before[:1]:
        raise WxbError("the encoder reads no [CLS] token at the start; use the mean instead")
    size = min(MAX_LENGTH, backbone.config.max_position_embeddings)
    encoded = encode(tokenizer, texts)
    windows = text_windows(encoded, tokenizer, max_length=size, stride=0)
    order = np.argsort(windows.lasts - windows.firsts, kind="stable")
    batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
    sums = np.zeros((len(texts), backbone.config.hidden_size))
    for batch in track(batches, label, len(batches), unit="batch") if label else batches:
        rows = [
            np.concatenate([before, encoded.ids[windows.begins[w] : windows.stops[w]], after])
            for w in batch
        ]
        means = _forward(backbone, rows, tokenizer.pad_token_id, pooling).double().numpy()
        weights = np.array([len(row) for row in rows])
        np.add.at(sums, windows.rows[batch], means * weights[:, None])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    vectors: NDArray[np.float32] = (sums / np.maximum(lengths, TINY)).astype(np.float32)
    return vectors


def cached_embeddings(
    backbone: Any,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    pooling: Pooling,
    folder: Path | None,
) -> NDArray[np.float32]:
    """The vectors (N, H) of `embed`, read from or written to a cache in `folder`, if any.

    The cache file is named by a hash of weights, tokenizer, settings and texts.
    """
    if folder is None:
        return embed(backbone, tokenizer, texts, pooling=pooling, label="search")
    file = folder / f"{_hash(backbone, tokenizer, texts, pooling)}.npy"
    if not file.exists():
        vectors = embed(backbone, tokenizer, texts, pooling=pooling, label="search")
        with publish(file) as (draft,), draft.open("wb") as out:
            np.save(out, vectors)
    cached: NDArray[np.float32] = np.load(file, allow_pickle=False)
    return cached


def _hash(
    backbone: Any, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], pooling: Pooling
) -> str:
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    settings = [pooling, MAX_LENGTH, backbone.config.to_dict(), rules, list(texts)]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, weights in sorted(backbone.state_dict().items()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
        digest.update(weights.contiguous().reshape(-1).view(torch.uint8).cpu().numpy().data)
    return digest.hexdigest()


def center(
    query: NDArray[np.float32], vectors: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A query (H,) and vectors (N, H) minus the vectors' mean, scaled to length 1 again.

    Without training for similarity, all vectors have a common direction and cosines near 1 (Mu and
    Viswanath 2018, All-but-the-top). Fewer than two vectors are returned unchanged.
    """
    if len(vectors) < 2:
        return query, vectors
    shifted = np.vstack([query, vectors]).astype(np.float64) - vectors.mean(
        axis=0, dtype=np.float64
    )
    lengths = np.linalg.norm(shifted, axis=1, keepdims=True)
    directions: NDArray[np.float32] = (shifted / np.maximum(lengths, TINY)).astype(np.float32)
    return directions[0], directions[1:]


def nearest(
    query: NDArray[np.float32], vectors: NDArray[np.float32], *, top: int
) -> list[Neighbour]:
    """The `top` unit vectors (N, H) with the largest cosine to a query (H,), largest first.

    Equal cosines keep their order.
    """
    cosines = vectors @ query
    order = np.argsort(-cosines, kind="stable")[:top]
    return [Neighbour(int(index), float(cosines[index])) for index in order]


@torch.inference_mode()
def _forward(backbone: Any, rows: list[NDArray[np.int32]], pad: int, pooling: Pooling) -> Tensor:
    """The vector (B, H) of each row of token ids."""
    texts = [torch.from_numpy(row.astype(np.int64)) for row in rows]
    ids = pad_sequence(texts, batch_first=True, padding_value=pad)  # (B, T)
    mask = pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
    hidden = backbone(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, H)
    return hidden[:, 0] if pooling == "cls" else mean(hidden, mask)
