"""Embeddings of texts from any encoder, and their nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

from wxb.core.progress import track
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.corpora.text.windows import text_windows

MAX_LENGTH = 512  # tokens of a window, if the model has as many positions
BATCH = 32  # windows
TINY = np.finfo(float).tiny


@torch.inference_mode()
def embed(
    backbone: Any, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> NDArray[np.float32]:
    """Unit vectors (N, H): means over all tokens, special ones included.

    Reimers and Gurevych 2019 (Sentence-BERT, section 3). Longer texts are split into windows, whose
    vectors are averaged, weighted by their number of tokens. Shows progress.
    """
    before, after = special_tokens(tokenizer)
    size = min(MAX_LENGTH, backbone.config.max_position_embeddings)
    encoded = encode(tokenizer, texts)
    windows = text_windows(encoded, tokenizer, max_length=size, stride=0)
    order = np.argsort(windows.lasts - windows.firsts, kind="stable")
    batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
    sums = np.zeros((len(texts), backbone.config.hidden_size))
    for batch in track(batches, "search", len(batches), unit="batch"):
        rows = [
            np.concatenate([before, encoded.ids[windows.begins[w] : windows.stops[w]], after])
            for w in batch
        ]
        np.add.at(sums, windows.rows[batch], _sums(backbone, rows, tokenizer.pad_token_id))
    return _unit(sums)


def _sums(backbone: Any, rows: Sequence[NDArray[np.int32]], pad: int) -> NDArray[np.float64]:
    """The sum (B, H) of the hidden states of each row of token ids."""
    texts = [torch.from_numpy(row.astype(np.int64)) for row in rows]
    ids = pad_sequence(texts, batch_first=True, padding_value=pad)  # (B, T)
    mask = pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
    hidden: Tensor = backbone(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, H)
    sums: NDArray[np.float64] = (hidden.double() * mask[:, :, None]).sum(dim=1).numpy()
    return sums


def center(
    query: NDArray[np.float32], vectors: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A query (H,) and vectors (N, H) minus the vectors' mean, scaled to length 1 again.

    Without training for similarity, all vectors have a common direction and cosines near 1 (Mu and
    Viswanath 2018, All-but-the-top). Fewer than two vectors are returned unchanged.
    """
    if len(vectors) < 2:
        return query, vectors
    both = np.vstack([query, vectors]).astype(np.float64)
    directions = _unit(both - vectors.mean(axis=0, dtype=np.float64))
    return directions[0], directions[1:]


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.maximum(lengths, TINY)).astype(np.float32)
    return unit


def nearest(
    query: NDArray[np.float32], vectors: NDArray[np.float32], *, top: int
) -> list[tuple[int, float]]:
    """Row and cosine of the `top` unit vectors (N, H) nearest to a query (H,), nearest first.

    Equal cosines keep their order.
    """
    cosines = vectors @ query
    order = np.argsort(-cosines, kind="stable")[:top]
    return [(int(index), float(cosines[index])) for index in order]
