"""Words of any language, and whether training has them. A Chinese or Japanese character is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import regex

if TYPE_CHECKING:
    from wxb.corpora.records import Record

_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}"
_WORD = regex.compile(rf"(?V1)[{_ALONE}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+")


class Words(NamedTuple):
    """The words of sources and of references, in lower case."""

    source: frozenset[str]
    target: frozenset[str]

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> Words:
        """The words of labelled records; others are skipped."""
        sources: set[str] = set()
        references: set[str] = set()
        for record in records:
            if record.gold:
                sources.update(words(record.input))
                references.update(*map(words, record.gold))
        return cls(frozenset(sources), frozenset(references))


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def unseen(record: Record, vocabulary: Words) -> bool:
    """Whether the source of a record, or each of its references, has an unknown word."""
    return not {*words(record.input)} <= vocabulary.source or all(
        not {*words(reference)} <= vocabulary.target for reference in record.gold
    )
