"""Tokenizers: trained here or loaded, with character offsets that are checked, not trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from wxb import hub
from wxb.errors import WxbError
from wxb.features import Encoded
from wxb.params import Backbone

SPECIAL_TOKENS = {
    "wordpiece": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
    "byte-level-bpe": {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"},
}


def train(kind: str, vocabulary: int, texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Train a WordPiece (`[CLS] text [SEP]`) or byte-level BPE (`<s> text`) tokenizer.

    Digits are split one by one, so that any number can be spelled. The same texts give the same
    tokenizer, byte for byte.
    """
    special = SPECIAL_TOKENS[kind]
    tokenizer = (_wordpiece if kind == "wordpiece" else _byte_level_bpe)(
        vocabulary, texts, list(special.values())
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _wordpiece(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)]
    )
    # The trainer numbers characters in the order of a hash map, which differs between runs.
    # Reserving them as special tokens, sorted, makes training repeatable.
    reserved = special + _alphabet(tokenizer, texts)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary, special_tokens=reserved, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Special tokens are cut out of a text before all else; single characters must not be.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _alphabet(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """The characters that begin (`a`) and continue (`##a`) words, sorted."""
    symbols: set[str] = set()
    for text in texts:
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(
            tokenizer.normalizer.normalize_str(text)
        ):
            symbols.add(word[0])
            symbols.update(f"##{character}" for character in word[1:])
    return sorted(symbols)


def _byte_level_bpe(vocabulary: int, texts: Sequence[str], special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            # As in BERT: else a token can hold the end of a name and the start of the next word.
            pre_tokenizers.Split(Regex(r"[\p{Han}\p{P}]"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def load(folder: str | Path, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Load a fast tokenizer from a local folder or, pinned by its revision, from the hub.

    Raises WxbError when there is none, and for one without character offsets.
    """
    with hub.checkpoint(folder, revision) as found:
        tokenizer = AutoTokenizer.from_pretrained(str(found), trust_remote_code=False)
    if not tokenizer.is_fast:
        raise WxbError(
            f"{folder}: found a tokenizer without character offsets ({type(tokenizer).__name__});"
            " expected one with a tokenizer.json"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def encode(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, max_length: int) -> Encoded:
    """Tokenize texts, at most `max_length` tokens each with special ones, with checked offsets.

    Raises WxbError when the tokenizer's offsets go backwards or leave the text.
    """
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(max_length)
    backend.encode_special_tokens = True  # what looks like a special token is text, too
    encodings = backend.encode_batch(list(texts), add_special_tokens=True)
    lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
    splits = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.concatenate([np.zeros(0, np.int32), *(np.array(e.ids, np.int32) for e in encodings)])
    offsets = np.array([pair for e in encodings for pair in e.offsets], np.int64).reshape(-1, 2)
    special = np.array([flag for e in encodings for flag in e.special_tokens_mask], bool)
    starts, ends = _on_text(offsets, special, np.repeat(np.arange(len(texts)), lengths), texts)
    return Encoded(
        ids=ids.astype(np.int32),
        starts=starts,
        ends=ends,
        splits=splits,
        truncated=np.array([bool(e.overflowing) for e in encodings], bool),
    )


def ids_of(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, special: bool = False
) -> list[NDArray[np.int32]]:
    """The ids of short texts, each on its own and uncut.

    Text is text, even where it looks like a special token of the tokenizer, unless `special`.
    """
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = not special
    encodings = backend.encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]


def _on_text(
    offsets: NDArray[np.int64],
    special: NDArray[np.bool_],
    rows: NDArray[np.int64],
    texts: Sequence[str],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Check raw offsets, trim white space off them, and give special tokens an empty stretch."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if len(rows) and (np.any(offsets < 0) or np.any(offsets.max(axis=1) > lengths[rows])):
        raise WxbError("the tokenizer's offsets leave the text; they cannot be trusted")
    if np.any(offsets[:, 0] > offsets[:, 1]):
        raise WxbError("the tokenizer's offsets end before they start; they cannot be trusted")
    # All texts as one, with one extra position after each: no token can reach over it.
    base = np.concatenate([[0], np.cumsum(lengths + 1)])[:-1]
    blank = np.array([c.isspace() for text in texts for c in (*text, " ")], bool)
    positions = np.arange(len(blank))
    next_ink = np.minimum.accumulate(np.where(blank, len(blank), positions)[::-1])[::-1]
    last_ink = np.maximum.accumulate(np.where(blank, -1, positions))
    starts, ends = (offsets + base[rows, None]).T
    starts = next_ink[np.minimum(starts, len(blank) - 1)]
    ends = np.where(ends > 0, last_ink[np.maximum(ends - 1, 0)] + 1, 0)
    empty = special | (ends <= starts)
    # An empty token stands where the token before it ends (or the text begins).
    reached = np.maximum.accumulate(np.where(empty, base[rows], ends)) if len(rows) else ends
    starts = np.where(empty, reached, starts)
    ends = np.where(empty, reached, ends)
    backwards = (np.diff(starts) < 0) | (np.diff(ends) < 0)
    if np.any(backwards):
        text = texts[rows[int(np.argmax(backwards))]]
        raise WxbError(f"the tokenizer's offsets go backwards in {text[:80]!r}")
    return (starts - base[rows]).astype(np.int32), (ends - base[rows]).astype(np.int32)


def make(backbone: Backbone, texts: Sequence[str]) -> PreTrainedTokenizerBase:
    """The tokenizer of a backbone: trained on the texts, or its checkpoint's own."""
    if backbone.tokenizer:
        return train(backbone.tokenizer.kind, backbone.tokenizer.vocabulary, texts)
    assert backbone.checkpoint is not None
    return load(backbone.checkpoint, backbone.revision)
