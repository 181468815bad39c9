"""Column files: a token and its tag a line, a blank line between sentences.

CoNLL-2003, WNUT, MSRA, Weibo and their like. Tags may be BIO (IOB2), IOB1, BIOES, BILOU or BMEWO:
the rules of conlleval (Tjong Kim Sang and Buchholz 2000) read all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from wxb.corpora.formats import Raw
from wxb.corpora.layout import decode
from wxb.corpora.records import RecordError
from wxb.tasks.ner.params import Conll
from wxb.tasks.ner.record.spans import Span

DOCUMENT = "-DOCSTART-"
BEGINNING = frozenset("BSUW")  # single tokens are S in BIOES, U in BILOU, W in BMEWO
ENDING = frozenset("ELSUW")
PREFIXES = BEGINNING | ENDING | frozenset("IM")

Lines = list[tuple[int, str]]  # (number in the file, content) of one sentence


class Tag(NamedTuple):
    """The place of a token in a chunk, and the type of the chunk; both are empty outside of one."""

    prefix: str
    type: str


OUTSIDE = Tag("", "")


class Sentence(NamedTuple):
    """Tokens and as many tags."""

    tokens: list[str]
    tags: list[Tag]


def raw_records(file: Path, conll: Conll) -> Iterator[Raw]:
    """The sentences or documents of a file, with spans as mappings of the default field names.

    Sentences tell the number of their document where the file marks any. Raises WxbError for a file
    that is empty or not UTF-8.
    """
    units = [
        (document, unit[0][0][0], _parsed(unit, conll))
        for document, unit in _units(decode(file), conll.unit)
    ]
    in_documents = conll.unit == "sentence" and any(document for document, _, _ in units)
    # IOB1 has B- only to part two neighbours of one type; any other scheme begins each chunk so.
    # In a file without such beginnings no chunk lacks one.
    announced = any(
        tag.prefix in BEGINNING and tag.type != previous.type
        for _, _, sentences in units
        if not isinstance(sentences, RecordError)
        for sentence in sentences
        for previous, tag in _pairs(sentence.tags)
    )
    for document, line, sentences in units:
        place = f"line {line}"
        if isinstance(sentences, RecordError):
            yield Raw(place, sentences)
        else:
            repaired = tuple(_unannounced(sentences)) if announced else ()
            content = _content(sentences, conll.join)
            yield Raw(place, content, repaired, document if in_documents else None)


def _units(text: str, unit: str) -> Iterator[tuple[int, list[Lines]]]:
    """The sentences of each record, and how many documents were marked before they ended."""
    sentences: list[Lines] = []
    lines: Lines = []
    document = 0
    # Only line feeds end a line: tokens may hold other separators of Unicode.
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        line = line.rstrip("\r\t ")
        opens = line.startswith(DOCUMENT)
        if line and not opens:
            lines.append((number, line))
            continue
        if lines:
            sentences.append(lines)
            lines = []
        if sentences and (opens or unit == "sentence"):
            yield document, sentences
            sentences = []
        document += opens
    if sentences:
        yield document, sentences


def _parsed(unit: list[Lines], conll: Conll) -> list[Sentence] | RecordError:
    try:
        return [_sentence(lines, conll) for lines in unit]
    except RecordError as why:
        return why


def _sentence(lines: Lines, conll: Conll) -> Sentence:
    tokens, tags = [], []
    for number, line in lines:
        columns = cells(line)
        width = len(columns)
        reach = max(place if place >= 0 else ~place for place in (conll.token, conll.tag))
        if reach >= width or conll.token % width == conll.tag % width:
            raise RecordError(
                "too few columns",
                f"line {number}: {line!r} has {width};"
                f" expected a token in column {conll.token} and a tag in {conll.tag}",
            )
        token = columns[conll.token]
        tokens.append(token[:1] if conll.characters else token)
        tags.append(_tag(columns[conll.tag].strip(), number))
    return Sentence(tokens, tags)


def cells(line: str) -> list[str]:
    """The columns of a line, which tabs divide, or spaces where it has no tab."""
    # Not `split()`: a token may be a space of another kind, or hold one.
    return line.split("\t") if "\t" in line else re.split(" +", line.lstrip(" "))


def _tag(name: str, number: int) -> Tag:
    prefix, _, type_ = name.partition("-")
    if name == "O":
        return OUTSIDE
    if prefix not in PREFIXES or not type_:
        raise RecordError(
            "unknown tag",
            f"line {number}: {name!r}; expected O, or a type after one of"
            f" {', '.join(f'{known}-' for known in sorted(PREFIXES))}",
        )
    return Tag(prefix, type_)


def _content(sentences: Sequence[Sentence], join: str) -> dict[str, Any]:
    """The text that the tokens make, sentences on lines of their own, and the spans in it."""
    texts, spans, begin = [], [], 0
    for sentence in sentences:
        lengths = (len(token) + len(join) for token in sentence.tokens)
        starts = list(accumulate(lengths, initial=begin))
        for first, end, type_ in chunks(sentence.tags):
            last = end - 1
            stretch = Span(starts[first], starts[last] + len(sentence.tokens[last]), type_)
            spans.append(stretch._asdict())
        texts.append(join.join(sentence.tokens))
        begin += len(texts[-1]) + 1
    return {"input": "\n".join(texts), "spans": spans}


def chunks(tags: Sequence[Tag]) -> list[tuple[int, int, str]]:
    """(first token, one after the last, type) of every chunk that tags mark, in any scheme."""
    found: list[tuple[int, int, str]] = []
    for number, (previous, tag) in enumerate(_pairs(tags)):
        if _begins(previous, tag):
            found.append((number, number + 1, tag.type))
        elif tag != OUTSIDE:
            first, _, type_ = found[-1]
            found[-1] = first, number + 1, type_
    return found


def _begins(previous: Tag, tag: Tag) -> bool:
    """Whether a chunk begins at a tag: it says so, or there is none of its type to go on with."""
    if tag == OUTSIDE:
        return False
    ended = previous == OUTSIDE or previous.prefix in ENDING
    return tag.prefix in BEGINNING or ended or previous.type != tag.type


def _unannounced(sentences: Sequence[Sentence]) -> Iterator[str]:
    for sentence in sentences:
        for previous, tag in _pairs(sentence.tags):
            if _begins(previous, tag) and tag.prefix not in BEGINNING:
                yield f"{tag.prefix}- without B-"


def _pairs(tags: Sequence[Tag]) -> Iterator[tuple[Tag, Tag]]:
    """Each tag with the one before it."""
    return zip([OUTSIDE, *tags], tags, strict=False)
