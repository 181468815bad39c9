"""What the argument of `wxb mask` and `wxb unmask` means."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import typer

from wxb.masking import folders, work
from wxb.masking.documents import Document
from wxb.masking.sources import SUFFIXES, Layout

ARGUMENT = "TEXT | FILE | FOLDER | -"
EMPTY = "found an empty argument (a shell variable that is not set?)"


def stream(
    source: str | None,
    output: Path | None,
    layout: Layout,
    *,
    one_output: bool = False,
    skip_unreadable: bool = False,
) -> tuple[Iterator[work.Part], list[str]]:
    """The documents of the text, file or folder that is meant, or of standard input.

    With them a line for each file or subfolder of a folder that is skipped; it has been told on
    standard error, too. Raises typer's usage error before any is read.
    """
    path = path_of(source)
    if path is None:
        target = folders.file_to_write(output) if output else None
        if source in (None, "-"):
            if source is None and sys.stdin.isatty():
                misused(ARGUMENT, "missing: what shall be read?")
            return work.parts([folders.Source(None, "standard input", target)], layout), []
        assert source is not None
        text = folders.Source(None, "the text", target)
        whole = work.Part(text, Document(source, after="\n"), 1)
        return iter([whole, work.Part(text, None)]), []
    if path.is_dir() and output is None and not one_output:
        misused(
            ARGUMENT,
            f"{path} is a folder, so --output is needed: the folder for what is made of it",
        )
    found = folders.sources(path, output, one_output=one_output)
    if path.is_dir():
        found = folders.readable(found, layout, skip=skip_unreadable)
        for line in found.unread:
            print(f"wxb: skipped: {line}", file=sys.stderr)
    parts = work.parts(found.sources, layout)
    return work.joined(parts) if one_output else parts, found.unread


def path_of(source: str | None) -> Path | None:
    """The file or folder that is meant, or None for a text. Raises typer's error for a slip."""
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


def filled(value: str | None) -> str | None:
    """The value of an option, unchanged. Raises typer's usage error where it is empty."""
    if value == "":
        raise typer.BadParameter(EMPTY)
    return value


def to_path(value: str) -> Path:
    """The path that an option names, which must not be empty: that would be the folder here."""
    filled(value)
    return Path(value)


def misused(option: str, fault: str) -> NoReturn:
    """Raise the usage error of an option."""
    raise typer.BadParameter(fault, param_hint=option)
