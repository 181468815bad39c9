"""Answers that can be checked: the formats that they have to keep, and when one is right.

A format is a word, some with a further one: `text`, `number`, `date`, `letters`, `words 3`, `json
name`. Whether a reply is right does not hang on capitals, on full or half width, or on a full stop
at its end; whether it keeps its format hangs on nothing else.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

_BETWEEN_WORDS = re.compile(r"[\s,、，]+")
_FORMS: dict[str, Callable[[str, str], bool]] = {
    "text": lambda reply, _: bool(reply),
    "number": lambda reply, _: bool(re.fullmatch(r"-?\d+(\.\d+)?", reply, re.ASCII)),
    "date": lambda reply, _: bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", reply, re.ASCII)),
    "letters": lambda reply, _: bool(re.fullmatch(r"[A-Za-z](-[A-Za-z])*", reply)),
    "words": lambda reply, n: len(_BETWEEN_WORDS.split(reply)) == int(n) and bool(reply),
    "json": lambda reply, key: isinstance(found := _json(reply), dict) and [*found] == [key],
}
_WITH_MORE = {"words": r"[1-9][0-9]*", "json": r"\S+"}


def of(form: str) -> tuple[str, str]:
    """The name of a format, and its further word. Raises ValueError for one that there is not."""
    name, _, more = form.partition(" ")
    if name not in _FORMS or not re.fullmatch(_WITH_MORE.get(name, ""), more):
        known = ", ".join(f"{name} ..." if name in _WITH_MORE else name for name in _FORMS)
        raise ValueError(f"found {form!r}, expected {known}")
    return name, more


def keeps(form: str, reply: str) -> bool:
    """Whether a reply has the format that was asked for."""
    name, more = of(form)
    return _FORMS[name](reply.strip(), more)


def right(form: str, answer: str, reply: str) -> bool:
    """Whether a reply is the answer; of JSON the values are compared."""
    if of(form)[0] == "json":
        return keeps(form, reply) and _json(reply) == _json(answer)
    return normalized(reply) == normalized(answer)


def normalized(text: str) -> str:
    """A text as it is compared."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return plain.removesuffix(".").removesuffix("。").strip()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
