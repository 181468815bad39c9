"""`wxb predict`: predictions of a trained experiment of any task."""

import sys
from itertools import chain, islice
from typing import Annotated

import typer

from wxb.cli.options import Experiment, path_unless_text, split_options, usage_error
from wxb.core.errors import WxbError
from wxb.project import trained
from wxb.tasks.exports import json_line


def predict(
    experiment: Experiment = "",
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT...]",
            help="a text, a file (a text per line, or records or columns in any format of `wxb new"
            " corpus`), a folder of such files, or - for standard input, a text per line; default:"
            " -. For speech models: a recording, a folder of recordings, or - for one",
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
    from wxb.cli.inputs import TextReader, predictions, read_files, read_texts

    arguments, options = split_options(inputs or [])
    if not arguments and sys.stdin.isatty():
        usage_error("INPUT", "missing; expected a text, a file, a folder or -")
    sources = [(source, path_unless_text(source)) for source in arguments or ["-"]]
    # `size` inputs are predicted before the first of them is printed.
    if suffixes := trained.predictor_class(experiment).file_suffixes:
        items, size = read_files(sources, suffixes), 32
    else:
        items, size = read_texts(sources, TextReader(experiment, field)), 512
    chunks = iter(lambda: list(islice(items, size)), [])
    # Read before the model is loaded, as it may be unreadable.
    if not (first := next(chunks, [])):
        raise WxbError(f"{', '.join(arguments) or '-'}: found no records; expected one or more")
    predictor = trained.load(experiment, **options)
    trained.warn_if_generated(experiment)
    errors: list[str] = []  # printed at the end, where users see them
    for chunk in chain([first], chunks):
        for (place, item, error), prediction in predictions(predictor, chunk):
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
