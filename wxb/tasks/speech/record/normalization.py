"""What of a transcript is compared: rules by their names, in the order of their work."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

from wxb.core.errors import WxbError


def normalized(text: str, rules: str) -> str:
    """A text as it is compared: words one space apart, and what the rules name set aside."""
    for rule in rules.split():
        text = RULES[rule](text)
    return " ".join(text.split())


def words(text: str) -> list[str]:
    """The words of a text by white space; a Chinese character is one by itself."""
    spaced = "".join(f" {c} " if _is_han(c) else c for c in text)
    return spaced.split()


def _is_han(character: str) -> bool:
    return unicodedata.name(character, "").startswith("CJK ")


def _width(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _punctuation(text: str) -> str:
    """Without punctuation and symbols; what they part stays apart, but for apostrophes."""
    kept = [c if unicodedata.category(c)[0] not in "PS" else "" if c in "'’" else " " for c in text]
    return "".join(kept)


def _simplified(text: str) -> str:
    simpler: str = _converter().convert(text)
    return simpler


@cache
def _converter() -> Any:
    try:
        import opencc
    except ModuleNotFoundError:
        raise WxbError(
            "normalization.simplified: found no package opencc, which converts the characters;"
            " install it: pip install opencc"
        ) from None
    return opencc.OpenCC("t2s")


RULES: dict[str, Callable[[str], str]] = {
    "width": _width,
    "case": str.casefold,
    "punctuation": _punctuation,
    "simplified": _simplified,
}
