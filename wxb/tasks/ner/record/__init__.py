"""Typed spans as the gold of records, and their form in Parquet."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from wxb.corpora.records import Labelling


class Span(NamedTuple):
    """A type and the offsets [start, end) in code points, with 0 <= start < end (not checked)."""

    start: int
    end: int
    type: str


def bracketed(text: str, spans: Iterable[Span]) -> str:
    """The text with its spans, which are sorted and disjoint, as `[mention](TYPE)`."""
    parts, end = [], 0
    for span in spans:
        parts += [text[end : span.start], f"[{text[span.start : span.end]}]({span.type})"]
        end = span.end
    return "".join([*parts, text[end:]])


def f1(gold: Iterable[Iterable[Any]], predicted: Iterable[Iterable[Any]]) -> float:
    """Micro F1 of the spans of texts, of any type; 0 without spans. Duplicates count once."""
    pairs = [({*g}, {*p}) for g, p in zip(gold, predicted, strict=True)]
    total = sum(len(g) + len(p) for g, p in pairs)
    return 2 * sum(len(g & p) for g, p in pairs) / total if total else 0.0


LABELLING = Labelling(
    pa.list_(pa.struct({"start": pa.int32(), "end": pa.int32(), "type": pa.string()})),
    tuple[Span, ...],
)
