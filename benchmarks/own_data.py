"""The recipes of docs/your-data.md and docs/adding-a-corpus.md against spaCy at its defaults.

Every system learns from the same records of a set, cut to a few hundred or thousand, picks its
epoch on the same validation records, and is scored on the same test records by the project's own
scorer. Ours is trained by the project's stages from the recipes in own_data.yaml, one for all
English sets and one for all others. Whole groups of records (templates, documents) are resampled.

Each finished cell is kept, so that the command goes on where it stopped. `--tune` scores on other
records than those reported: recipes were chosen with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import spacy_peer  # first: it holds the libraries that both sides call to one thread

# isort: split
import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish, read_json, write_json, write_jsonl
from wxb.core.params import Params, check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.metrics.bootstrap import intervals, paired
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import counts
from wxb.tasks.ner.record import Labelling

RECIPES = Path(__file__).with_suffix(".yaml")
NAME = "mine"  # of the one corpus, experiment and study of a project
BACKBONE = "backbone"  # of its one backbone
OPTIONS = {"seed": 1, "threads": 1, "portable": False, "resamples": 1000}


class Data(NamedTuple):
    """Records at hand: their block of `corpora`, language, and the sizes that training is cut to.

    A size of None is all there is.
    """

    corpus: dict[str, Any]
    language: str
    sizes: tuple[int | None, ...]


PUBLISHED = {"token": 0, "tag": -1, "join": " "}
CHARACTERS = {**PUBLISHED, "join": ""}
# Paths are relative to the folder of all data.
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
    output: Annotated[Path, typer.Option(help="where finished cells are kept")] = Path(
        ".wxb/own_data"
    ),
    recipes: Annotated[Path, typer.Option(help="what is trained beside spaCy")] = RECIPES,
    tests: Annotated[int, typer.Option(min=1, help="test records of a set, at most")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of splits, training and intervals")] = 1,
    tune: Annotated[
        bool, typer.Option(help="never read the test records: score on validation records")
    ] = False,
    kept: Annotated[bool, typer.Option(help="only print what is kept")] = False,
) -> None:
    """Train spaCy and ours on sets of records, and print one table."""
    torch.set_num_threads(1)
    known = read_yaml(recipes)
    rows = []
    for name, size, systems in chosen(cells or [*SETS], known):
        splits: Splits | None = None
        found = {}
        for system in systems:
            options = {**OPTIONS, "seed": seed}
            asked = {
                "set": SETS[name].corpus,
                "size": size,
                "tests": tests,
                "tune": tune,
                "options": options,
                "recipe": known.get(system, spacy_peer.PEER),
            }
            path = output / f"{name}-{size or 'all'}-{system}.json"
            cell = read_json(path) if path.exists() else {}
            if cell.get("asked") != asked:
                if kept:
                    continue
                splits = splits or cut(
                    records(SETS[name], data.resolve(), options), size, tests, tune=tune
                )
                print(f"{path.stem}: {len(splits['train'])} training records", flush=True)
                cell = {"asked": asked, **train_one(system, splits, SETS[name], known, options)}
                output.mkdir(parents=True, exist_ok=True)
                with publish(path) as (draft,):
                    write_json(draft, cell)
            found[system] = cell
        rows += rows_of(name, found, seed)
    Console(width=spacy_peer.WIDTH, highlight=False).print(table(rows))


def chosen(
    cells: Iterable[str], recipes: Mapping[str, Any]
) -> Iterable[tuple[str, int | None, Sequence[str]]]:
    """Set, size and systems of each name such as `conll`, `conll-300` or `conll-300-spacy`.

    Raises WxbError for a name that there is not.
    """
    for cell in cells:
        name, *rest = cell.split("-")
        if name not in SETS:
            raise WxbError(f"{cell}: there is no set {name!r}{choices(name, SETS)}")
        for size in SETS[name].sizes:
            if rest and rest[0] != str(size or "all"):
                continue
            systems = rest[1:] or SYSTEMS[SETS[name].language]
            for system in systems:
                if system not in (known := ("spacy", *recipes)):
                    raise WxbError(f"{cell}: there is no system {system!r}{choices(system, known)}")
            yield name, size, systems


def records(given: Data, data: Path, options: Mapping[str, Any]) -> dict[str, list[Record]]:
    """The labelled records of a set by split, as the project reads and divides them."""
    corpus = {**given.corpus, "path": str(data / given.corpus["path"])}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        params = project(corpus, options)
        for stage in (download, preprocess):
            stage.main(params, NAME)
        return {
            name: clean.labelled(Path("data/clean", NAME, f"{name}.parquet"), Labelling())
            for name in clean.SPLITS
        }


def cut(splits: Splits, size: int | None, tests: int, *, tune: bool) -> Splits:
    """The first records of each split: for validation a fifth of those for training.

    To tune, the validation records serve for testing; others from the end of training validate,
    and those before them train.
    """
    train, valid, test = (splits[name] for name in clean.SPLITS)
    size = size or len(train)
    if tune:
        valid, train, test = *apart(train[::-1], size // 5), valid
    train = train[:size]
    return {"train": train, "valid": valid[: len(train) // 5], "test": test[:tests]}


def apart(members: Sequence[Record], count: int) -> tuple[list[Record], list[Record]]:
    """So many records from the front, with all others of their groups, and the rest."""
    groups = {record.group for record in members[:count]}
    front = [record for record in members if record.group in groups]
    return front, [record for record in members if record.group not in groups]


def train_one(
    system: str,
    splits: Splits,
    given: Data,
    recipes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Train a system; its counts (right, gold, predicted) by test group, and what it took."""
    if system == "spacy":
        judged, told = by_spacy(splits, given.language, options["seed"])
    else:
        judged, told = by_ours(recipes[system], splits, options)
    test = splits["test"]
    assert [record.input for record in judged] == [record.input for record in test]
    found = counts([record.gold for record in judged], [record.predicted for record in judged])
    groups: dict[str, NDArray[np.int64]] = {}
    for record, row in zip(test, found, strict=True):
        groups[record.group] = groups.get(record.group, 0) + row
    sizes = {name: len(members) for name, members in splits.items()}
    return {**sizes, **told, "counts": [row.tolist() for row in groups.values()]}


def by_spacy(
    splits: Splits, language: str, seed: int
) -> tuple[list[metrics.Judged], dict[str, float]]:
    """A blank pipeline; of few records more epochs, so that it makes as many updates."""
    train, valid = splits["train"], splits["valid"]
    epochs = max(20, 20_000 // len(train))
    nlp = spacy_peer.pipeline(language)
    fit = spacy_peer.train_ner(nlp, train, valid, epochs=epochs, seed=seed, label="spaCy")
    told = {
        "epochs": epochs,
        "parameters": spacy_peer.parameters(nlp),
        "valid_f1": fit.valid_f1,
        "seconds": fit.seconds,
    }
    return spacy_peer.judge(nlp, splits["test"]), told


def by_ours(
    recipe: Mapping[str, Any], splits: Splits, options: Mapping[str, Any]
) -> tuple[list[metrics.Judged], dict[str, float]]:
    """The stages of a project of one experiment, in a folder that is removed."""
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
            started = time.monotonic()
            stage.main(params, BACKBONE if stage in (tokenizer, pretrain) else NAME)
            seconds[stage] = time.monotonic() - started
        measured = read_json(Path("reports/metrics", NAME, f"{NAME}.json"))
        curve = Path("reports/training", NAME, NAME, "valid_f1.csv").read_text().splitlines()[1:]
        told = {
            "epochs": epochs,
            "parameters": measured["parameters"],
            "valid_f1": [round(float(row.split(",")[1]), 3) for row in curve],
            "seconds": seconds[pretrain] + seconds[train],
            "pretraining": seconds[pretrain],
        }
        return evaluation.read(metrics.Scorer(), Path("reports/predictions", NAME, NAME)), told


def project(
    corpus: Mapping[str, Any], options: Mapping[str, Any], recipe: Mapping[str, Any] | None = None
) -> Params:
    """The parameters of one corpus, and of one experiment on it."""
    content: dict[str, Any] = {
        **options,
        "corpora": {NAME: corpus},
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
        study = {"title": "Your own data", "seed": options["seed"], "experiments": [NAME]}
        content["studies"] = {NAME: study}
    return check(content)


def rows_of(name: str, cells: Mapping[str, Any], seed: int) -> list[list[str]]:
    """A row of the table for each system of a set at one size."""
    rows = []
    options = {"resamples": OPTIONS["resamples"], "seed": seed}
    for system, cell in cells.items():
        found = np.array(cell["counts"])
        f1 = intervals(found, metrics.Scorer().scores, **options)["f1"]
        difference = ""
        if system != "spacy" and "spacy" in cells:
            theirs = np.array(cells["spacy"]["counts"])
            d = paired(found, theirs, lambda s: metrics.Scorer().scores(s)["f1"], **options)
            difference = f"{d.value:+.3f} ({d.low:+.3f} to {d.high:+.3f})"
        rows.append(
            [
                name,
                f"{cell['train']:,}",
                f"{cell['test']:,}",
                system,
                f"{f1.value:.3f} ({f1.low:.3f}–{f1.high:.3f})",
                difference,
                f"{cell['epochs']}",
                f"{cell['seconds']:.0f} s",
            ]
        )
    return rows


def table(rows: Iterable[Sequence[str]]) -> Table:
    """One row a cell, as Markdown."""
    shown = Table(box=box.MARKDOWN)
    for header, justify in (
        ("set", "left"),
        ("training records", "right"),
        ("test records", "right"),
        ("system", "left"),
        ("F1 (95% interval)", "right"),
        ("minus spaCy (95% interval)", "right"),
        ("epochs", "right"),
        ("training", "right"),
    ):
        shown.add_column(header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        shown.add_row(*row)
    return shown


if __name__ == "__main__":
    spacy_peer.run(app, "own_data")
