"""Compare the first experiment of `wxb new study` with the plain peer of its task.

Records are written to files, as a user has them. Our side is what `wxb new corpus` and `wxb new
study` add to an empty params.yaml for these files: the first experiment, run by the stages. Both
sides have the same training, validation and test records, and one scorer. Intervals are over groups
of records (templates, documents).

The result of each system is written to a file, and a second run skips it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import typer
from own_data_peers import PEERS, version_of
from own_data_sets import SETS, Data, Splits, empty_project, limit, read, write
from threadpoolctl import threadpool_limits

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb import tasks
from wxb.cli.new import command
from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import PARAMS, load, parse_yaml
from wxb.metrics import evaluation
from wxb.metrics.intervals import Groups, intervals, paired_difference
from wxb.project import benchmarks
from wxb.project.params_file import to_yaml
from wxb.tasks import recognition

PEER, FIRST = "peer", "first"  # systems; others are rows of the first study, such as `tfidf`
CORPUS, STUDY = "records", "study"
OPTIONS = {"threads": 1, "portable": False}
GAIN = "first study ahead by"  # of its peer

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    cells: Annotated[
        list[str] | None,
        typer.Argument(help="task, set, set-size or set-size-row, e.g. titles-300; default: all"),
    ] = None,
    data: Annotated[Path, typer.Option(help="folder of the sets")] = Path("../shared/data"),
    folder: Annotated[Path, typer.Option(help="folder of the results")] = Path(".wxb/own_data"),
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    tests: Annotated[int, typer.Option(min=1, help="maximum number of test records")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="seed of splits and training")] = 1,
) -> None:
    """Train the first study and its peer on sets of records; print one table."""
    torch.set_num_threads(1)
    options = {**OPTIONS, "seed": seed}
    run = Run(data.resolve(), folder.resolve(), options, tests)
    rows = []
    for name, size, systems in parse_cells(cells or [*SETS]):
        template = recognition.template(SETS[name].task)
        results = {system: result(run, name, size, system, template) for system in (PEER, *systems)}
        rows += table_rows(name, results)
    benchmarks.report(rows, output, {GAIN: "+.3f", "CPU seconds": ",.0f"})


class Run(NamedTuple):
    """Where and how systems are trained and tested: the options of `main`."""

    data: Path
    folder: Path
    options: Mapping[str, Any]
    tests: int


def result(run: Run, name: str, size: int | None, system: str, template: str) -> dict[str, Any]:
    """The result of a system on a set at one size, from its file or else by training."""
    set_ = SETS[name]
    settings = {
        "set": {key: value for key, value in set_._asdict().items() if key != "sizes"},
        "size": size,
        "tests": run.tests,
        "options": run.options,
        "recipe": version_of(set_.task) if system == PEER else recipe(template),
    }
    path = run.folder / f"{name}-{size or 'all'}-{system}.json"
    cell: dict[str, Any] = read_json(path) if path.exists() else {}
    if cell.get("settings") == settings:
        return cell
    print(path.stem, flush=True)
    cell = {"settings": settings, **train_one(run, system, set_, size, template)}
    run.folder.mkdir(parents=True, exist_ok=True)
    with publish(path) as (draft,):
        write_json(draft, cell)
    return cell


def parse_cells(cells: Iterable[str]) -> Iterable[tuple[str, int | None, Sequence[str]]]:
    """Yield set, size and rows of names such as `ner`, `conll`, `conll-300` or `conll-300-decoder`.

    Raises WxbError for an unknown set.
    """
    for cell in cells:
        name, *rest = cell.split("-")
        names = [key for key, set_ in SETS.items() if name in (key, set_.task)]
        if not names:
            raise WxbError(f"{cell}: unknown set {name!r}{choices(name, SETS)}")
        for key in names:
            for size in SETS[key].sizes:
                if not rest or rest[0] == str(size or "all"):
                    yield key, size, rest[1:] or [FIRST]


def recipe(template: str) -> dict[str, Any]:
    """The parts of a template that decide results."""
    content = parse_yaml(template)
    rows = {
        name: {key: value for key, value in row.items() if key not in ("purpose", "seconds")}
        for name, row in content["rows"].items()
    }
    return {"rows": rows, **{key: content[key] for key in ("backbones", "experiments")}}


def train_one(run: Run, system: str, set_: Data, size: int | None, template: str) -> dict[str, Any]:
    """Train and test a system; its statistics by group, and numbers of records and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder), threadpool_limits(1):
        splits = limit(read(set_, run.data, run.options), size, run.tests)
        test = splits["test"]
        print({name: len(members) for name, members in splits.items()}, flush=True)
        start = _cpu_seconds()
        if system == PEER:
            title = version_of(set_.task)
            rows = PEERS[set_.task](splits, set_, run.options["seed"])
        else:
            title, rows = train_ours(system, set_, splits, run.options, template)
        seconds = _cpu_seconds() - start
    if len(rows) != len(test):
        raise WxbError(f"{title}: found {len(rows)} test records, expected {len(test)}")
    groups = [record.group for record in test]
    statistics = tasks.get(set_.task).metrics.statistics(rows)
    sums, sizes = Groups.from_records([statistics], groups)
    return {
        "system": title,
        "train": len(splits["train"]),
        "test": len(test),
        "seconds": round(seconds, 1),
        "statistics": {name: values.tolist() for name, values in sums.items()},
        "sizes": sizes.tolist(),
    }


def _cpu_seconds() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def train_ours(
    row: str, set_: Data, splits: Splits, options: Mapping[str, Any], template: str
) -> tuple[str, list[Any]]:
    """The name of an experiment of the first study, and its rows; `row` names it, or is FIRST."""
    with tempfile.TemporaryDirectory() as folder:
        write(splits, set_.task, Path(folder, CORPUS))
        with chdir(folder), patch.object(recognition, "template", return_value=template):
            PARAMS.write_text(to_yaml(empty_project(options)), encoding="utf-8")
            command.corpus(Path(CORPUS))
            command.study(STUDY, corpus=CORPUS, language=set_.language)
            params = load()
            name = f"{STUDY}-{row}"
            if row == FIRST:
                name = params.studies[STUDY].experiments[0]
            backbone = params.block("experiments", name).backbone
            for stage, block in (
                *((stage, CORPUS) for stage in (download, preprocess)),
                *((stage, backbone) for stage in (tokenizer, pretrain)),
                *((stage, name) for stage in (tokenize, align, train, evaluate)),
            ):
                stage.main(params, block)
            rows = evaluation.load_predictions(
                tasks.get(set_.task).metrics, paths.PREDICTIONS / STUDY / name
            )
    return name.removeprefix(f"{STUDY}-"), rows


def table_rows(name: str, cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the table for a set at one size: one for each system but the peer."""
    task, peer = SETS[name].task, cells[PEER]
    scorer = tasks.get(task).metrics
    metric, scores = scorer.headline(groups(cells[PEER]).total()), scorer.scores
    rows = []
    for system, cell in cells.items():
        if system == PEER:
            continue
        better, worse = groups(cell), groups(peer)
        if metric.lower_is_better:
            better, worse = worse, better
        rows.append(
            {
                "set": name,
                "training records": cell["train"],
                "test records": cell["test"],
                "score": metric.title,
                "peer": intervals(groups(peer), scores, [metric])[metric.key],
                "first study": intervals(groups(cell), scores, [metric])[metric.key],
                GAIN: paired_difference(better, worse, scores, metric)[:3],
                "experiment": cell["system"],
                "CPU seconds": (peer["seconds"], cell["seconds"]),
            }
        )
    return rows


def groups(cell: Mapping[str, Any]) -> Groups:
    """The statistics of a result by group."""
    sums = {name: np.array(values) for name, values in cell["statistics"].items()}
    return Groups(sums, np.array(cell["sizes"]))


if __name__ == "__main__":
    benchmarks.run(app)
