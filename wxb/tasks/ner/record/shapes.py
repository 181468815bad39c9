"""Shapes of words."""

from __future__ import annotations

import re


def shape(word: str) -> str:
    """Kinds of characters, at most four equal ones in a row: Xxxxx for Johanna, dddd for 12345."""
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1{3,}", r"\1\1\1\1", "".join(kinds))
