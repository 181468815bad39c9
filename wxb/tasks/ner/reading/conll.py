"""Read column files: one token and its tag per line, a blank line between sentences.

Examples are CoNLL-2003, WNUT, MSRA and Weibo. Tags may be BIO (IOB2), IOB1, BIOES, BILOU or BMEWO:
the rules of conlleval (Tjong Kim Sang and Buchholz 2000) cover all of them.
"""

from __future__ import annotations

import re
from collections import Counter
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
COMMENT = re.compile(r"#\s*[\w.]+\s*=")  # such as `# sent_id = 1`
BEGINNING = frozenset("BSUW")  # single tokens are S in BIOES, U in BILOU, W in BMEWO
ENDING = frozenset("ELSUW")
PREFIXES = BEGINNING | ENDING | frozenset("IM")

Lines = list[tuple[int, str]]  # (line number, content) of one sentence


class Tag(NamedTuple):
    """The prefix and type of a tag such as B-NAME; both are empty for O."""

    prefix: str
    type: str


OUTSIDE = Tag("", "")


class Sentence(NamedTuple):
    """The tokens and tags of a sentence."""

    tokens: list[str]
    tags: list[Tag]


def raw_records(file: Path, conll: Conll) -> Iterator[Raw]:
    """Yield the sentences or documents of a file, with the default names of fields.

    Sentences have the number of their document if the file marks documents. Chunks without B- have
    a note in `repaired`; what cannot be parsed is a record with a RecordError as its content.
    Reads the whole file first. Raises WxbError for a file that is empty or not UTF-8.
    """
    units = [
        (document, unit[0][0][0], _parse(unit, conll))
        for document, unit in _units(decode(file), conll.unit)
    ]
    in_documents = conll.unit == "sentence" and any(document for document, _, _ in units)
    # In IOB1, B- is only between two adjacent chunks of a type; other schemes begin every chunk so.
    begins_are_marked = any(
        tag.prefix in BEGINNING and tag.type != previous.type
        for _, _, sentences in units
        if not isinstance(sentences, RecordError)
        for sentence in sentences
        for previous, tag in _pairs(sentence.tags)
    )
    for document, line, sentences in units:
        position = f"line {line}"
        if isinstance(sentences, RecordError):
            yield Raw(position, sentences)
        else:
            repaired = tuple(_repair_notes(sentences)) if begins_are_marked else ()
            content = to_record(sentences, conll.join)
            yield Raw(position, content, repaired, document if in_documents else None)


def _units(text: str, unit: str) -> Iterator[tuple[int, list[Lines]]]:
    """Yield the number of the document and the sentences of each record."""
    sentences: list[Lines] = []
    lines: Lines = []
    document = 0
    for number, line in [*numbered_lines(text), (0, "")]:
        is_marker = line.startswith(DOCUMENT)
        if line and not is_marker:
            lines.append((number, line))
            continue
        if lines:
            sentences.append(lines)
            lines = []
        if sentences and (is_marker or unit == "sentence"):
            yield document, sentences
            sentences = []
        document += is_marker
    if sentences:
        yield document, sentences


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """The numbers and contents of lines, without comments before the first token of a sentence.

    A comment begins with #. It assigns a key, or has another number of cells than most lines.
    """
    # Not `splitlines`: tokens may contain other line separators of Unicode.
    lines = [line.rstrip("\r\t ") for line in text.split("\n")]
    if not any(line.startswith("#") for line in lines):
        return [*enumerate(lines, start=1)]
    width = Counter(len(cells(line)) for line in lines if line).most_common(1)[0][0]
    kept, is_start = [], True
    for number, line in enumerate(lines, start=1):
        is_comment = line.startswith("#") and (COMMENT.match(line) or len(cells(line)) != width)
        if is_start and is_comment:
            continue
        kept.append((number, line))
        is_start = not line or line.startswith(DOCUMENT)
    return kept


def _parse(unit: list[Lines], conll: Conll) -> list[Sentence] | RecordError:
    try:
        return [_sentence(lines, conll) for lines in unit]
    except RecordError as error:
        return error


def _sentence(lines: Lines, conll: Conll) -> Sentence:
    tokens, tags = [], []
    for number, line in lines:
        columns = cells(line)
        width = len(columns)
        last = max(index if index >= 0 else ~index for index in (conll.token, conll.tag))
        if last >= width or conll.token % width == conll.tag % width:
            raise RecordError(
                "too few columns",
                f"line {number}: {line!r} has {width};"
                f" expected a token in column {conll.token} and a tag in {conll.tag}",
            )
        token = columns[conll.token]
        tokens.append(token[:1] if conll.characters else token)
        tags.append(parse_tag(columns[conll.tag].strip(), f"line {number}: "))
    return Sentence(tokens, tags)


def cells(line: str) -> list[str]:
    """The cells of a line, separated by tabs, or by runs of spaces if it has no tab."""
    # Not `split()`: tokens may contain other white space.
    return line.split("\t") if "\t" in line else re.split(" +", line.lstrip(" "))


def parse_tag(name: str, place: str = "") -> Tag:
    """The tag of a name. Raises RecordError, with its place, for an unknown one."""
    prefix, _, type_ = name.partition("-")
    if name == "O":
        return OUTSIDE
    if prefix not in PREFIXES or not type_:
        raise RecordError(
            "unknown tag",
            f"{place}{name!r}; expected O, or a type after one of"
            f" {', '.join(f'{known}-' for known in sorted(PREFIXES))}",
        )
    return Tag(prefix, type_)


def to_record(sentences: Sequence[Sentence], join: str) -> dict[str, Any]:
    """The text of the tokens, one line per sentence, and the spans in it."""
    texts, spans, begin = [], [], 0
    for sentence in sentences:
        lengths = (len(token) + len(join) for token in sentence.tokens)
        starts = list(accumulate(lengths, initial=begin))
        for first, end, type_ in chunks(sentence.tags):
            last = end - 1
            span = Span(starts[first], starts[last] + len(sentence.tokens[last]), type_)
            spans.append(span._asdict())
        texts.append(join.join(sentence.tokens))
        begin += len(texts[-1]) + 1
    return {"input": "\n".join(texts), "spans": spans}


def chunks(tags: Sequence[Tag]) -> list[tuple[int, int, str]]:
    """(first token, one past the last token, type) of every chunk, in any scheme of tags."""
    chunks: list[tuple[int, int, str]] = []
    for index, (previous, tag) in enumerate(_pairs(tags)):
        if _begins(previous, tag):
            chunks.append((index, index + 1, tag.type))
        elif tag != OUTSIDE:
            first, _, type_ = chunks[-1]
            chunks[-1] = first, index + 1, type_
    return chunks


def _begins(previous: Tag, tag: Tag) -> bool:
    """Whether a chunk begins at a tag: by its prefix, or as no chunk of its type is open."""
    if tag == OUTSIDE:
        return False
    ended = previous == OUTSIDE or previous.prefix in ENDING
    return tag.prefix in BEGINNING or ended or previous.type != tag.type


def _repair_notes(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Yield a note such as "I- without B-" for each chunk that begins without a B- tag."""
    for sentence in sentences:
        for previous, tag in _pairs(sentence.tags):
            if _begins(previous, tag) and tag.prefix not in BEGINNING:
                yield f"{tag.prefix}- without B-"


def _pairs(tags: Sequence[Tag]) -> Iterator[tuple[Tag, Tag]]:
    """Each tag with the one before it."""
    return zip([OUTSIDE, *tags], tags, strict=False)
