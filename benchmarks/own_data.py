"""Compare the recipes of docs/your-data.md and docs/adding-a-corpus.md with spaCy's defaults.

All systems train on the same records of a set, choose their epoch on the same validation records,
and are scored on the same test records by the project's scorer. Our systems are trained by the
stages from the recipes in own_data.yaml, one for English sets and one for others. Intervals are
over groups of records (templates, documents).

The result of each system is written to a file, and a second run skips it. `--tune` scores on other
records than those reported; the recipes were chosen with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy_peer  # first: it limits the libraries of both sides to one thread

# isort: split
import numpy as np
import torch
import typer
from numpy.typing import NDArray

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish, read_json, write_json, write_jsonl
from wxb.core.params import Params, check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.metrics.intervals import Groups, intervals, paired_difference
from wxb.project.reproduction import benchmarks
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import counts
from wxb.tasks.ner.record import Labelling

RECIPES = Path(__file__).with_suffix(".yaml")
NAME = "mine"  # of the one corpus, experiment and study of a project
BACKBONE = "backbone"  # of its one backbone
DIFFERENCE = "minus the first"  # of the systems of a set and size
OPTIONS = {"seed": 1, "threads": 1, "portable": False}


class Data(NamedTuple):
    """A set of records: its block of `corpora`, language, and numbers of training records.

    A size of None means all records.
    """

    corpus: dict[str, Any]
    language: str
    sizes: tuple[int | None, ...]


PUBLISHED = {"token": 0, "tag": -1, "join": " "}
CHARACTERS = {**PUBLISHED, "join": ""}
# Paths are relative to the folder of `--data`.
SETS = {
    "synth": Data(
        {
            "path": "pii/synth_dataset_v2.json",
            "fields": {
                "input": "full_text",
                "spans": "spans",
                "start": "start_position",
                "end": "end_position",
                "type": "entity_type",
                "value": "entity_value",
                "language": None,
                "id": None,
            },
            "split": {"by": "template_id", "test": 0.25, "valid": 0.1},
        },
        "en",
        (300, None),
    ),
    "conll": Data(
        {
            "path": "ner/conll2003",
            "conll": PUBLISHED,
            "split": {
                "files": {"train": ["train.txt"], "valid": ["valid.txt"], "test": ["test.txt"]}
            },
        },
        "en",
        (300, 1000, 3000),
    ),
    "wnut": Data(
        {
            "path": "ner/wnut17",
            "conll": PUBLISHED,
            "split": {"files": {"train": ["*train*"], "valid": ["*dev*"], "test": ["*test*"]}},
        },
        "en",
        (1000, 3000),
    ),
    "weibo": Data(
        {
            "path": "ner/weibo",
            "conll": {**CHARACTERS, "characters": True},
            "split": {"files": {"train": ["*train"], "valid": ["*dev"], "test": ["*test"]}},
        },
        "zh",
        (None,),
    ),
    "msra": Data(
        {
            "path": "ner/msra/msra_test_bio.txt",
            "conll": CHARACTERS,
            "split": {"by": None, "test": 0.25, "valid": 0.1},
        },
        "zh",
        (1000,),
    ),
}
SYSTEMS = {"en": ("spacy", "pretrained"), "zh": ("spacy", "scratch")}

Splits = Mapping[str, Sequence[Record]]

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    cells: Annotated[
        list[str] | None,
        typer.Argument(help="set, set-size or set-size-system, e.g. conll-300; default: all"),
    ] = None,
    data: Annotated[Path, typer.Option(help="folder of the sets")] = Path("../shared/data"),
    folder: Annotated[Path, typer.Option(help="folder of the results")] = Path(".wxb/own_data"),
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    recipes: Annotated[Path, typer.Option(help="recipes of our systems")] = RECIPES,
    tests: Annotated[int, typer.Option(min=1, help="maximum number of test records")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="seed of splits and training")] = 1,
    tune: Annotated[
        bool, typer.Option(help="score on validation records and read no test records")
    ] = False,
    is_printing_only: Annotated[
        bool, typer.Option("--kept", help="train nothing; print the results in the folder")
    ] = False,
) -> None:
    """Train spaCy and our systems on sets of records; print one table."""
    torch.set_num_threads(1)
    recipe_by_system = read_yaml(recipes)
    rows = []
    for name, size, systems in parse_cells(cells or [*SETS], recipe_by_system):
        splits: Splits | None = None
        results = {}
        for system in systems:
            options = {**OPTIONS, "seed": seed}
            settings = {
                "set": SETS[name].corpus,
                "size": size,
                "tests": tests,
                "tune": tune,
                "options": options,
                "recipe": recipe_by_system.get(system, spacy_peer.PEER),
            }
            path = folder / f"{name}-{size or 'all'}-{system}.json"
            cell = read_json(path) if path.exists() else {}
            if cell.get("settings") != settings:
                if is_printing_only:
                    continue
                splits = splits or limit(
                    records(SETS[name], data.resolve(), options), size, tests, tune=tune
                )
                print(f"{path.stem}: {len(splits['train'])} training records", flush=True)
                result = train_one(system, splits, SETS[name], recipe_by_system, options)
                cell = {"settings": settings, **result}
                folder.mkdir(parents=True, exist_ok=True)
                with publish(path) as (draft,):
                    write_json(draft, cell)
            results[system] = cell
        rows += table_rows(name, results)
    benchmarks.report(rows, output, {DIFFERENCE: "+.3f", "seconds": ".0f"})


def parse_cells(
    cells: Iterable[str], recipes: Mapping[str, Any]
) -> Iterable[tuple[str, int | None, Sequence[str]]]:
    """Yield set, size and systems of names such as `conll`, `conll-300` or `conll-300-spacy`.

    Raises WxbError for an unknown set or system.
    """
    for cell in cells:
        name, *rest = cell.split("-")
        if name not in SETS:
            raise WxbError(f"{cell}: unknown set {name!r}{choices(name, SETS)}")
        for size in SETS[name].sizes:
            if rest and rest[0] != str(size or "all"):
                continue
            systems = rest[1:] or SYSTEMS[SETS[name].language]
            for system in systems:
                if system not in (names := ("spacy", *recipes)):
                    raise WxbError(f"{cell}: unknown system {system!r}{choices(system, names)}")
            yield name, size, systems


def records(set_: Data, data: Path, options: Mapping[str, Any]) -> dict[str, list[Record]]:
    """The labelled records of a set by split, by the stages download and preprocess."""
    corpus = {**set_.corpus, "path": str(data / set_.corpus["path"])}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        params = project(corpus, options)
        for stage in (download, preprocess):
            stage.main(params, NAME)
        return {
            name: clean.read_labelled(Path("data/clean", NAME, f"{name}.parquet"), Labelling())
            for name in clean.SPLITS
        }


def limit(splits: Splits, size: int | None, tests: int, *, tune: bool) -> Splits:
    """The first records of each split; validation has a fifth as many as training.

    If `tune`, the test records are the validation records, and validation records are from the end
    of training.
    """
    train, valid, test = (splits[name] for name in clean.SPLITS)
    size = size or len(train)
    if tune:
        valid, train, test = *split_groups(train[::-1], size // 5), valid
    train = train[:size]
    return {"train": train, "valid": valid[: len(train) // 5], "test": test[:tests]}


def split_groups(members: Sequence[Record], count: int) -> tuple[list[Record], list[Record]]:
    """The first `count` records with all others of their groups, and the rest."""
    groups = {record.group for record in members[:count]}
    front = [record for record in members if record.group in groups]
    return front, [record for record in members if record.group not in groups]


def train_one(
    system: str,
    splits: Splits,
    set_: Data,
    recipes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Train a system; returns numbers of training, and counts (right, gold, predicted) by group."""
    if system == "spacy":
        rows, numbers = train_spacy(splits, set_.language, options["seed"])
    else:
        rows, numbers = train_ours(recipes[system], splits, options)
    test = splits["test"]
    assert [row.input for row in rows] == [record.input for record in test]
    table = counts([row.gold for row in rows], [row.predicted for row in rows])
    groups: dict[str, NDArray[np.int64]] = {}
    for record, record_counts in zip(test, table, strict=True):
        groups[record.group] = groups.get(record.group, 0) + record_counts
    sizes = {name: len(members) for name, members in splits.items()}
    return {**sizes, **numbers, "counts": [sums.tolist() for sums in groups.values()]}


def train_spacy(
    splits: Splits, language: str, seed: int
) -> tuple[list[metrics.PredictionRow], dict[str, float]]:
    """Train and test a blank pipeline, for 20 epochs or, with few records, 20,000 records."""
    train, valid = splits["train"], splits["valid"]
    epochs = max(20, 20_000 // len(train))
    nlp = spacy_peer.pipeline(language)
    fit = spacy_peer.train_ner(nlp, train, valid, epochs=epochs, seed=seed, label="spaCy")
    numbers = {
        "epochs": epochs,
        "parameters": spacy_peer.parameter_count(nlp),
        "valid_f1": fit.valid_f1,
        "seconds": fit.seconds,
    }
    return spacy_peer.predict(nlp, splits["test"]), numbers


def train_ours(
    recipe: Mapping[str, Any], splits: Splits, options: Mapping[str, Any]
) -> tuple[list[metrics.PredictionRow], dict[str, float]]:
    """Train and test one experiment with the stages, in a temporary folder."""
    recipe = deepcopy(dict(recipe))
    lengths = recipe["epochs"]
    epochs = lengths["examples"] // len(splits["train"])
    epochs = min(max(epochs, lengths["least"]), lengths["most"])
    recipe["experiment"]["training"]["epochs"] = epochs
    corpus = {
        "path": "records",
        "fields": {"input": "text", "language": None, "id": None},
        "split": {"files": {name: [f"{name}.jsonl"] for name in splits}},
        "augment": recipe["augment"],
    }
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("records").mkdir()
        for name, members in splits.items():
            rows = (
                {"text": r.input, "spans": [s._asdict() for s in r.gold or ()]} for r in members
            )
            write_jsonl(Path("records", f"{name}.jsonl"), rows)
        params = project(corpus, options, recipe)
        seconds = {}
        for stage in (
            download, preprocess, tokenizer, pretrain, tokenize, align, train, evaluate
        ):  # fmt: skip
            start = time.monotonic()
            stage.main(params, BACKBONE if stage in (tokenizer, pretrain) else NAME)
            seconds[stage] = time.monotonic() - start
        scores = read_json(Path("reports/metrics", NAME, f"{NAME}.json"))
        curve = Path("reports/training", NAME, NAME, "valid_f1.csv").read_text().splitlines()[1:]
        numbers = {
            "epochs": epochs,
            "parameters": scores["parameters"],
            "valid_f1": [round(float(row.split(",")[1]), 3) for row in curve],
            "seconds": seconds[pretrain] + seconds[train],
            "pretraining": seconds[pretrain],
        }
        return evaluation.read(metrics.Scorer(), Path("reports/predictions", NAME, NAME)), numbers


def project(
    corpus: Mapping[str, Any], options: Mapping[str, Any], recipe: Mapping[str, Any] | None = None
) -> Params:
    """The parameters of a project with one corpus and, with a recipe, one experiment."""
    content: dict[str, Any] = {
        **options,
        "corpora": {NAME: {"task": "ner", **corpus}},
        "backbones": {},
        "experiments": {},
        "studies": {},
        "lessons": {},
        "parity": {},
    }
    if recipe:
        names = {"study": NAME, "corpus": NAME, "backbone": BACKBONE}
        content["backbones"] = {BACKBONE: {"corpus": NAME, **recipe["backbone"]}}
        content["experiments"] = {NAME: {**names, **recipe["experiment"]}}
        study = {
            "task": "ner",
            "title": "Your own data",
            "seed": options["seed"],
            "experiments": [NAME],
        }
        content["studies"] = {NAME: study}
    return check(content)


def table_rows(name: str, cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the table for the systems of a set at one size."""
    rows = []
    scorer = metrics.Scorer()
    first: Groups | None = None
    for system, cell in cells.items():
        groups = Groups.from_records(np.array(cell["counts"]))
        difference = None
        if first:
            difference = paired_difference(groups, first, scorer.scores, scorer.headline)[:3]
        first = first or groups
        rows.append(
            {
                "set": name,
                "training records": cell["train"],
                "test records": cell["test"],
                "system": system,
                "F1": intervals(groups, scorer.scores, scorer.METRICS)["f1"],
                DIFFERENCE: difference,
                "epochs": cell["epochs"],
                "seconds": cell["seconds"],
            }
        )
    return rows


if __name__ == "__main__":
    benchmarks.run(app)
