"""Which characters each token stands for: what a tokenizer says of it is checked, and repaired.

Fast tokenizers give wrong offsets in the wild (huggingface/tokenizers issues). LLaMA-3's were empty
(1517, 1553). The `▁` that SentencePiece prepends (XLM-R, T5, LLaMA-2) claims the first letter of
its word if it is a token (1018, 1775). A letter that NFC composes (Qwen) leaves its accents out.
The last two still happen in tokenizers 0.23. A tagger that learns from them learns spans that are
not there.

The tokens of a text spell it. Where each claims as many visible characters as it spells, one after
the other, and none is left over, the offsets are right. Elsewhere, what the tokens spell is laid
over the text as the normalizer leaves it, and that gives the offsets anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wxb.core.errors import WxbError
from wxb.corpora.text.pieces import Fold, Pieces, ink, seen_as, visible_in

if TYPE_CHECKING:
    from wxb.corpora.text.tokenizers import AnyTokenizer

_SHOWN = 80  # characters of a text in an error
_UNKNOWN, _BROKEN = -1, -2


def on_text(
    tokenizer: AnyTokenizer,
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    texts: Sequence[str],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Starts and ends (N,) of tokens on their untouched texts, without outer white space.

    `ids` (N,) are all tokens of whole texts, without special ones; `offsets` (N, 2), in code
    points, are what the tokenizer says; `rows` (N,), ascending, tells the text of each. A token
    that covers no visible character stands where the one before it ends. A character that several
    tokens spell together belongs to each of them.

    Raises WxbError where the offsets are wrong and the tokens do not tell the right ones.
    """
    pieces = Pieces(tokenizer)
    spelled = pieces.spelled(np.flatnonzero(np.bincount(ids)).tolist())
    fold = lru_cache(maxsize=100_000)(pieces.fold)
    starts, ends, wrong, unsure = _claims(spelled, ids, offsets, rows, texts)
    edges = np.searchsorted(rows, np.arange(len(texts) + 1))
    for row in np.flatnonzero(wrong | unsure).tolist():
        tokens, text = slice(edges[row], edges[row + 1]), texts[row]
        spelling = [spelled[number] for number in ids[tokens].tolist()]
        if not wrong[row] and not _fault(spelling, offsets[tokens], text, pieces, fold):
            continue
        found = _spelled(pieces.guessed(spelling, text), text, fold)
        if found:
            starts[tokens], ends[tokens] = found
        elif fault := _fault(spelling, offsets[tokens], text, pieces, fold):
            raise WxbError(
                f"tokenizer {tokenizer.name_or_path or type(tokenizer).__name__}: wrong offsets in"
                f" {text[:_SHOWN]!r}: {fault}; right ones cannot be told from its vocabulary."
                " Choose another `revision` or `checkpoint`, or have a `tokenizer` trained"
            )
    return _settled(starts, ends, rows)


def _claims(
    spelled: dict[int, bytes | None],
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    texts: Sequence[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The given offsets without outer white space; which texts have wrong, or unknown, tokens."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    base = np.cumsum(lengths + 1) - lengths - 1
    # All texts as one, with a blank after each.
    visible = visible_in("".join(f"{text} " for text in texts))
    before = np.concatenate([[0], np.cumsum(visible)])
    low, high = np.clip(offsets, 0, lengths[rows, None]).T + base[rows]
    first, last = before[low], before[np.maximum(low, high)]

    spells = np.zeros(max(spelled, default=-1) + 1, np.int64)
    for number, one in spelled.items():
        spells[number] = _count(one)
    unknown = spells[ids] == _UNKNOWN
    expected = np.where(unknown, last - first, spells[ids])
    # A token has the characters that follow those of all tokens before it.
    reached = np.concatenate([[0], np.cumsum(expected)])
    from_text = before[base] - reached[np.searchsorted(rows, np.arange(len(texts)))]
    misplaced = (expected > 0) & (last != reached[1:] + from_text[rows])
    misplaced |= (last - first != expected) | np.any(offsets.T + base[rows] != [low, high], axis=0)
    ink_of_text = before[base + lengths] - before[base]
    wrong = _per_text(rows, expected, texts) != ink_of_text
    wrong |= _per_text(rows, misplaced, texts) > 0

    covering = last > first
    positions = np.append(np.flatnonzero(visible), 0)
    starts = np.where(covering, positions[first] - base[rows], 0)
    ends = np.where(covering, positions[last - 1] + 1 - base[rows], 0)
    return starts, ends, wrong, _per_text(rows, unknown, texts) > 0


def _count(spelled: bytes | None) -> int:
    """How many visible characters a token spells."""
    try:
        return _UNKNOWN if spelled is None else len(ink(spelled.decode()))
    except UnicodeDecodeError:
        return _BROKEN


def _per_text(
    rows: NDArray[np.int64], values: NDArray[np.generic], texts: Sequence[str]
) -> NDArray[np.int64]:
    return np.bincount(rows, values, len(texts)).astype(np.int64)


def _spelled(
    spelling: Sequence[bytes], text: str, fold: Fold
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The stretch of a text that each token spells; None where they do not spell it."""
    joined = b"".join(spelling)
    characters = joined.decode(errors="replace")
    seen = seen_as(text, fold)
    if seen is None or ink(characters) != seen.characters:
        return None
    visible = visible_in(characters)
    continues = (np.frombuffer(joined, np.uint8) & 0xC0) == 0x80
    character = np.cumsum(~continues) - 1  # of each byte
    # The visible characters up to that of each byte, with it and without.
    until = np.cumsum(visible)[character]
    before = until - visible[character]
    lengths = np.fromiter(map(len, spelling), np.int64, len(spelling))
    edges = np.concatenate([[0], np.cumsum(lengths)])
    spells = np.flatnonzero(lengths)
    first, last = before[edges[spells]], until[edges[spells + 1] - 1]
    covering = last > first
    starts, ends = np.zeros((2, len(spelling)), np.int64)
    starts[spells[covering]] = seen.starts[first[covering]]
    ends[spells[covering]] = seen.ends[last[covering] - 1]
    return starts, ends


def _fault(
    spelling: Sequence[bytes | None],
    offsets: NDArray[np.int64],
    text: str,
    pieces: Pieces,
    fold: Fold,
) -> str | None:
    """What is wrong with the offsets of one text, by the characters they select, if anything is."""
    reached, missed = 0, ""
    for token, (one, (start, end)) in enumerate(zip(spelling, offsets.tolist(), strict=True)):
        here = f"token {token} stands at {start}:{end}"
        if not 0 <= start <= end <= len(text):
            return f"{here} of {len(text)} characters"
        found = text[start:end]
        if one is not None and fold(found) != (spelled := ink(one.decode(errors="replace"))):
            return f"{here}, which is {found!r}, and spells {spelled!r}"
        if found.strip():
            if ink(text[start:reached]):
                return f"{here}, and the one before it ends at {reached}"
            missed += text[reached:start]
            reached = end
    missed = ink(missed + text[reached:])
    lost = next((character for character in missed if not pieces.silent(character)), None)
    return lost and f"no token stands for {lost!r}"


def _settled(
    starts: NDArray[np.int64], ends: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Put each token that covers nothing where the one before it ends, or its text begins."""
    empty = starts == ends
    step = ends.max(initial=0) + 1  # texts laid end to end: none reaches into the next
    reached = np.maximum.accumulate(np.where(empty, 0, ends) + rows * step) - rows * step
    starts, ends = np.where(empty, reached, starts), np.where(empty, reached, ends)
    return starts.astype(np.int32), ends.astype(np.int32)
