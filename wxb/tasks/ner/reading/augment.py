"""Data augmentation by mention replacement (Dai and Adel 2020, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from wxb.corpora.records import Record
from wxb.tasks.ner.params import Augment
from wxb.tasks.ner.record.spans import Span


def replace_mentions(
    records: Sequence[Record], settings: Augment, *, known: Iterable[str], seed: int
) -> list[Record]:
    """Copies of records with spans, in which a share of mentions is replaced by others of the type.

    Replacements are mentions of the same records, so that no other split leaks. Copies are left out
    if their text is in `known`, the texts of all splits, or repeats another copy.
    """
    mentions: dict[str, list[str]] = {}
    for record in records:
        for span in record.gold or ():
            mentions.setdefault(span.type, []).append(record.input[span.start : span.end])
    copies = []
    seen = set(known)
    for copy_number in range(1, settings.copies + 1):
        rng = np.random.default_rng([seed, copy_number])
        for record in records:
            copy = _replace_some(record, mentions, settings.share, rng)
            if record.gold and copy.input not in seen:
                seen.add(copy.input)
                copies.append(replace(copy, id=f"{record.id}+{copy_number}"))
    return copies


def _replace_some(
    record: Record, mentions: Mapping[str, Sequence[str]], share: float, rng: np.random.Generator
) -> Record:
    """A copy of a record; each mention is replaced with the probability `share`."""
    text, spans, end = "", [], 0
    for span in record.gold or ():
        text += record.input[end : span.start]
        mention = record.input[span.start : span.end]
        if rng.random() < share:
            others = mentions[span.type]
            mention = others[int(rng.integers(len(others)))]
        spans.append(Span(len(text), len(text) + len(mention), span.type))
        text += mention
        end = span.end
    return replace(record, input=text + record.input[end:], gold=tuple(spans))
