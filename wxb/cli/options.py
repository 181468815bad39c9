"""What options and arguments of several commands mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

AsJson = Annotated[bool, typer.Option("--json", help="as JSON, for other programs")]
ARGUMENT = "TEXT | FILE | FOLDER | -"
EMPTY = "found an empty argument (a shell variable that is not set?)"
SUFFIXES = (".txt", ".jsonl", ".ndjson", ".csv", ".tsv")  # a file is meant, though there is none


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
    if path.suffix.lower() in SUFFIXES and not any(map(str.isspace, source)):
        usage_error(
            ARGUMENT,
            f"no file {source!r}; to have these words read as a text, give them on standard input",
        )
    try:
        source.encode()
    except UnicodeEncodeError:
        usage_error(ARGUMENT, "the text is not UTF-8")
    return None


def require_value(value: str | None) -> str | None:
    """The value of an option, unchanged. Raises typer's usage error where it is empty."""
    if value == "":
        raise typer.BadParameter(EMPTY)
    return value


def to_path(value: str) -> Path:
    """The path that an option names, which must not be empty: that would be the folder here."""
    require_value(value)
    return Path(value)


def usage_error(option: str, fault: str) -> NoReturn:
    """Raise the usage error of an option."""
    raise typer.BadParameter(fault, param_hint=option)


def apart(arguments: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Inputs, and what stands among them as `--name value` or `--name=value`."""
    inputs: list[str] = []
    options: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        if not argument:
            usage_error("INPUT", EMPTY)
        if re.fullmatch(r"-[A-Za-z]", argument):
            usage_error(argument, "no such option")
        if not argument.startswith("--"):  # a text may begin with a dash
            inputs.append(argument)
            continue
        option, given, value = argument.partition("=")
        value = value if given else next(rest, "")
        if not value:
            usage_error(option, "missing its value")
        options[option[2:].replace("-", "_")] = value
    return inputs, options
