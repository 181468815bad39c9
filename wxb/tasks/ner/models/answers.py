"""Answers: the spans of a text as `TYPE|mention`, joined by `;;`.

`answer_parts` writes answers for training, `parse` and `locate` read generated ones. A mention
includes a space before it: many tokenizers make it part of the word, so the model copies tokens of
the text.
"""

import re
from collections.abc import Iterable, Sequence

from wxb.tasks.ner.record import Span

BOUNDARY = "=>"  # between a text and its answer
FIELD = "|"
SEPARATOR = ";;"

# A backslash escapes the character after it; at the very end it is a backslash.
_ITEM = re.compile(rf"((?:\\.|(?!{SEPARATOR}).)*)(?:{SEPARATOR}|\Z)", re.DOTALL)
_TYPE = re.compile(r"((?:\\.|[^\\|])*)\|", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

Mention = tuple[str, str]  # type, text


def opening(kind: str) -> str:
    """The type and separator before a mention, such as `NAME|`; special characters are escaped."""
    return _escape(kind) + FIELD


def answer_parts(text: str, spans: Iterable[Span]) -> list[str]:
    """The answer in parts: opening, escaped mention with any space before it, separator, ..."""
    parts: list[str] = []
    for span in spans:
        start = span.start - text[: span.start].endswith(" ")
        mention = _escape(text[start : span.end])
        parts += [SEPARATOR] * bool(parts) + [opening(span.type), mention]
    return parts


def _escape(text: str) -> str:
    """The text with a backslash before each backslash, bar and semicolon."""
    return re.sub(r"([\\|;])", r"\\\1", text)


def parse(answer: str) -> list[Mention]:
    """The types and stripped mentions of an answer, unchecked; skips what is malformed or blank."""
    mentions = []
    for item in _ITEM.findall(answer):
        if (head := _TYPE.match(item)) and (mention := _unescape(item[head.end() :]).strip()):
            mentions.append((_unescape(head[1]), mention))
    return mentions


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def locate(text: str, mentions: Sequence[Mention]) -> list[Span]:
    """The spans of mentions in a text, sorted and without overlaps.

    Whole words are preferred to parts of words, then occurrences after the previous mention, then
    the first. Skips mentions that occur nowhere, or only where they overlap earlier ones.
    """
    spans: list[Span] = []
    cursor = 0
    for kind, mention in mentions:
        span = _find(text, mention, kind, cursor, spans)
        if span is not None:
            spans.append(span)
            cursor = span.end
    return sorted(spans)


def _find(text: str, mention: str, kind: str, cursor: int, taken: Sequence[Span]) -> Span | None:
    """The first free occurrence as a word from `cursor` on, else anywhere, else within words."""
    literal = re.escape(mention)
    for pattern in (rf"(?<!\w){literal}(?!\w)", literal):
        for first in (cursor, 0):
            for match in re.compile(pattern).finditer(text, first):
                start, end = match.span()
                if all(end <= span.start or span.end <= start for span in taken):
                    return Span(start, end, kind)
    return None
