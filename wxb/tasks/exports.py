"""Export records with their gold and predictions as files for other tools.

Every task has JSON Lines and CSV. A task with more formats has them in `FORMATS` of its module
`exports`.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError, choices, require_output
from wxb.core.files import publish
from wxb.core.params import Params

# JSON allows them unescaped, but many readers take them for the end of the line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class ExportRecord(NamedTuple):
    """A labelled record and, if an experiment is exported, its row of predictions.jsonl."""

    id: str
    input: str
    language: str | None
    gold: Any
    row: Any = None  # of the task's `Scorer.ROW`


def jsonl(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """Lines of JSON in UTF-8: a record with its gold and, of an experiment, its prediction."""
    return map(json_line, map(_fields, records))


def json_line(content: Mapping[str, Any]) -> bytes:
    """A JSON object as one line of UTF-8; all Unicode line separators in it are escaped."""
    return (json.dumps(content, ensure_ascii=False).translate(_LINE_ENDS) + "\n").encode()


def table(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """Lines of CSV in UTF-8, the header first; lists and objects are JSON in their cell."""
    for index, fields in enumerate(map(_fields, records)):
        line = io.StringIO()
        writer = csv.DictWriter(line, [*fields])
        if index == 0:
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in fields.items()})
        yield line.getvalue().encode()


Format = Callable[[Iterable[ExportRecord]], Iterator[bytes]]
FORMATS: Mapping[str, Format] = {"jsonl": jsonl, "csv": table}


def _fields(record: ExportRecord) -> dict[str, Any]:
    if record.row is not None:
        return {**record.row._asdict(), "language": record.language}
    return {name: value for name, value in record._asdict().items() if name != "row"}


def _cell(value: Any) -> Any:
    is_scalar = value is None or isinstance(value, str | int | float)
    return value if is_scalar else json.dumps(value, ensure_ascii=False)


def export(params: Params, name: str, split: str, format_: str | None, output: Path | None) -> None:
    """Write a corpus's split, or an experiment's test records, to a file or standard output.

    The format is by default that of the output's suffix, else JSONL. Raises WxbError if the name
    or the format is unknown, or the output is no plain file or cannot be written.
    """
    known = [*params.corpora, *params.experiments]
    if known.count(name) != 1:
        fault = "both a corpus and an experiment" if name in known else "no corpus or experiment"
        raise WxbError(f"params.yaml has {fault} {name!r}{choices(name, known)}")
    block = params.corpora[name] if name in params.corpora else params.experiments[name]
    formats = {**FORMATS, **getattr(tasks.get(block.task).exports, "FORMATS", {})}
    format_ = format_ or (output.suffix.lower().removeprefix(".") if output else "jsonl")
    if format_ not in formats:
        raise WxbError(
            f"--format: {block.task} has no format {format_!r}{choices(format_, formats)}"
        )
    chunks = formats[format_](load_records(params, name, split))
    if output is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    if output.exists() and not output.is_file():
        raise WxbError(f"--output: {output} is no file; expected a file to write or replace")
    try:
        # A link stays; the file that it points to is replaced.
        with publish(output.resolve()) as (draft,), draft.open("wb") as file:
            file.writelines(chunks)
    except OSError as error:
        raise WxbError(f"--output: {output}: cannot be written ({error.strerror})") from None


def load_records(params: Params, name: str, split: str) -> list[ExportRecord]:
    """The labelled records of a corpus's split, or an experiment's test records with predictions.

    Raises WxbError for an unknown split, and if the stage that writes the records has not run.
    """
    from wxb.corpora import clean  # slow: imports pyarrow
    from wxb.metrics import evaluation

    experiment = params.experiments.get(name)
    corpus = experiment.corpus if experiment else name
    task = tasks.get(params.corpora[corpus].task)
    folder = paths.clean(corpus)
    require_output(folder / paths.PROFILE, f"preprocess@{corpus}")
    splits = ["test"] if experiment else clean.splits(folder)
    if split not in splits:
        raise WxbError(f"--split: {name} has no split {split!r}{choices(split, splits)}")
    path = folder / f"{split}.parquet"
    require_output(path, f"preprocess@{corpus}")
    if not experiment:
        records = clean.read_labelled(path, task.record)
        return [ExportRecord(r.id, r.input, r.language, r.gold) for r in records]
    predictions = paths.predictions(experiment.study, name)
    require_output(predictions / evaluation.PREDICTIONS, f"evaluate@{name}")
    languages = {r.id: r.language for r in clean.read(path, task.record)}
    return [
        ExportRecord(row.id, row.input, languages.get(row.id), row.gold, row)
        for row in evaluation.read(task.metrics, predictions)
    ]
