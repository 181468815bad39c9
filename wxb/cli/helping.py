"""Docstrings as the help of commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

AS_IT_IS = "\b"  # begins a paragraph whose lines stay, as in Click


def unwrapped(command: Callable[..., Any] | None) -> str:
    """The docstring with a line a paragraph, so that only the terminal wraps it."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith(AS_IT_IS) else part.replace("\n", " ") for part in paragraphs
    )
