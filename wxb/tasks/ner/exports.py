"""Export records with their spans as CoNLL columns, JSONL for Prodigy, or spaCy's DocBin.

CoNLL and spaCy need tokens. A token is a word (letters and digits with their marks) or any other
character with its marks. Scripts without spaces between words are split by character: Chinese,
Japanese, Thai, Lao, Khmer, Burmese. Tokens are also split at the edges of gold and predicted spans,
so that no span changes. CoNLL loses only the white space between tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import regex

from wxb.core.errors import WxbError
from wxb.tasks import exports
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
        line: dict[str, Any] = {"text": record.input, "spans": gold, "meta": _meta(record)}
        if row := record.row:
            predicted = zip(_span_objects(row.predicted), row.scores, strict=True)
            line["spans"] = [{**span, "score": score} for span, score in predicted]
            line["gold"] = gold
        yield json_line(line)


def docbin(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """A serialized DocBin of documents with the original texts; `user_data` has id and language.

    `doc.ents` are the gold spans. For an experiment they are the predicted ones, and
    `doc.spans["gold"]` the gold ones. Raises WxbError without spaCy, and for spans that overlap.
    """
    try:
        from spacy.tokens import Doc, DocBin
        from spacy.util import get_words_and_spaces
        from spacy.vocab import Vocab
    except ModuleNotFoundError as error:
        raise WxbError(
            f"{error}: format spacy needs spaCy; install it with"
            " `pip install --editable '.[benchmarks]'`"
        ) from None
    # A vocabulary without a language: the reader's pipeline adds its own attributes of words.
    vocabulary, documents = Vocab(), DocBin(store_user_data=True)
    for record in records:
        _check_tokens(record)
        tokens = tokenize(record.input, *spans_by_column(record))
        words = [record.input[start:end] for start, end in tokens]
        doc = Doc(vocabulary, *get_words_and_spaces(words, record.input))
        columns: list[list[Any]] = [  # no span is None: none ends inside a token
            [doc.char_span(span.start, span.end, span.type) for span in spans]
            for spans in spans_by_column(record)
        ]
        gold, *predicted = columns
        doc.ents = predicted[0] if predicted else gold
        if predicted:
            doc.spans["gold"] = gold
        doc.user_data = _meta(record)
        documents.add(doc)
    yield documents.to_bytes()


class Exports(exports.Exports):
    """CoNLL columns, JSONL and spaCy's DocBin."""

    FORMATS: ClassVar = {"conll": conll, "jsonl": jsonl, "spacy": docbin}
    BINARY = ("spacy",)


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


def _check_tokens(record: ExportRecord) -> None:
    """Raise WxbError for spans that no tokens can express."""
    for spans in map(sorted, spans_by_column(record)):
        for left, right in pairwise(spans):
            if right.start < left.end:
                raise _export_error(record, f"spans {tuple(left)} and {tuple(right)} overlap")
        for span in spans:
            mention = record.input[span.start : span.end]
            if not mention or mention != mention.strip():
                raise _export_error(
                    record, f"span {tuple(span)} is {mention!r}, with outer white space"
                )


def _check_tags(record: ExportRecord) -> None:
    """Raise WxbError for spans that IOB2 tags in columns cannot express."""
    _check_tokens(record)
    for type_ in sorted({span.type for spans in spans_by_column(record) for span in spans}):
        if type_.split() != [type_]:
            fault = f"type {type_!r} has white space (`labels` of the corpus can rename it)"
            raise _export_error(record, fault)


def _export_error(record: ExportRecord, fault: str) -> WxbError:
    return WxbError(f"record {record.id!r}: {fault}; export as jsonl, which accepts any spans")


def _meta(record: ExportRecord) -> dict[str, Any]:
    return {"id": record.id, "language": record.language}


def _span_objects(spans: Iterable[Span]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "label": span.type} for span in spans]
