"""Check replies: whether one has the required format, and whether it is correct.

A format is a name, for some with an argument: `text`, `number`, `date`, `letters` (such as a-b-c),
`words 3`, `json name` (an object with this key alone). Correctness ignores case, full or half width
and a final full stop. It does not depend on the format, except for JSON.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from wxb.corpora.records import RecordError

_BETWEEN_WORDS = re.compile(r"[\s,、，]+")
_FORMATS: dict[str, Callable[[str, str], bool]] = {
    "text": lambda reply, _: bool(reply),
    "number": lambda reply, _: bool(re.fullmatch(r"-?\d+(\.\d+)?", reply, re.ASCII)),
    "date": lambda reply, _: bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}", reply, re.ASCII)),
    "letters": lambda reply, _: bool(re.fullmatch(r"[A-Za-z](-[A-Za-z])*", reply)),
    "words": lambda reply, n: len(_BETWEEN_WORDS.split(reply)) == int(n) and bool(reply),
    "json": lambda reply, key: isinstance(value := parse_json(reply), dict) and [*value] == [key],
}
# In tuples, as 1 equals True in Python, but not in JSON.
_NUMBERS = {"parse_int": lambda text: (int(text),), "parse_float": lambda text: (float(text),)}
_ARGUMENTS = {"words": r"[1-9][0-9]*", "json": r"\S+"}


def parse_format(text: str) -> tuple[str, str]:
    """The name and the argument of a format: ("words", "3") for `words 3`, ("text", "") for `text`.

    Raises RecordError for an unknown name, and for a missing or wrong argument.
    """
    name, _, argument = text.partition(" ")
    if name not in _FORMATS or not re.fullmatch(_ARGUMENTS.get(name, ""), argument):
        known = ", ".join(f"{name} ..." if name in _ARGUMENTS else name for name in _FORMATS)
        detail = f"found {text!r}, expected {known}; if the field is no such format, rename it"
        raise RecordError("unknown format", detail)
    return name, argument


def has_format(format_: str, reply: str) -> bool:
    """Whether a reply has a format. Raises RecordError as `parse_format` does."""
    name, argument = parse_format(format_)
    return _FORMATS[name](reply.strip(), argument)


def equals_answer(format_: str, answer: str, reply: str) -> bool:
    """Whether a reply equals the answer without case, width, final stop; JSON by key and value."""
    is_json = parse_format(format_)[0] == "json"
    if is_json and (value := parse_json(answer, **_NUMBERS)) is not None:
        return parse_json(reply, **_NUMBERS) == value
    return _normalize(reply) == _normalize(answer)


def _normalize(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return plain.removesuffix(".").removesuffix("。").strip()


def parse_json(text: str, **hooks: Any) -> Any:
    """The value of a JSON text, by hooks of `json.loads`; None if it is invalid."""
    try:
        return json.loads(text, **hooks)
    except (ValueError, RecursionError):
        return None
