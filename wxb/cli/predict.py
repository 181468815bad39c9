"""`wxb predict`: what a trained experiment makes of inputs, whatever its task."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from wxb.cli.options import apart, path_of, require_value, usage_error
from wxb.core.errors import WxbError
from wxb.project.completion import names
from wxb.tasks.exports import json_line

CHUNK = 512  # inputs that are predicted before the first of them is printed
FILES = 32  # the same, of inputs that are files
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")  # records; others: lines
FIELDS = ("input", "text")


def predict(
    experiment: Annotated[
        str,
        typer.Option(
            "--experiment",
            "-e",
            callback=require_value,
            help="a trained experiment, or its folder",
            autocompletion=names("experiments"),
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT...]",
            help="a text, a file (one input per line, or records: .jsonl, .json, .csv, .parquet), a"
            " folder of such files, or - for standard input; default: -. For speech models:"
            " a recording, a folder of such, or - for one on standard input",
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
    """Print one prediction per input, in order.

    Progress goes to standard error, predictions to standard output. Inputs keep their line breaks;
    with --json each prediction is one line. The settings of `prediction` are options, such as
    --batch-size 8.

    Example: wxb predict -e ner-encoder "My name is Ann." --json
    """
    from wxb.project import trained

    named, options = apart(inputs or [])
    if not named and sys.stdin.isatty():
        usage_error("INPUT", "missing: what shall be read?")
    sources = [(given, path_of(given)) for given in named or ["-"]]  # a slip is told at once
    predictor = trained.load(experiment, **options)
    given = _files(sources, predictor.files) if predictor.files else _texts(sources, field)
    refused: list[str] = []  # told at the end, where they are seen
    for chunk in _chunks(given, FILES if predictor.files else CHUNK):
        for one, prediction in _predicted(predictor, chunk, refused):
            told = predictor.describe(one, prediction)
            name = one if isinstance(one, str) else "-"
            line = json_line({"input": name, **told}).decode().rstrip("\n")
            print(line if as_json else predictor.show(one, prediction), flush=True)
    if refused:
        raise WxbError("\n".join(refused))


def _predicted(predictor: Any, chunk: list[Any], refused: list[str]) -> Iterator[tuple[Any, Any]]:
    """Inputs with their predictions; a file that cannot be read costs no other its prediction."""
    try:
        yield from zip(chunk, predictor.predict(chunk, label="predict"), strict=True)
    except WxbError as error:
        if not predictor.files:
            raise
        if len(chunk) == 1:
            refused.append(str(error))
            return
        for one in chunk:
            yield from _predicted(predictor, [one], refused)


def _chunks(given: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(islice(given, size)):
        yield chunk


def _files(
    sources: Iterable[tuple[str, Path | None]], suffixes: Sequence[str]
) -> Iterator[str | bytes]:
    """The files of arguments, whose paths are given, or what one on standard input holds."""
    for given, path in sources:
        if given == "-":
            yield sys.stdin.buffer.read()
        elif path is None:
            raise WxbError(f"{given}: no such file or folder; this model reads files, not texts")
        elif path.is_file():
            yield str(path)
        else:
            found = [p for p in sorted(path.rglob("*")) if p.suffix.lower() in suffixes]
            if not any(map(Path.is_file, found)):
                raise WxbError(f"{path}: found no file in it that ends in {', '.join(suffixes)}")
            yield from (str(file) for file in found if file.is_file())


def _texts(sources: Iterable[tuple[str, Path | None]], field: str | None) -> Iterator[str]:
    """The inputs of arguments, whose paths are given. Raises WxbError for a file of none."""
    for given, path in sources:
        if given == "-":
            yield from _of_standard_input()
        elif path is None:
            yield given
        elif path.is_dir():
            yield from _of_folder(path, field)
        else:
            yield from _of_file(path, field)


def _of_standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise WxbError(f"standard input, line {number}: expected UTF-8; {error}") from None


def _of_folder(folder: Path, field: str | None) -> Iterator[str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    shown = [path for path in files if "/." not in f"/{path.relative_to(folder).as_posix()}"]
    if not shown:
        raise WxbError(f"{folder}: found no file in it; expected files of texts or records")
    for path in shown:
        yield from _of_file(path, field)


def _of_file(path: Path, field: str | None) -> Iterator[str]:
    from wxb.corpora.formats import raw_records
    from wxb.corpora.layout import decode
    from wxb.corpora.records import RecordError

    if path.suffix.lower() not in SUFFIXES:
        # Only line feeds end a line: texts may hold other separators of Unicode.
        yield from (line.rstrip("\r") for line in decode(path).removesuffix("\n").split("\n"))
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
