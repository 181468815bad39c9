"""Records with their spans, written as other tools read them: CoNLL columns, JSONL, spaCy's DocBin.

CoNLL and spaCy need tokens. A token is a word (letters and digits with their marks) or any other
character with its marks. Scripts that put no spaces between words are cut by character: Chinese,
Japanese, Thai, Lao, Khmer, Burmese. Tokens are also cut at the edges of spans, gold and predicted,
so that both come back exactly. White space between tokens is all that CoNLL loses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

import regex

from wxb.core.errors import WxbError
from wxb.tasks import exports
from wxb.tasks.exports import Exported, json_line

if TYPE_CHECKING:
    from wxb.tasks.ner.metrics import Judged
    from wxb.tasks.ner.record.spans import Span

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}"
_JOINERS = r"\u200C\u200D"  # they shape the letters and emoji on both sides
# \x1c-\x1f: white space to Python, though not to Unicode.
_TOKEN = regex.compile(
    rf"(?V1)[[\p{{L}}\p{{N}}]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}{_JOINERS}]--[{_UNSPACED}]]*"
    rf"|[^\s\x1C-\x1F][\p{{M}}{_JOINERS}]*"
)


def conll(exported: Iterable[Exported]) -> Iterator[bytes]:
    """Lines `token<TAB>tag` (IOB2) in UTF-8, with a blank line between records.

    Of an experiment two columns of tags: gold, then predicted, as conlleval expects them.
    """
    for number, record in enumerate(exported):
        _check_tags(record)
        tokens = cut(record.input, *columns(record))
        words = [record.input[start:end] for start, end in tokens]
        tags = (iob2(tokens, spans) for spans in columns(record))
        lines = "".join("\t".join(row) + "\n" for row in zip(words, *tags, strict=True))
        # At the very start of a file it would be taken for the file's byte order mark.
        if number or lines.startswith("\ufeff"):
            yield b"\n"
        yield lines.encode()


def jsonl(exported: Iterable[Exported]) -> Iterator[bytes]:
    """One JSON object a line in UTF-8: `text`, `spans`, `meta`, as Prodigy lays out its tasks.

    Of an experiment `spans` are the predicted ones, each with its score, and `gold` the gold ones.
    """
    for record in exported:
        gold = _labelled(record.gold)
        line: dict[str, Any] = {"text": record.input, "spans": gold, "meta": _meta(record)}
        if row := judged(record):
            predicted = zip(_labelled(row.predicted), row.scores, strict=True)
            line["spans"] = [{**span, "score": score} for span, score in predicted]
            line["gold"] = gold
        yield json_line(line)


def docbin(exported: Iterable[Exported]) -> Iterator[bytes]:
    """A serialized DocBin whose documents have the very texts; id and language in `user_data`.

    Gold spans are `doc.ents`; of an experiment the predicted ones are, and the gold ones
    `doc.spans["gold"]`.
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
    # Of no language: whoever reads the documents sees words as their own pipeline does.
    vocabulary, documents = Vocab(), DocBin(store_user_data=True)
    for record in exported:
        _check_tokens(record)
        tokens = cut(record.input, *columns(record))
        words = [record.input[start:end] for start, end in tokens]
        doc = Doc(vocabulary, *get_words_and_spaces(words, record.input))
        gold, *predicted = (
            [doc.char_span(span.start, span.end, span.type) for span in spans]
            for spans in columns(record)
        )
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


def judged(record: Exported) -> Judged | None:
    """The row of an experiment."""
    return cast("Judged | None", record.row)


def columns(record: Exported) -> list[tuple[Span, ...]]:
    """The gold spans and, of an experiment, the predicted ones."""
    row = judged(record)
    return [record.gold] if row is None else [record.gold, row.predicted]


def cut(text: str, *spans_of: Sequence[Span]) -> list[tuple[int, int]]:
    """Offsets of the tokens of a text, cut at the edges of some spans, too."""
    edges = sorted({edge for spans in spans_of for span in spans for edge in span[:2]})
    tokens: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        inner = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        tokens += pairwise([start, *inner, end])
    return tokens


def iob2(tokens: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[str]:
    """The tags of tokens that were cut at the edges of the spans: O, B-AGE, I-AGE, ..."""
    tags = ["O"] * len(tokens)
    starts = [start for start, _ in tokens]
    for span in spans:
        first, end = bisect_left(starts, span.start), bisect_left(starts, span.end)
        tags[first:end] = [f"B-{span.type}", *[f"I-{span.type}"] * (end - first - 1)]
    return tags


def _check_tokens(record: Exported) -> None:
    """Raise WxbError for spans that tokens cannot express, whatever their cut."""
    for spans in map(sorted, columns(record)):
        for left, right in pairwise(spans):
            if right.start < left.end:
                raise _cannot(record, f"spans {tuple(left)} and {tuple(right)} overlap")
        for span in spans:
            mention = record.input[span.start : span.end]
            if not mention or mention != mention.strip():
                raise _cannot(record, f"span {tuple(span)} is {mention!r}, with outer white space")


def _check_tags(record: Exported) -> None:
    """Raise WxbError for spans that columns of IOB2 tags cannot express."""
    _check_tokens(record)
    for type_ in sorted({span.type for spans in columns(record) for span in spans}):
        if type_.split() != [type_]:
            raise _cannot(record, f"type {type_!r} holds white space, as `labels` could mend")


def _cannot(record: Exported, fault: str) -> WxbError:
    return WxbError(f"record {record.id!r}: {fault}; export it as jsonl, which takes any spans")


def _meta(record: Exported) -> dict[str, Any]:
    return {"id": record.id, "language": record.language}


def _labelled(spans: Iterable[Span]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "label": span.type} for span in spans]
