"""Words of any language, a Chinese or Japanese character being one, and which training lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import regex

if TYPE_CHECKING:
    from wxb.corpora.records import Record

_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}"
_WORD = regex.compile(rf"(?V1)[{_ALONE}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+")


class Words(NamedTuple):
    """The words of sources, and those of references, in lower case."""

    source: frozenset[str]
    target: frozenset[str]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Words:
        """Those of labelled records."""
        labelled = [record for record in records if record.gold]
        return cls(
            frozenset(word for record in labelled for word in words(record.input)),
            frozenset(word for r in labelled for text in r.gold for word in words(text)),
        )


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def unseen(record: Record, known: Words) -> bool:
    """Whether the source, or every reference of it, has a word that is not known."""
    return not {*words(record.input)} <= known.source or all(
        not {*words(reference)} <= known.target for reference in record.gold
    )
