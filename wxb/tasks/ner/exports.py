"""Export records with their spans as CoNLL columns, or JSONL for Prodigy.

A token of CoNLL is a word (letters and digits with their marks) or any other character with its
marks. Scripts without spaces between words are split by character: Chinese, Japanese, Thai, Lao,
Khmer, Burmese. Tokens are also split at the edges of gold and predicted spans, so that no span
changes. CoNLL loses only the white space between tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import regex

from wxb.core.errors import WxbError
from wxb.tasks.exports import ExportRecord, json_line

if TYPE_CHECKING:
    from wxb.tasks.ner.record.spans import Span

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}"
_JOINERS = r"\u200C\u200D"  # they join letters and emoji
# \x1c-\x1f are white space in Python, not in Unicode.
_TOKEN = regex.compile(
    rf"(?V1)[[\p{{L}}\p{{N}}]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}{_JOINERS}]--[{_UNSPACED}]]*"
    rf"|[^\s\x1C-\x1F][\p{{M}}{_JOINERS}]*"
)


def conll(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """Lines `token<TAB>tag` (IOB2) in UTF-8, with a blank line between records.

    An experiment has two columns of tags for conlleval: gold, then predicted. Raises WxbError for
    spans that tags cannot express.
    """
    for index, record in enumerate(records):
        _check_tags(record)
        tokens = tokenize(record.input, *spans_by_column(record))
        words = [record.input[start:end] for start, end in tokens]
        tags = (iob2(tokens, spans) for spans in spans_by_column(record))
        lines = "".join("\t".join(row) + "\n" for row in zip(words, *tags, strict=True))
        # U+FEFF at the start of a file would be read as its byte order mark.
        if index or lines.startswith("\ufeff"):
            yield b"\n"
        yield lines.encode()


def jsonl(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """Lines of JSON in UTF-8 with `text`, `spans` and `meta`, the format of Prodigy.

    For an experiment, `spans` are the predicted ones with scores, and `gold` are the gold ones.
    """
    for record in records:
        gold = _span_objects(record.gold)
        meta = {"id": record.id, "language": record.language}
        line: dict[str, Any] = {"text": record.input, "spans": gold, "meta": meta}
        if row := record.row:
            predicted = zip(_span_objects(row.predicted), row.scores, strict=True)
            line["spans"] = [{**span, "score": score} for span, score in predicted]
            line["gold"] = gold
        yield json_line(line)


FORMATS = {"conll": conll, "jsonl": jsonl}


def spans_by_column(record: ExportRecord) -> list[tuple[Span, ...]]:
    """The gold spans and, for an experiment, the predicted ones."""
    return [record.gold] if record.row is None else [record.gold, record.row.predicted]


def tokenize(text: str, *columns: Sequence[Span]) -> list[tuple[int, int]]:
    """Offsets of the tokens of a text, split at the edges of all spans."""
    edges = sorted({edge for spans in columns for span in spans for edge in span[:2]})
    tokens: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        inner = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        tokens += pairwise([start, *inner, end])
    return tokens


def iob2(tokens: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[str]:
    """The tags (O, B-AGE, I-AGE, ...) of tokens that `tokenize` split at these spans."""
    tags = ["O"] * len(tokens)
    starts = [start for start, _ in tokens]
    for span in spans:
        first, end = bisect_left(starts, span.start), bisect_left(starts, span.end)
        tags[first:end] = [f"B-{span.type}", *[f"I-{span.type}"] * (end - first - 1)]
    return tags


def _check_tags(record: ExportRecord) -> None:
    """Raise WxbError for spans that IOB2 tags in columns cannot express."""
    for spans in map(sorted, spans_by_column(record)):
        faults = [
            f"spans {tuple(left)} and {tuple(right)} overlap"
            for left, right in pairwise(spans)
            if right.start < left.end
        ]
        for span in spans:
            mention = record.input[span.start : span.end]
            if not mention or mention != mention.strip():
                faults.append(f"span {tuple(span)} is {mention!r}, with outer white space")
            if span.type.split() != [span.type]:
                faults.append(f"type {span.type!r} has white space (rename it with `labels`)")
        if faults:
            fault = f"record {record.id!r}: {faults[0]}"
            raise WxbError(f"{fault}; export as jsonl, which accepts any spans")


def _span_objects(spans: Iterable[Span]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "label": span.type} for span in spans]
