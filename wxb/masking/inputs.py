"""What the argument of `wxb mask` and `wxb unmask` means."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import typer

from wxb.masking import work
from wxb.masking.documents import Document
from wxb.masking.sources import SUFFIXES, Layout

ARGUMENT = "TEXT | FILE | FOLDER | -"


def stream(
    source: str | None, output: Path | None, layout: Layout, *, one_output: bool = False
) -> Iterator[work.Part]:
    """The documents of the text, file or folder that is meant, or of standard input.

    Raises typer's usage error before any is read.
    """
    path = _path(source)
    if path is None:
        target = work.file_to_write(output) if output else None
        if source in (None, "-"):
            if source is None and sys.stdin.isatty():
                misused(ARGUMENT, "missing: what shall be read?")
            return work.parts([work.Source(None, "standard input", target)], layout)
        assert source is not None
        text = work.Source(None, "the text", target)
        return iter([work.Part(text, Document(source, after="\n"), 1), work.Part(text, None)])
    if path.is_dir() and output is None and not one_output:
        misused("--output", f"{path} is a folder; name one for what is made of it")
    found = work.parts(work.sources(path, output, one_output=one_output), layout)
    return work.joined(found) if one_output else found


def _path(source: str | None) -> Path | None:
    """The file or folder that is meant, or None for a text."""
    if source in (None, "-"):
        return None
    assert source is not None
    path = Path(source)
    try:
        if path.exists():
            return path
    except OSError:  # too long for a name
        return None
    if path.suffix.lower() in (*SUFFIXES, ".txt") and not any(map(str.isspace, source)):
        misused(
            ARGUMENT,
            f"no file {source!r}; to have these words read as a text, give them on standard input",
        )
    try:
        source.encode()
    except UnicodeEncodeError:
        misused(ARGUMENT, "the text is not UTF-8")
    return None


def misused(option: str, fault: str) -> NoReturn:
    """Raise the usage error of an option."""
    raise typer.BadParameter(fault, param_hint=option)
