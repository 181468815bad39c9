"""Read records with typed spans from raw files, check their gold and count it."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from wxb.core.params.section import JOINERS
from wxb.corpora import formats, reading
from wxb.corpora.formats import Raw
from wxb.corpora.records import Record, RecordError, check_characters, required_field
from wxb.tasks.ner.params import Corpus
from wxb.tasks.ner.reading import conll
from wxb.tasks.ner.reading.repair import count_word_edges, folded, repair_offsets, to_characters
from wxb.tasks.ner.record import Span, bracketed

_DIGITS = re.compile(r"\d+")


class Reading(reading.Reading):
    """Texts with typed spans."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """Yield the unchecked records of a column file or one with fields; tags become spans."""
        if corpus.conll:
            return conll.raw_records(file, corpus.conll)
        raws = formats.raw_records(file, corpus.fields.spans, annotator=corpus.annotator)
        return (raw._replace(content=conll.with_spans(raw.content, corpus.fields)) for raw in raws)

    def input_of(self, raw: Mapping[str, Any], corpus: Corpus) -> str:
        """The text of a raw record, or of its tokens."""
        content = conll.with_spans(raw, corpus.fields)
        return super().input_of(content if isinstance(content, Mapping) else raw, corpus)

    def gold_and_repairs(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[tuple[Span, ...] | None, tuple[str, ...]]:
        """The sorted spans of a raw record without repeated ones, and the kind of each repair.

        The spans are None if the field is. `labels` maps or drops types, `repair` corrects offsets,
        and outer white space is excluded. Raises RecordError for a missing field, one that is no
        list of objects, and spans that overlap or do not fit the text.
        """
        fields = corpus.fields
        if (raw_spans := required_field(raw, fields.spans)) is None:
            return None, ()
        if not (isinstance(raw_spans, list) and all(isinstance(s, Mapping) for s in raw_spans)):
            detail = f"{fields.spans!r} is {raw_spans!r:.80}, expected a list of objects"
            raise RecordError("wrong type", detail)
        offsets = [(offset(raw, fields.start), offset(raw, fields.end)) for raw in raw_spans]
        offsets = to_characters(text, offsets, corpus.offsets)
        repairs: list[str] = []
        if corpus.repair == "by-value":
            values = [raw.get(fields.value) for raw in raw_spans]
            offsets, repaired = repair_offsets(text, offsets, values)
            repairs += ["span found by value"] * repaired
        pairs = [*zip(raw_spans, offsets, strict=True)]
        if fields.value and not corpus.repair:
            differing = [a for raw, (a, b) in pairs if raw.get(fields.value) != text[a:b]]
            repairs += ["value spelt otherwise"] * len(differing)
        spans = [*filter(None, (_span(raw, *ends, text, corpus) for raw, ends in pairs))]
        unique = sorted({*spans})
        for left, right in pairwise(unique):
            if right.start < left.end:
                is_nested = left.start == right.start or right.end <= left.end
                kind = "nested spans" if is_nested else "overlapping spans"
                raise RecordError(kind, f"{tuple(left)} and {tuple(right)}")
        repairs += ["repeated span"] * (len(spans) - len(unique))
        return tuple(unique), tuple(repairs)

    def wording(self, record: Record) -> str:
        """The text that near duplicates share: as by default, with `{TYPE}` for each mention.

        Empty for unlabelled records, and without a letter outside mentions, as in lines of scores.
        """
        if record.gold is None:
            return ""
        edges = [0, *(edge for span in record.gold for edge in span[:2]), len(record.input)]
        outside = [record.input[slice(*gap)] for gap in zip(edges[::2], edges[1::2], strict=True)]
        if not any(map(str.isalpha, chain(*outside))):
            return ""
        normalized = [_DIGITS.sub("0", part).casefold() for part in outside]
        types = [f"{{{span.type}}}" for span in record.gold]
        return " ".join("".join(chain(*zip(normalized, [*types, ""], strict=True))).split())

    def labels(self, records: Sequence[Record]) -> list[str]:
        """The types of spans that occur, sorted."""
        return sorted({span.type for record in records for span in record.gold or ()})

    def statistics(self, records: Sequence[Record]) -> dict[str, Any]:
        """Counts of texts `without_spans` and `spans` by type; share of ends `at_word_edges`."""
        spans = [(record.input, span) for record in records for span in record.gold]
        counts = [count_word_edges(text, span.start, span.end) for text, span in spans]
        right, wrong = (sum(column) for column in zip((0, 0), *counts, strict=True))
        return {
            "without_spans": sum(not record.gold for record in records),
            "spans": reading.alphabetical_counts(span.type for _, span in spans),
            "at_word_edges": round(right / (right + wrong), 4) if right + wrong else 1.0,
        }

    def preview(self, record: Record) -> str:
        """The text with its spans marked as `[mention](TYPE)`."""
        return bracketed(record.input, record.gold or ())


def _span(raw: Mapping[str, Any], start: int, end: int, text: str, corpus: Corpus) -> Span | None:
    """The span without outer white space; None if `labels` drops its type.

    Raises RecordError for invalid offsets or type, a blank span, and if the folded value differs.
    """
    fields = corpus.fields
    if start < 0 or end < 0 or end > len(text):
        place = f"{raw[fields.start]}-{raw[fields.end]} ({corpus.offsets})"
        raise RecordError("offsets out of range", f"{place} of {len(text)} characters")
    if end <= start:
        raise RecordError("reversed offsets", f"start {start}, end {end}")
    mention = text[start:end]
    if fields.value is not None and folded(raw.get(fields.value)) != folded(mention):
        detail = f"{start}-{end} is {mention!r}, not {raw.get(fields.value)!r}"
        raise RecordError("value differs", detail)
    name = required_field(raw, fields.type)
    if not isinstance(name, str | int) or name == "":
        raise RecordError("wrong type", f"{fields.type!r} is {name!r}, expected a name")
    plain = str(name).strip() or str(name)
    if (type_ := corpus.labels.get(str(name), corpus.labels.get(plain, plain))) is None:
        return None
    check_characters(type_)
    if not type_.strip() or not type_.translate(JOINERS).isprintable():
        raise RecordError("wrong type", f"{fields.type!r} is {type_!r}, expected a printable name")
    if not mention.strip():
        raise RecordError("blank span", f"{start}-{end} is {mention!r}")
    # Offsets of tokens exclude outer white space, too.
    start += len(mention) - len(mention.lstrip())
    return Span(start, start + len(mention.strip()), sys.intern(type_))


def offset(raw: Mapping[str, Any], field: str) -> int:
    """An offset of a span, also a negative number, "3" or 3.0. Raises RecordError for others."""
    value = required_field(raw, field)
    if (isinstance(value, str) and value.isdecimal()) or isinstance(value, float):
        value = int(value) if float(value).is_integer() else value  # tables have such numbers
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError("wrong type", f"{field!r} is {value!r}, expected a whole number")
    return value
