"""Cleans texts of the web: HTML tags, entities and control characters."""

from __future__ import annotations

import html as entities
import re

_NAMES = (
    "a|abbr|b|big|blockquote|br|center|cite|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|q|s|small"
    "|span|strike|strong|sub|sup|table|tbody|td|th|thead|tr|tt|u|ul"
)
# Only known HTML names: "<3" and "a < b" are text.
_TAG = re.compile(rf"</?({_NAMES})(?=[\s/>])[^<>]*>", re.IGNORECASE)
_LINES = re.compile(r"(br|hr|p|div|li|tr|h[1-6]|blockquote)$", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\xa0]*\n\s*")
_C1 = re.compile("[\x80-\x9f]")


def clean(text: str, *, html: bool) -> tuple[str, tuple[str, ...]]:
    """A text as a browser shows it, and the kinds of repairs made.

    With `html`, tags are removed, those of lines and paragraphs become line breaks, and entities
    become characters. C1 control characters become the Windows-1252 characters of the same byte.
    """
    repaired = []
    if html:
        bare = _TAG.sub(lambda match: "\n" if _LINES.match(match[1]) else "", text)
        if bare != text:
            bare = _BLANKS.sub("\n", bare).strip()
            repaired.append("HTML removed")
        decoded = entities.unescape(bare)
        if decoded != bare:
            repaired.append("entities decoded")
        text = decoded
    shown = _C1.sub(lambda match: match[0].encode("latin-1").decode("cp1252", "ignore"), text)
    if shown != text:
        repaired.append("control characters read as Windows-1252")
    return shown, tuple(repaired)
