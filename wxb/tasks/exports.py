"""Records with their gold and predictions, written as other tools read them.

JSON Lines and CSV serve any task. A task with formats of its own has a class `Exports`.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish
from wxb.core.params import Params

if TYPE_CHECKING:
    from wxb.metrics.scorer import Row

# Allowed in JSON as they are, but many a reader takes them for the end of the line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class Exported(NamedTuple):
    """A record with its gold and, of an experiment, the row of its predictions."""

    id: str
    input: str
    language: str | None
    gold: Any
    row: Row | None = None


Format = Callable[[Iterable[Exported]], Iterator[bytes]]


class Exports:
    """The formats that only a task has."""

    FORMATS: ClassVar[Mapping[str, Format]] = {}  # by the suffix of a file's name
    BINARY: ClassVar[Collection[str]] = ()  # those that no terminal shows


def jsonl(exported: Iterable[Exported]) -> Iterator[bytes]:
    """One JSON object a line in UTF-8: a record with its gold, of an experiment its predictions."""
    for record in exported:
        yield json_line(_fields(record))


def json_line(content: Mapping[str, Any]) -> bytes:
    """A line of JSON that every reader takes for one line."""
    return (json.dumps(content, ensure_ascii=False).translate(_LINE_ENDS) + "\n").encode()


def table(exported: Iterable[Exported]) -> Iterator[bytes]:
    """CSV in UTF-8 with a header; what is neither text nor number stands in its cell as JSON."""
    names: list[str] | None = None
    for record in exported:
        fields = _fields(record)
        line = io.StringIO()
        writer = csv.writer(line)
        if names is None:
            names = [*fields]
            writer.writerow(names)
        writer.writerow([_cell(fields[name]) for name in names])
        yield line.getvalue().encode()


FORMATS: Mapping[str, Format] = {"jsonl": jsonl, "csv": table}


def _fields(record: Exported) -> dict[str, Any]:
    if record.row is None:
        fields = record._asdict()
        del fields["row"]
        return fields
    return {**record.row._asdict(), "language": record.language}


def _cell(value: Any) -> Any:
    plain = value is None or isinstance(value, str | int | float)
    return value if plain else json.dumps(value, ensure_ascii=False)


def task_of(params: Params, name: str) -> str:
    """The task of a corpus or experiment. Raises WxbError for a name that is neither or both."""
    known = [*params.corpora, *params.experiments]
    if known.count(name) == 2:
        raise WxbError(f"params.yaml has a corpus and an experiment {name!r}; rename one of them")
    if name not in known:
        raise WxbError(f"params.yaml has no corpus or experiment {name!r}{choices(name, known)}")
    block = params.corpora[name] if name in params.corpora else params.experiments[name]
    return block.task


def records(params: Params, name: str, split: str) -> list[Exported]:
    """The labelled records of a corpus's split, or the test records that an experiment judged.

    Raises WxbError for a name that is neither or both, for another split of an experiment, and
    where the stage that makes them has not run.
    """
    from wxb.corpora import clean  # with pyarrow: no other command should wait for it
    from wxb.metrics import evaluation

    task = task_of(params, name)
    if name in params.corpora:
        folder = paths.clean(name)
        _check_made(folder / paths.PROFILE, f"preprocess@{name}")
        if split not in (splits := clean.splits(folder)):
            raise WxbError(f"corpus {name} has no split {split!r}{choices(split, splits)}")
        path = folder / f"{split}.parquet"
        _check_made(path, f"preprocess@{name}")
        found = clean.labelled(path, tasks.get(task).record)
        return [Exported(r.id, r.input, r.language, r.gold) for r in found]
    experiment = params.experiments[name]
    if split != "test":
        raise WxbError(
            f"{name} is an experiment, and experiments predict on the test records only;"
            f" found split {split!r}: export its corpus {experiment.corpus!r} instead"
        )
    folder = paths.predictions(experiment.study, name)
    _check_made(folder / evaluation.PREDICTIONS, f"evaluate@{name}")
    tested = paths.clean(experiment.corpus) / "test.parquet"
    _check_made(tested, f"preprocess@{experiment.corpus}")
    languages = {r.id: r.language for r in clean.read(tested, tasks.get(task).record)}
    return [
        Exported(row.id, row.input, languages.get(row.id), row.gold, row)
        for row in evaluation.read(tasks.get(task).metrics, folder)
    ]


def _check_made(path: Path, stage: str) -> None:
    if not path.exists():
        raise WxbError(f"{path}: not there yet; run `dvc repro {stage}` first")


def formats(task: str) -> tuple[dict[str, Format], Collection[str]]:
    """The formats of a task, and those among them that are binary."""
    own = tasks.get(task).exports or Exports()
    return {**FORMATS, **own.FORMATS}, own.BINARY


def format_of(output: Path | None, given: str | None, task: str) -> str:
    """The format that is given, or else that of the suffix; JSONL, which loses nothing, of neither.

    Raises WxbError for a format that the task has not, and for a binary one without a file.
    """
    known, binary = formats(task)
    suffix = output.suffix.lower().removeprefix(".") if output else "jsonl"
    chosen = given or suffix
    if chosen not in known:
        found = f"format {given!r}" if given else f"{output}: the suffix names no format"
        raise WxbError(
            f"{found}; of the task {task} there is {', '.join(sorted(known))}: choose one with"
            " --format"
        )
    if chosen in binary and output is None:
        raise WxbError(
            f"format {chosen} is binary; name its file with --output, e.g. test.{chosen}"
        )
    return chosen


def write(chunks: Iterable[bytes], output: Path | None) -> None:
    """Write to a file, which appears whole or not at all, or to standard output.

    Raises WxbError where `output` is no plain file.
    """
    if output is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    target = output.resolve()  # of a link, the file that it points to
    if target.exists() and not target.is_file():
        raise WxbError(f"{output}: found a folder or device; expected a file to write or replace")
    try:
        with publish(target) as (draft,), draft.open("wb") as file:
            file.writelines(chunks)
    except OSError as error:
        raise WxbError(f"{output}: cannot be written ({error.strerror}); choose another") from None
