"""Export records with their gold and predictions as files for other tools.

Every task has JSON Lines and CSV. A task with more formats has them in `FORMATS` of its module
`exports`.
"""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError, choices, require_output
from wxb.core.files import publish, read_jsonl
from wxb.core.params import Params

# JSON allows them unescaped, but many readers take them for the end of the line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})

Records = Sequence[Mapping[str, Any]]


def json_line(content: Mapping[str, Any]) -> str:
    """A JSON object as a line with its end; all Unicode line separators in it are escaped."""
    return json.dumps(content, ensure_ascii=False).translate(_LINE_ENDS) + "\n"


def _csv(records: Records) -> Iterator[str]:
    """Yield a CSV table as one string. All records need equal fields; lists and dicts are JSON."""
    writer = csv.writer(table := io.StringIO())
    for values in chain(records[:1], (record.values() for record in records)):
        writer.writerow(
            v if isinstance(v, str | int | float | None) else json.dumps(v, ensure_ascii=False)
            for v in values
        )
    yield table.getvalue()


FORMATS: Mapping[str, Callable[[Records], Iterable[str]]] = {
    "jsonl": partial(map, json_line),
    "csv": _csv,
}


def export(params: Params, name: str, split: str, format_: str | None, output: Path | None) -> None:
    """Write a split's labelled records, or an experiment's test records, to a file or to stdout.

    The format is by default the output's suffix, and JSONL on standard output. Raises WxbError if
    name, split or format is unknown, `output` is a folder, or the records do not exist yet.
    """
    blocks: dict[str, Any] = {**params.corpora, **params.experiments}
    if name not in blocks:
        raise WxbError(f"params.yaml has no corpus or experiment {name!r}{choices(name, blocks)}")
    task = blocks[name].task
    formats = {**FORMATS, **getattr(tasks.get(task).exports, "FORMATS", {})}
    format_ = format_ or (output.suffix.lower().removeprefix(".") if output else "jsonl")
    if format_ not in formats:
        raise WxbError(f"--format: {task} has no format {format_!r}{choices(format_, formats)}")
    lines = (line.encode() for line in formats[format_](load_records(params, name, split)))
    if output is None:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
    elif output.is_dir():
        raise WxbError(f"--output: {output} is a folder; expected a file to write or replace")
    else:
        # A link stays; the file that it points to is replaced.
        with publish(output.resolve()) as (draft,), draft.open("wb") as file:
            file.writelines(lines)


def load_records(params: Params, name: str, split: str) -> Records:
    """The labelled records of a corpus's split, or an experiment's test records with predictions.

    A corpus's records have `id`, `input`, `language` and `gold`. An experiment has only the split
    `test`. Raises WxbError for other splits and for absent output, but does not check `name`.
    """
    from wxb.corpora import clean  # slow: imports pyarrow
    from wxb.metrics import TEST, evaluation

    if experiment := params.experiments.get(name):
        splits, stage = [TEST], f"evaluate@{name}"
        file = paths.PREDICTIONS / experiment.study / name / evaluation.PREDICTIONS
    else:
        folder, stage = paths.CLEAN / name, f"preprocess@{name}"
        require_output(folder / paths.PROFILE, stage)
        splits, file = clean.splits(folder), clean.split_file(folder, split)
    if split not in splits:
        raise WxbError(f"--split: {name} has no split {split!r}{choices(split, splits)}")
    require_output(file, stage)
    if experiment:
        return [*read_jsonl(file)]
    records = clean.read_labelled(file, tasks.get(params.corpora[name].task).record)
    return [{f: getattr(r, f) for f in ("id", "input", "language", "gold")} for r in records]
