"""`wxb predict`: what a trained experiment makes of inputs, whatever its task."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from wxb.errors import WxbError

CHUNK = 512  # inputs that are predicted before the first of them is printed
SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")  # files of records; others hold an input a line
FIELDS = ("input", "text")


def predict(
    experiment: Annotated[
        str, typer.Option("--experiment", "-e", help="a trained experiment, or its folder")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT...]",
            help="a text, a file (an input a line, or records: .jsonl, .json, .csv, .parquet), a"
            " folder of such files, or - for standard input; default: -",
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(help=f"the field of records to read; default: {' or '.join(FIELDS)}"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="a JSON object a line, for other programs")
    ] = False,
) -> None:
    """Print what a trained experiment predicts, a line for each input, in their order.

    Progress goes to standard error, predictions to standard output.

    Example: wxb predict -e ner-encoder "My name is Ann." --json
    """
    from wxb.project import trained

    texts = _texts(inputs or ["-"], field)
    predictor = trained.load(experiment)
    for chunk in _chunks(texts):
        for text, prediction in zip(chunk, predictor.predict(chunk, label="predict"), strict=True):
            told = predictor.describe(text, prediction)
            line = json.dumps({"input": text, **told}, ensure_ascii=False)
            print(line if as_json else predictor.show(text, prediction), flush=True)


def _chunks(texts: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(islice(texts, CHUNK)):
        yield chunk


def _texts(inputs: Iterable[str], field: str | None) -> Iterator[str]:
    """The inputs that arguments name. Raises WxbError for a file that holds none."""
    for name in inputs:
        if name == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin)
        elif (path := Path(name)).is_dir():
            yield from _of_folder(path, field)
        elif _is_file(path):
            yield from _of_file(path, field)
        else:
            yield name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text may be too long for a path, or hold NUL
        return False


def _of_folder(folder: Path, field: str | None) -> Iterator[str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if not files:
        raise WxbError(f"{folder}: found no file in it; expected files of texts or records")
    for path in files:
        yield from _of_file(path, field)


def _of_file(path: Path, field: str | None) -> Iterator[str]:
    from wxb.corpora.formats import raw_records
    from wxb.corpora.layout import decode
    from wxb.corpora.records import RecordError

    if path.suffix.lower() not in SUFFIXES:
        yield from decode(path).splitlines()
        return
    for raw in raw_records(path):
        if isinstance(raw.content, RecordError):
            raise WxbError(f"{path}: {raw.place}: {raw.content.reason}: {raw.content.detail}")
        yield _field(raw.content, field, f"{path}: {raw.place}")


def _field(content: Any, field: str | None, place: str) -> str:
    """The text of a record."""
    if isinstance(content, str):
        return content
    names = [field] if field else FIELDS
    found = content if isinstance(content, dict) else {}
    for name in names:
        if isinstance(found.get(name), str):
            return str(found[name])
    raise WxbError(
        f"{place}: found {', '.join(map(repr, found)) or type(content).__name__}; expected a text"
        f" in {' or '.join(map(repr, names))}: name its field with --field"
    )
