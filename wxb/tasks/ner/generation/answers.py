"""Spans as text, `TYPE|mention` joined by `;;`: written for training, read back from generation.

The same functions serve both, so what a model is taught is what is understood. A mention keeps the
space before it where the text has one: many tokenizers count it as part of the word, and the tokens
to copy are then the very tokens of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from wxb.tasks.ner.record.spans import Span

BOUNDARY = "=>"  # between a text and its answer
FIELD = "|"
SEPARATOR = ";;"

# A backslash takes the character after it literally; a last one alone stands for itself.
_ITEM = re.compile(rf"((?:\\.|(?!{SEPARATOR}).)*)(?:{SEPARATOR}|\Z)", re.DOTALL)
_TYPE = re.compile(r"((?:\\.|[^\\|])*)\|", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

Mention = tuple[str, str]  # type, text


def opening(kind: str) -> str:
    """What stands before a mention of a type."""
    return _escape(kind) + FIELD


def pieces(text: str, spans: Iterable[Span]) -> list[str]:
    """The answer for spans of a text, in their order: opening, mention, separator, opening, ..."""
    parts: list[str] = []
    for span in spans:
        mention = _escape(_lead(text, span.start) + text[span.start : span.end])
        parts += [SEPARATOR] * bool(parts) + [opening(span.type), mention]
    return parts


def _lead(text: str, start: int) -> str:
    return " " if text[:start].endswith(" ") else ""


def _escape(text: str) -> str:
    return re.sub(r"([\\|;])", r"\\\1", text)


def parse(answer: str) -> list[Mention]:
    """The types and mentions of an answer. Any string has a result; what fits no form is left out.

    White space around a mention is not part of it; one that is blank is left out.
    """
    mentions = []
    for item in _ITEM.findall(answer):
        if (head := _TYPE.match(item)) and (mention := _unescape(item[head.end() :]).strip()):
            mentions.append((_unescape(head[1]), mention))
    return mentions


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def locate(text: str, mentions: Sequence[Mention]) -> list[Span]:
    """Where the mentions stand in a text: spans that do not overlap, sorted.

    Answers list them from left to right, so each is sought after the one before it, and only then
    anywhere; as a word of its own, and only then inside one. A mention that is found nowhere, or
    only where others stand, is left out.
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
    literal = re.escape(mention)
    for pattern in (rf"(?<!\w){literal}(?!\w)", literal):
        for begin in (cursor, 0):
            for match in re.compile(pattern).finditer(text, begin):
                start, end = match.span()
                if all(end <= span.start or span.end <= start for span in taken):
                    return Span(start, end, kind)
    return None
