"""The text of tokens: the bytes that each piece of a vocabulary spells."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import models

from wxb.corpora.text.saved import AnyTokenizer

# The characters by which byte-level pieces show bytes (GPT-2; Radford et al. 2019): printable bytes
# as themselves, the others in order from U+0100 on.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTABLE]
_BYTE = {
    **{chr(byte): bytes([byte]) for byte in _PRINTABLE},
    **{chr(0x100 + index): bytes([byte]) for index, byte in enumerate(_OTHERS)},
}
_FALLBACK = re.compile("<0x([0-9A-F]{2})>")
_SPACE = "\u2581"  # SentencePiece's space
# The last white space is U+3000: all characters after it share the last entry.
_VISIBLE = np.array([not chr(code).isspace() for code in range(0x3001)] + [True])
_MAX_CLUSTER = 32  # the most characters that a normalizer may combine

Fold = Callable[[str], str]


def strip_whitespace(text: str) -> str:
    """A text without any white space, including that between words."""
    return "".join(text.split())


def is_visible(text: str) -> NDArray[np.bool_]:
    """Which characters of a text are not white space."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return _VISIBLE[np.minimum(codes, len(_VISIBLE) - 1)]


def _decode(encoded: bytes) -> str:
    return encoded.decode(errors="replace")


class Pieces:
    """The vocabulary of a fast tokenizer as bytes, and texts as its normalizer leaves them."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self.name = tokenizer.name_or_path or type(tokenizer).__name__
        self.backend = backend = tokenizer.backend_tokenizer
        model = backend.model
        normalizer, splitter = (
            component.__getstate__().decode() if component else ""
            for component in (backend.normalizer, backend.pre_tokenizer)
        )
        self.byte_level = '"ByteLevel"' in splitter
        self.has_spaces = _SPACE in normalizer + splitter
        self.byte_fallback = getattr(model, "byte_fallback", True)
        self.prefix = getattr(model, "continuing_subword_prefix", None) or ""
        self.whole_words = isinstance(model, (models.WordPiece, models.WordLevel))
        unknown = getattr(model, "unk_token", None)
        self.unknown_ids = {tokenizer.unk_token_id, unknown and backend.token_to_id(unknown)}
        self.added = backend.get_added_tokens_decoder()
        self._known: dict[int, bytes | None] = {}

    def spelled(self, ids: Iterable[int]) -> dict[int, bytes | None]:
        """The bytes of the normalized text that ids spell, by id; None for unknown tokens.

        Also has those of earlier calls.
        """
        known = self._known
        for id_ in ids:
            if id_ not in known:
                known[id_] = self._spelled(id_)
        return known

    def _spelled(self, id_: int) -> bytes | None:
        if id_ in self.unknown_ids:
            return None
        piece = str(self.backend.id_to_token(id_))
        if id_ in self.added:
            return self.fold(piece).encode()
        if self.byte_fallback and (match := _FALLBACK.fullmatch(piece)):
            return bytes.fromhex(match[1])
        return self._bytes(piece.removeprefix(self.prefix))

    def _bytes(self, piece: str) -> bytes:
        if self.byte_level and all(character in _BYTE for character in piece):
            return b"".join(_BYTE[character] for character in piece)
        return (piece.replace(_SPACE, " ") if self.has_spaces else piece).encode()

    def fold(self, text: str) -> str:
        """The characters of the normalized text that are not white space."""
        text = self._normalize(text)
        return strip_whitespace(text.replace(_SPACE, " ") if self.has_spaces else text)

    def _normalize(self, text: str) -> str:
        normalizer = self.backend.normalizer
        return str(normalizer.normalize_str(text)) if normalizer else text

    def fill_unknown(self, spelling: Sequence[bytes | None], text: str) -> list[bytes]:
        """The bytes of the tokens of a text, with the most likely ones for unknown tokens.

        WordPiece's [UNK] is a word. SentencePiece's is a run of characters that are not in the
        vocabulary.
        """
        filled = [token for token in spelling if token is not None]
        if len(filled) == len(spelling):
            return filled
        folded, text = self.fold(text), self._normalize(text)
        pre_tokenizer: Any = self.backend.pre_tokenizer
        words = (
            [word for word, _ in pre_tokenizer.pre_tokenize_str(text)] if pre_tokenizer else [text]
        )
        words = [part for word in words for part in _decode(self._bytes(word)).split()]
        stops = [*accumulate(map(len, words)), len(folded)]
        filled = []
        # The index in `filled` after the last unknown token, and the index in `folded`.
        begin = position = 0
        for index, token in enumerate(spelling):
            if token is not None:
                filled.append(token)
                continue
            position += len(strip_whitespace(_decode(b"".join(filled[begin:]))))
            stop = stops[bisect(stops, position)] if position < len(folded) else position
            end = stop if self.whole_words else position + 1
            while end < stop and self.backend.token_to_id(folded[end]) is None:
                end += 1
            filled.append(folded[position:end].encode())
            begin, position = index + 1, end
        return filled

    def is_dropped(self, character: str) -> bool:
        """Whether the tokenizer drops a character: encoded alone, it yields no visible token."""
        ids = self.backend.encode(character, add_special_tokens=False).ids
        return all(
            token is not None and not strip_whitespace(_decode(token))
            for token in map(self._spelled, ids)
        )


class Folded(NamedTuple):
    """The visible characters of a normalized text, and the range of each in the original text."""

    characters: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def fold_with_offsets(text: str, fold: Fold) -> Folded | None:
    """Normalize a text in parts to get offsets; None if the parts do not make up the whole."""
    whole = fold(text)
    if whole == strip_whitespace(text):
        positions = np.flatnonzero(is_visible(text))
        return Folded(whole, positions, positions + 1)
    for boundaries in (_characters, _clusters):
        edges = boundaries(text, fold)
        parts = [fold(text[start:end]) for start, end in pairwise(edges)]
        if "".join(parts) == whole:
            counts = [len(part) for part in parts]
            return Folded(whole, np.repeat(edges[:-1], counts), np.repeat(edges[1:], counts))
    return None


def _characters(text: str, fold: Fold) -> list[int]:
    return list(range(len(text) + 1))


def _clusters(text: str, fold: Fold) -> list[int]:
    """Boundaries between characters that the normalizer does not combine."""
    edges = [0]
    for index in range(1, len(text)):
        before = text[max(edges[-1], index - _MAX_CLUSTER) : index]
        if fold(before + text[index]) == fold(before) + fold(text[index]):
            edges.append(index)
    return [*edges, len(text)]
