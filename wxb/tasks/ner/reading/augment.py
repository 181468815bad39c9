"""More training records from few: the same sentences with other names.

Mention replacement as in Dai and Adel 2020, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from wxb.corpora.records import Record
from wxb.tasks.ner.params import Augment
from wxb.tasks.ner.record.spans import Span


def augmented(
    records: Sequence[Record], settings: Augment, *, known: set[str], seed: int
) -> list[Record]:
    """Copies of the labelled records, a share of their mentions replaced by others of the type.

    Replacements come from the same records, so nothing of other splits gets in; copies whose text
    is `known` (in any split) are left out.
    """
    mentions: dict[str, list[str]] = {}
    for record in records:
        for span in record.gold or ():
            mentions.setdefault(span.type, []).append(record.input[span.start : span.end])
    copies = []
    seen = set(known)
    for number in range(1, settings.copies + 1):
        rng = np.random.default_rng([seed, number])
        for record in records:
            copy = _swapped(record, mentions, settings.share, rng)
            if record.gold and copy.input not in seen:
                seen.add(copy.input)
                copies.append(replace(copy, id=f"{record.id}+{number}"))
    return copies


def _swapped(
    record: Record, mentions: Mapping[str, Sequence[str]], share: float, rng: np.random.Generator
) -> Record:
    text, spans, reached = "", [], 0
    for span in record.gold or ():
        text += record.input[reached : span.start]
        mention = record.input[span.start : span.end]
        if rng.random() < share:
            others = mentions[span.type]
            mention = others[int(rng.integers(len(others)))]
        spans.append(Span(len(text), len(text) + len(mention), span.type))
        text += mention
        reached = span.end
    return replace(record, input=text + record.input[reached:], gold=tuple(spans))
