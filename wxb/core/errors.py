"""The error that is meant for the user, and the wording that such errors share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WxbError(Exception):
    """Something the user can mend.

    The message says what was found, what was expected and what to do; no traceback is needed.
    """


def nearest(name: object, known: Iterable[str]) -> str:
    """ "; did you mean 'encoder'?" after a name that is like one of the known; else nothing."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def choices(name: object, known: Iterable[str]) -> str:
    """The nearest of the known names, and all of them."""
    names = list(known)
    return f"{nearest(name, names)} (there is: {', '.join(names)})"


def in_one_line(error: BaseException) -> str:
    """An error's type and text, whatever white space the text has."""
    return " ".join(f"{type(error).__name__}: {error}".split())
