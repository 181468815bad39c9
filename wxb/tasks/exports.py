"""Export records with their gold and predictions as files for other tools.

Every task has JSON Lines and CSV. A task with more formats has a class `Exports`.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

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


Format = Callable[[Iterable[ExportRecord]], Iterator[bytes]]


class Exports:
    """The export formats that only one task has."""

    FORMATS: ClassVar[Mapping[str, Format]] = {}  # by the suffix of a file's name
    BINARY: ClassVar[Collection[str]] = ()  # the formats that are not text


def jsonl(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """Lines of JSON in UTF-8: a record with its gold and, of an experiment, its prediction."""
    for record in records:
        yield json_line(_fields(record))


def json_line(content: Mapping[str, Any]) -> bytes:
    """A JSON object as one line of UTF-8; all Unicode line separators in it are escaped."""
    return (json.dumps(content, ensure_ascii=False).translate(_LINE_ENDS) + "\n").encode()


def table(records: Iterable[ExportRecord]) -> Iterator[bytes]:
    """Lines of CSV in UTF-8, the header first; lists and objects are JSON in their cell."""
    names: list[str] | None = None
    for record in records:
        fields = _fields(record)
        line = io.StringIO()
        writer = csv.writer(line)
        if names is None:
            names = [*fields]
            writer.writerow(names)
        writer.writerow([_cell(fields[name]) for name in names])
        yield line.getvalue().encode()


FORMATS: Mapping[str, Format] = {"jsonl": jsonl, "csv": table}


def _fields(record: ExportRecord) -> dict[str, Any]:
    if record.row is None:
        fields = record._asdict()
        del fields["row"]
        return fields
    return {**record.row._asdict(), "language": record.language}


def _cell(value: Any) -> Any:
    is_scalar = value is None or isinstance(value, str | int | float)
    return value if is_scalar else json.dumps(value, ensure_ascii=False)


def task_of(params: Params, name: str) -> str:
    """The task of a corpus or experiment. Raises WxbError if the name is neither or both."""
    known = [*params.corpora, *params.experiments]
    if known.count(name) == 2:
        raise WxbError(f"params.yaml has a corpus and an experiment {name!r}; rename one of them")
    if name not in known:
        raise WxbError(f"params.yaml has no corpus or experiment {name!r}{choices(name, known)}")
    block = params.corpora[name] if name in params.corpora else params.experiments[name]
    return block.task


def load_records(params: Params, name: str, split: str) -> list[ExportRecord]:
    """The labelled records of a corpus's split, or an experiment's test records with predictions.

    Raises WxbError if the name is neither or both, if an experiment's split is not `test`, and if
    the stage that writes the records has not run.
    """
    from wxb.corpora import clean  # slow: imports pyarrow
    from wxb.metrics import evaluation

    task = tasks.get(task_of(params, name))
    if name in params.corpora:
        folder, stage = paths.clean(name), f"preprocess@{name}"
        require_output(folder / paths.PROFILE, stage)
        if split not in (splits := clean.splits(folder)):
            raise WxbError(f"corpus {name} has no split {split!r}{choices(split, splits)}")
        path = folder / f"{split}.parquet"
        require_output(path, stage)
        records = clean.read_labelled(path, task.record)
        return [ExportRecord(r.id, r.input, r.language, r.gold) for r in records]
    experiment = params.experiments[name]
    if split != "test":
        raise WxbError(
            f"{name} is an experiment, and experiments predict on the test records only;"
            f" found split {split!r}: export its corpus {experiment.corpus!r} instead"
        )
    folder = paths.predictions(experiment.study, name)
    require_output(folder / evaluation.PREDICTIONS, f"evaluate@{name}")
    test_records = paths.clean(experiment.corpus) / "test.parquet"
    require_output(test_records, f"preprocess@{experiment.corpus}")
    languages = {r.id: r.language for r in clean.read(test_records, task.record)}
    return [
        ExportRecord(row.id, row.input, languages.get(row.id), row.gold, row)
        for row in evaluation.read(task.metrics, folder)
    ]


def formats(task: str) -> tuple[dict[str, Format], Collection[str]]:
    """The formats of a task by name, and the names of the binary ones."""
    own = tasks.get(task).exports or Exports()
    return {**FORMATS, **own.FORMATS}, own.BINARY


def choose_format(output: Path | None, name: str | None, task: str) -> str:
    """The format `name`, else the one of the output's suffix, else JSONL.

    Raises WxbError if the task lacks the format, and if a binary one has no output file.
    """
    known, binary = formats(task)
    suffix = output.suffix.lower().removeprefix(".") if output else "jsonl"
    choice = name or suffix
    if choice not in known:
        fault = f"format {name!r}" if name else f"{output}: the suffix is no format"
        raise WxbError(
            f"{fault}; the task {task} has {', '.join(sorted(known))}: choose one with --format"
        )
    if choice in binary and output is None:
        raise WxbError(
            f"format {choice} is binary; name its file with --output, e.g. test.{choice}"
        )
    return choice


def write(chunks: Iterable[bytes], output: Path | None) -> None:
    """Write to standard output, or to a file that is replaced only once all is written.

    Raises WxbError if `output` is not a plain file or cannot be written.
    """
    if output is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    target = output.resolve()  # a link stays; the file that it points to is replaced
    if target.exists() and not target.is_file():
        raise WxbError(f"{output}: found a folder or device; expected a file to write or replace")
    try:
        with publish(target) as (draft,), draft.open("wb") as file:
            file.writelines(chunks)
    except OSError as error:
        raise WxbError(f"{output}: cannot be written ({error.strerror}); choose another") from None
