"""Check and repair the character offsets of tokens.

Some fast tokenizers return wrong offsets (huggingface/tokenizers issues). LLaMA-3's were empty
(1517, 1553). The `▁` that SentencePiece prepends (XLM-R, T5, LLaMA-2) takes the first letter of
its word if it is a token (1018, 1775). Offsets of letters that NFC composes (Qwen) exclude their
accents. The last two errors remain in tokenizers 0.23. A tagger trained on them learns wrong spans.

Offsets are correct if each token covers as many visible characters as it spells, in order, and no
character is left over. Otherwise the spelling of the tokens is aligned with the normalized text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.corpora.text.pieces import (
    Fold,
    Pieces,
    fold_with_offsets,
    is_visible,
    strip_whitespace,
)

_SHOWN = 80  # characters of a text in an error
_UNKNOWN, _BROKEN = -1, -2


def token_offsets(
    pieces: Pieces,
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    texts: Sequence[str],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Checked starts and ends (N,) of tokens in their texts, without outer white space.

    `pieces` is the tokenizer's vocabulary. `ids` (N,) are all tokens of the texts without special
    ones. `offsets` (N, 2) are the tokenizer's, in code points. `rows` (N,) ascends and has the text
    of each token. A token without visible characters starts and ends at the end of the previous
    one. A character that several tokens spell together belongs to each of them.

    Raises WxbError if offsets are wrong and the spelling of the tokens does not give correct ones.
    """
    spelled = pieces.spelled(np.flatnonzero(np.bincount(ids)).tolist())
    fold = lru_cache(maxsize=100_000)(pieces.fold)
    starts, ends, wrong, unsure = _compare(spelled, ids, offsets, rows, texts)
    edges = np.searchsorted(rows, np.arange(len(texts) + 1))
    for row in np.flatnonzero(wrong | unsure).tolist():
        tokens, text = slice(edges[row], edges[row + 1]), texts[row]
        spelling = [spelled[id_] for id_ in ids[tokens].tolist()]
        if not wrong[row] and (
            _spells(spelling, offsets[tokens], text, fold)
            or not _find_error(spelling, offsets[tokens], text, pieces, fold)
        ):
            continue
        aligned = _align(pieces.fill_unknown(spelling, text), text, fold)
        if aligned:
            starts[tokens], ends[tokens] = aligned
        elif error := _find_error(spelling, offsets[tokens], text, pieces, fold):
            raise WxbError(
                f"tokenizer {pieces.name}: wrong offsets in"
                f" {text[:_SHOWN]!r}: {error}; its vocabulary does not give correct ones."
                " Choose another `revision` or `checkpoint`, or train a `tokenizer`"
            )
    return _place_empty(starts, ends, rows)


def _compare(
    spelled: dict[int, bytes | None],
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    texts: Sequence[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The starts and ends without outer white space, and which texts have wrong or unknown tokens.

    Checks all texts at once. An unknown token is assumed to spell what its offsets cover.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    base = np.cumsum(lengths + 1) - lengths - 1
    # All texts as one, with a space after each.
    visible = is_visible("".join(f"{text} " for text in texts))
    before = np.concatenate([[0], np.cumsum(visible)])
    low, high = np.clip(offsets, 0, lengths[rows, None]).T + base[rows]
    first, last = before[low], before[np.maximum(low, high)]

    spells = np.zeros(max(spelled, default=-1) + 1, np.int64)
    for id_, token in spelled.items():
        spells[id_] = _count(token)
    unknown = spells[ids] == _UNKNOWN
    expected = np.where(unknown, last - first, spells[ids])
    # A token covers the visible characters after those of all previous tokens.
    reached = np.concatenate([[0], np.cumsum(expected)])
    from_text = before[base] - reached[np.searchsorted(rows, np.arange(len(texts)))]
    misplaced = (expected > 0) & (last != reached[1:] + from_text[rows])
    misplaced |= (last - first != expected) | np.any(offsets.T + base[rows] != [low, high], axis=0)
    visible_counts = before[base + lengths] - before[base]
    wrong = _per_text(rows, expected, texts) != visible_counts
    wrong |= _per_text(rows, misplaced, texts) > 0

    covering = last > first
    positions = np.append(np.flatnonzero(visible), 0)
    starts = np.where(covering, positions[first] - base[rows], 0)
    ends = np.where(covering, positions[last - 1] + 1 - base[rows], 0)
    return starts, ends, wrong, _per_text(rows, unknown, texts) > 0


@lru_cache(maxsize=100_000)
def _count(spelled: bytes | None) -> int:
    """The number of visible characters that a token spells; _BROKEN for parts of a character."""
    try:
        return _UNKNOWN if spelled is None else len(strip_whitespace(spelled.decode()))
    except UnicodeDecodeError:
        return _BROKEN


def _per_text(
    rows: NDArray[np.int64], values: NDArray[np.generic], texts: Sequence[str]
) -> NDArray[np.int64]:
    return np.bincount(rows, values, len(texts)).astype(np.int64)


def _align(
    spelling: Sequence[bytes], text: str, fold: Fold
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Start and end (T,) of the characters of each token, 0 for blank ones; None if they differ."""
    joined = b"".join(spelling)
    characters = joined.decode(errors="replace")
    folded = fold_with_offsets(text, fold)
    if folded is None or strip_whitespace(characters) != folded.characters:
        return None
    visible = is_visible(characters)
    is_continuation = (np.frombuffer(joined, np.uint8) & 0xC0) == 0x80  # of UTF-8
    character = np.cumsum(~is_continuation) - 1  # of each byte
    # The number of visible characters up to that of each byte, with and without it.
    until = np.cumsum(visible)[character]
    before = until - visible[character]
    lengths = np.fromiter(map(len, spelling), np.int64, len(spelling))
    edges = np.concatenate([[0], np.cumsum(lengths)])
    spells = np.flatnonzero(lengths)
    first, last = before[edges[spells]], until[edges[spells + 1] - 1]
    covering = last > first
    starts, ends = np.zeros((2, len(spelling)), np.int64)
    starts[spells[covering]] = folded.starts[first[covering]]
    ends[spells[covering]] = folded.ends[last[covering] - 1]
    return starts, ends


def _spells(
    spelling: Sequence[bytes | None], offsets: NDArray[np.int64], text: str, fold: Fold
) -> bool:
    """Whether tokens spell a text that the normalizer leaves as it is.

    Each must have as many visible characters as its offsets cover: then each spells what it covers.
    An unknown token is assumed to.
    """
    parts = [
        text[start:end].encode() if token is None else token
        for token, (start, end) in zip(spelling, offsets.tolist(), strict=True)
    ]
    visible = strip_whitespace(text)
    joined = strip_whitespace(b"".join(parts).decode(errors="replace"))
    return joined == visible == fold(text)


def _find_error(
    spelling: Sequence[bytes | None],
    offsets: NDArray[np.int64],
    text: str,
    pieces: Pieces,
    fold: Fold,
) -> str | None:
    """The first error in the offsets of a text, as part of an error message; None if correct."""
    reached, uncovered = 0, ""
    for index, (token, (start, end)) in enumerate(zip(spelling, offsets.tolist(), strict=True)):
        place = f"token {index} has offsets {start}:{end}"
        if not 0 <= start <= end <= len(text):
            return f"{place} in a text of {len(text)} characters"
        covered = text[start:end]
        if token is not None:
            spelled = strip_whitespace(token.decode(errors="replace"))
            if fold(covered) != spelled:
                return f"{place}, which are {covered!r}, but spells {spelled!r}"
        if covered.strip():
            if strip_whitespace(text[start:reached]):
                return f"{place}, but the token before it ends at {reached}"
            uncovered += text[reached:start]
            reached = end
    uncovered = strip_whitespace(uncovered + text[reached:])
    lost = next((c for c in uncovered if not pieces.is_dropped(c)), None)
    return lost and f"no token covers {lost!r}"


def _place_empty(
    starts: NDArray[np.int64], ends: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Move each empty token to the end of the previous one, or to the start of its text."""
    empty = starts == ends
    step = ends.max(initial=0) + 1  # shifts each text behind the previous one
    reached = np.maximum.accumulate(np.where(empty, 0, ends) + rows * step) - rows * step
    starts, ends = np.where(empty, reached, starts), np.where(empty, reached, ends)
    return starts.astype(np.int32), ends.astype(np.int32)
