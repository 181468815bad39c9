"""`wxb predict`: predictions of a trained experiment of any task."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wxb.cli.options import Experiment, path_unless_text, split_options, usage_error, visible_files
from wxb.core.errors import WxbError
from wxb.project import trained
from wxb.tasks.exports import json_line

if TYPE_CHECKING:
    from wxb.cli.inputs import Item, TextReader

CHUNK = 512  # inputs that are predicted before the first of them is printed
FILES = 32  # the same for inputs that are files


def predict(
    experiment: Experiment = "",
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT...]",
            help="a text, a file (one input per line, or records or columns in any format of"
            " `wxb new corpus`), a folder of such files, or - for standard input; default: -. For"
            " speech models: a recording, a folder of recordings, or - for one on standard input",
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            help="the field of records to read; default: that of the experiment's corpus, or input"
            " or text"
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object per line, for other programs")
    ] = False,
) -> None:
    """Print one prediction per input, in order.

    Progress goes to standard error, predictions to standard output. Inputs keep their line breaks;
    with --json each prediction is one line, with the file, and the id or line of the record. An
    input that cannot be read has an error instead, and the exit code is 1. The settings of
    `prediction` are options, such as --batch-size 8.

    Example: wxb predict -e ner-encoder "My name is Ann." --json
    """
    from wxb.cli.inputs import TextReader

    arguments, options = split_options(inputs or [])
    if not arguments and sys.stdin.isatty():
        usage_error("INPUT", "missing; expected a text, a file, a folder or -")
    sources = [(source, path_unless_text(source)) for source in arguments or ["-"]]
    items: Iterator[Any] = _texts(sources, TextReader(experiment, field))
    size = CHUNK
    if suffixes := trained.predictor_class(experiment).file_suffixes:
        items, size = _files(sources, suffixes), FILES
    chunks = iter(lambda: list(islice(items, size)), [])
    # Read before the model is loaded, as it may be unreadable.
    if not (first := next(chunks, [])):
        raise WxbError(f"{', '.join(arguments) or '-'}: found no records; expected one or more")
    predictor = trained.load(experiment, **options)
    if caveat := trained.generated_caveat(experiment):
        print(caveat, file=sys.stderr)
    errors: list[str] = []  # printed at the end, where users see them
    for chunk in chain([first], chunks):
        for (place, item, error), prediction in _predict(predictor, chunk):
            errors += [error] if error else []
            name = "-" if isinstance(item, bytes) else item
            if as_json:
                described = {"error": error} if error else predictor.output_fields(item, prediction)
                line = json_line({**place, "input": name, **described}).rstrip("\n")
            else:
                line = f"error: {error}" if error else predictor.as_text(item, prediction)
            print(line, flush=True)
    if errors:
        raise WxbError("\n".join(errors))


def _predict(predictor: Any, items: list[Item]) -> Iterator[tuple[Item, Any]]:
    """Items with their predictions; one that the model cannot read becomes an error."""
    from wxb.corpora.records import RecordError

    try:
        inputs = [item.input for item in items if not item.error]
        predictions = iter(predictor.predict(inputs, caption="predict"))
        yield from ((item, None if item.error else next(predictions)) for item in items)
    except WxbError as error:
        if not (predictor.file_suffixes or isinstance(error.__cause__, RecordError)):
            raise
        if len(items) == 1:
            yield items[0]._replace(error=str(error)), None
            return
        for item in items:
            yield from _predict(predictor, [item])


def _files(sources: Iterable[tuple[str, Path | None]], suffixes: Sequence[str]) -> Iterator[Item]:
    """Items with paths, of folders those with `suffixes`, or the bytes of standard input (-)."""
    from wxb.cli.inputs import Item

    for source, path in sources:
        if source == "-":
            yield Item({}, sys.stdin.buffer.read())
        elif path is None:
            raise WxbError(f"{source}: no such file or folder; this model reads files, not texts")
        elif path.is_file():
            yield Item({}, str(path))
        else:
            names = (file for file in sorted(path.rglob("*")) if file.suffix.lower() in suffixes)
            if not (files := [*filter(Path.is_file, names)]):
                raise WxbError(f"{path}: found no file in it that ends in {', '.join(suffixes)}")
            yield from (Item({}, str(file)) for file in files)


def _texts(sources: Sequence[tuple[str, Path | None]], reader: TextReader) -> Iterator[Item]:
    from wxb.cli.inputs import Item, standard_input

    for number, (source, path) in enumerate(sources, start=1):
        if source == "-":
            yield from standard_input()
        elif path is None:
            yield Item({"argument": number}, source)
        else:
            for file in _text_files(path):
                try:
                    yield from reader.read(file)
                except WxbError as error:
                    if file == path and len(sources) == 1:
                        raise
                    yield Item({"file": str(file)}, None, str(error))


def _text_files(path: Path) -> list[Path]:
    """A file, or those of a folder, without descriptions. Raises WxbError if it has none."""
    from wxb.corpora.layout import METADATA_FILES, is_description

    if not path.is_dir():
        return [path]
    files = [file for file in visible_files(path) if file.name not in METADATA_FILES]
    if not (texts := [file for file in files if not is_description(file)]):
        raise WxbError(f"{path}: found no file in it; expected files of texts or records")
    return texts
