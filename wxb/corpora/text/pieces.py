"""What tokens spell: the bytes of a text that each piece of a vocabulary stands for."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import models

if TYPE_CHECKING:
    from wxb.corpora.text.tokenizers import AnyTokenizer

# How byte-level pieces show bytes (GPT-2; Radford et al. 2019): those that print as themselves, and
# the others, in their order, as the characters from U+0100 on.
_PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTED]
_BYTE = {
    **{chr(byte): bytes([byte]) for byte in _PRINTED},
    **{chr(0x100 + place): bytes([byte]) for place, byte in enumerate(_OTHERS)},
}
_FALLBACK = re.compile("<0x([0-9A-F]{2})>")
_SPACE = "\u2581"  # how SentencePiece writes a space
# White space ends at U+3000: all characters after it share the last entry.
_VISIBLE = np.array([not chr(code).isspace() for code in range(0x3001)] + [True])
_LONGEST_CLUSTER = 32  # how many characters a normalizer may join

Fold = Callable[[str], str]


def ink(text: str) -> str:
    """A text without its white space."""
    return "".join(text.split())


def visible_in(text: str) -> NDArray[np.bool_]:
    """Which characters of a text are no white space."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return _VISIBLE[np.minimum(codes, len(_VISIBLE) - 1)]


def _text(encoded: bytes) -> str:
    return encoded.decode(errors="replace")


class Pieces:
    """Reads the vocabulary of a fast tokenizer, and texts as it sees them."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self.backend = backend = tokenizer.backend_tokenizer
        model = backend.model
        normalizer, splitter = (
            part.__getstate__().decode() if part else ""
            for part in (backend.normalizer, backend.pre_tokenizer)
        )
        self.byte_level = '"ByteLevel"' in splitter
        self.spaces = _SPACE in normalizer + splitter
        self.fallback = getattr(model, "byte_fallback", True)
        self.prefix = getattr(model, "continuing_subword_prefix", None) or ""
        self.whole_words = isinstance(model, (models.WordPiece, models.WordLevel))
        unknown = getattr(model, "unk_token", None)
        self.unknown = {tokenizer.unk_token_id, unknown and backend.token_to_id(unknown)}
        self.added = backend.get_added_tokens_decoder()

    def spelled(self, ids: Iterable[int]) -> dict[int, bytes | None]:
        """The bytes of the normalized text that each id stands for; None: an unknown token."""
        return {number: self._spelled(number) for number in ids}

    def _spelled(self, number: int) -> bytes | None:
        if number in self.unknown:
            return None
        piece = str(self.backend.id_to_token(number))
        if number in self.added:
            return self.fold(piece).encode()
        if self.fallback and (byte := _FALLBACK.fullmatch(piece)):
            return bytes.fromhex(byte[1])
        return self._bytes(piece.removeprefix(self.prefix))

    def _bytes(self, piece: str) -> bytes:
        if self.byte_level and all(character in _BYTE for character in piece):
            return b"".join(_BYTE[character] for character in piece)
        return (piece.replace(_SPACE, " ") if self.spaces else piece).encode()

    def fold(self, text: str) -> str:
        """The visible characters of a text as the normalizer leaves them."""
        text = self._normalized(text)
        return ink(text.replace(_SPACE, " ") if self.spaces else text)

    def _normalized(self, text: str) -> str:
        normalizer = self.backend.normalizer
        return str(normalizer.normalize_str(text)) if normalizer else text

    def guessed(self, spelling: Sequence[bytes | None], text: str) -> list[bytes]:
        """A spelling with what its unknown tokens most likely stand for.

        WordPiece's [UNK] is a word; that of SentencePiece as many characters as the vocabulary
        lacks one after the other.
        """
        filled = [one for one in spelling if one is not None]
        if len(filled) == len(spelling):
            return filled
        seen, text = self.fold(text), self._normalized(text)
        pre: Any = self.backend.pre_tokenizer
        words = [word for word, _ in pre.pre_tokenize_str(text)] if pre else [text]
        words = [part for word in words for part in _text(self._bytes(word)).split()]
        stops = [*accumulate(map(len, words)), len(seen)]
        filled = []
        begin = at = 0  # of what is spelled since the last unknown token; and in `seen`
        for token, one in enumerate(spelling):
            if one is not None:
                filled.append(one)
                continue
            at += len(ink(_text(b"".join(filled[begin:]))))
            stop = stops[bisect(stops, at)] if at < len(seen) else at
            end = stop if self.whole_words else at + 1
            while end < stop and self.backend.token_to_id(seen[end]) is None:
                end += 1
            filled.append(seen[at:end].encode())
            begin, at = token + 1, end
        return filled

    def silent(self, character: str) -> bool:
        """Whether the tokenizer drops a character: alone, it gives no token that says anything."""
        ids = self.backend.encode(character, add_special_tokens=False).ids
        return all(one is not None and not ink(_text(one)) for one in self.spelled(ids).values())


class Seen(NamedTuple):
    """The visible characters of a text as its tokenizer sees it, and where each comes from."""

    characters: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def seen_as(text: str, fold: Fold) -> Seen | None:
    """Normalize a text bit by bit; None where the bits do not make up the whole."""
    whole = fold(text)
    if whole == ink(text):
        positions = np.flatnonzero(visible_in(text))
        return Seen(whole, positions, positions + 1)
    for cut in (_characters, _clusters):
        edges = cut(text, fold)
        bits = [fold(text[start:end]) for start, end in pairwise(edges)]
        if "".join(bits) == whole:
            counts = [len(bit) for bit in bits]
            return Seen(whole, np.repeat(edges[:-1], counts), np.repeat(edges[1:], counts))
    return None


def _characters(text: str, fold: Fold) -> list[int]:
    return list(range(len(text) + 1))


def _clusters(text: str, fold: Fold) -> list[int]:
    """Where to cut a text so that no characters are parted that the normalizer joins."""
    edges = [0]
    for at in range(1, len(text)):
        before = text[max(edges[-1], at - _LONGEST_CLUSTER) : at]
        if fold(before + text[at]) == fold(before) + fold(text[at]):
            edges.append(at)
    return [*edges, len(text)]
