"""Check the character offsets of a fast tokenizer, and correct its two known errors.

In tokenizers 0.23 two kinds of tokenizers return wrong offsets, from which a tagger would learn
wrong spans:

- SentencePiece (XLM-R, T5, LLaMA-2): the `▁` that it prepends, if it is a token of its own, has
  the offsets of the first letter (huggingface/tokenizers issues 1018 and 1775). It covers nothing.
- NFC (Qwen): the offsets of composed letters exclude their combining marks. They belong to each
  token of the letter.

Offsets are correct if they ascend, two neighbours share one character at most, and they cover all
characters that the tokenizer does not drop. Others are an error: LLaMA-3's were empty in older
releases (issues 1517 and 1553).
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from wxb.core.errors import WxbError

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

_SPACE = "\u2581"  # SentencePiece's
_JAMO = range(0x1160, 0x1200)  # vowels and final consonants, which compose with a first consonant
# The last white space is U+3000: all characters after it share the last entry.
_VISIBLE = np.array([not chr(code).isspace() for code in range(0x3001)] + [True])


def token_offsets(
    backend: Tokenizer, name: str, ids: Ints32, offsets: Ints, rows: Ints, texts: Sequence[str]
) -> tuple[Ints32, Ints32]:
    """Checked, corrected starts and ends (N,) of tokens in their texts, without outer white space.

    `ids` (N,) are all tokens of the texts without special ones. `offsets` (N, 2) are the
    tokenizer's, in code points. `rows` (N,) ascends and has the index of each token's text. A token
    without visible characters starts and ends at the end of the previous one. A character that
    several tokens spell together belongs to each of them. Raises WxbError, with the `name` of the
    tokenizer, if offsets stay wrong.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    base = np.cumsum(lengths + 1) - lengths - 1
    joined = "".join(f"{text} " for text in texts)  # a space after each
    codes = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    visible = _VISIBLE[np.minimum(codes, len(_VISIBLE) - 1)]
    starts, ends = (offsets + base[rows, None]).T
    misplaced = (starts < base[rows]) | (ends < starts) | (ends > (base + lengths)[rows])
    starts, ends = _trim(np.where(misplaced, 0, starts), np.where(misplaced, 0, ends), visible)
    ends = np.where(_is_blank(backend, ids), starts, ends)

    covering = np.flatnonzero(ends > starts)
    low, high = starts[covering], ends[covering]
    is_disordered = (np.diff(low) < 0) | (np.diff(high) < 0) | (high[:-1] - low[1:] > 1)
    misplaced[covering[1:][is_disordered]] = True
    if misplaced.any():
        token = int(np.argmax(misplaced))
        start, end = offsets[token].tolist()
        raise _error(name, texts[rows[token]], f"a token has offsets {start}:{end}")

    is_dropped = lru_cache(partial(_is_dropped, backend))
    size = len(visible) + 1
    depth = np.cumsum(np.bincount(low, minlength=size) - np.bincount(high, minlength=size))
    for index in np.flatnonzero(visible & (depth[:-1] == 0)).tolist():  # no token covers these
        character = joined[index]
        if is_dropped(character):
            continue
        first, last = np.searchsorted(high, [index, index + 1])  # the tokens that end here
        is_mark = unicodedata.category(character).startswith("M") or ord(character) in _JAMO
        if not is_mark or first == last:
            row = int(np.searchsorted(base, index, "right")) - 1
            raise _error(name, texts[row], f"no token covers {character!r}")
        high[first:last] = index + 1
    ends[covering] = high
    return _place_empty(starts - base[rows], ends - base[rows], rows)


def _trim(starts: Ints, ends: Ints, visible: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The ranges without white space at their ends; those without visible characters are empty."""
    counts = np.concatenate([[0], np.cumsum(visible)])
    positions = np.append(np.flatnonzero(visible), 0)
    first, last = counts[starts], counts[ends]
    covering = last > first
    trimmed = np.where(covering, positions[first], starts)
    return trimmed, np.where(covering, positions[last - 1] + 1, trimmed)


def _is_dropped(backend: Tokenizer, character: str) -> bool:
    """Whether the tokenizer has no token for a character, or only SentencePiece's space."""
    ids = backend.encode(character, add_special_tokens=False).ids
    return bool(_is_blank(backend, np.array(ids, np.int32)).all())


def _is_blank(backend: Tokenizer, ids: Ints32) -> NDArray[np.bool_]:
    """Which tokens are only SentencePiece's spaces, one or more."""
    tokens = {id_: str(backend.id_to_token(id_)) for id_ in np.unique(ids).tolist()}
    return np.isin(ids, [id_ for id_, token in tokens.items() if not token.strip(_SPACE)])


def _error(name: str, text: str, problem: str) -> WxbError:
    return WxbError(
        f"tokenizer {name}: wrong offsets in {text[:80]!r}: {problem}; choose another `revision` or"
        " `checkpoint`, or train a `tokenizer`"
    )


def _place_empty(starts: Ints, ends: Ints, rows: Ints) -> tuple[Ints32, Ints32]:
    """Starts and ends with empty tokens at the end of the previous one, or the start of a text."""
    empty = starts == ends
    step = ends.max(initial=0) + 1  # shifts each text behind the previous one
    reached = np.maximum.accumulate(np.where(empty, 0, ends) + rows * step) - rows * step
    starts, ends = np.where(empty, reached, starts), np.where(empty, reached, ends)
    return starts.astype(np.int32), ends.astype(np.int32)
