"""Compares classifiers on real texts: how many records does a network need to beat TF-IDF?

The systems of texts.yaml are trained with the project's stages on different numbers of records, and
scored on the same test records. Each result is written to a file; a second run skips those.
"""

from __future__ import annotations

import csv
import random
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

import typer

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.project import benchmarks

RECIPES = Path(__file__).with_suffix(".yaml")
NAME = "texts"  # of the corpus and of the study
OPTIONS = {"threads": 1, "portable": False, "lessons": {}}
TEST, VALID = 0.2, 0.1  # shares of the records
SIZES = [250, 500, 1000, 2000, 4000]
SYSTEMS = ("tfidf", "bilstm", "transformer", "bag", "pretrained")

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    source: Annotated[Path, typer.Argument(help="file or folder of records with one class each")],
    systems: Annotated[list[str] | None, typer.Option("--system", help="default: all")] = None,
    sizes: Annotated[
        list[int], typer.Option("--size", help="records, of which 7 in 10 are for training")
    ] = SIZES,
    fields: Annotated[
        str, typer.Option(help="fields of text and class, or of the text only")
    ] = "review,sentiment",
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="pattern=class, for files of one class")
    ] = None,
    group: Annotated[str | None, typer.Option(help="field whose values stay in one split")] = None,
    folder: Annotated[Path, typer.Option(help="folder of the results")] = Path(
        ".wxb/classification"
    ),
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
    seed: Annotated[int, typer.Option(min=0, help="seed of splits and training")] = 1,
) -> None:
    """Train systems on different numbers of records; print accuracy on the same test records."""
    recipes = read_yaml(RECIPES)
    cells: dict[tuple[str, int], dict[str, Any]] = {}
    records = read(source, fields, classes or [], group, seed)
    for system in systems or SYSTEMS:
        for size in sorted(sizes):
            path = folder / f"{source.stem}-{system}-{size}-{seed}.json"
            if not path.exists():
                cell = train_one(records, system, size, recipes, seed)
                folder.mkdir(parents=True, exist_ok=True)
                with publish(path) as (draft,):
                    write_json(draft, cell)
            cells[system, size] = read_json(path)
    benchmarks.report(table_rows(cells), output)


def read(
    source: Path, fields: str, classes: Iterable[str], group: str | None, seed: int
) -> list[Record]:
    """The records of a source, cleaned by the project and shuffled by the seed; prints counts."""
    corpus = {
        **corpus_settings(source.resolve(), fields, classes),
        "split": {"by": group, "test": TEST, "valid": VALID},
    }
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        params = check({**OPTIONS, "seed": seed, **_blocks(corpora={NAME: corpus})})
        for stage in (download, preprocess):
            stage.main(params, NAME)
        profile = read_json(paths.CLEAN / NAME / paths.PROFILE)
        print(f"{profile['records']}, rejects {profile['rejects']}", flush=True)
        labelling = tasks.get("classification").record
        records = [
            record
            for split in (*clean.TRAINING_SPLITS, "test")
            for record in clean.read_labelled(
                clean.split_file(paths.CLEAN / NAME, split), labelling
            )
        ]
    random.Random(seed).shuffle(records)
    return records


def corpus_settings(source: Path, fields: str, classes: Iterable[str]) -> dict[str, Any]:
    """The corpus block of a source without its split. Raises WxbError if no class is named."""
    text, *label = fields.split(",")
    pairs = [pair.partition("=") for pair in classes]
    if not all(name for *_, name in pairs) or bool(label) == bool(pairs):
        raise WxbError("give the class of texts as --fields TEXT,CLASS or as --class PATTERN=CLASS")
    return {
        "task": "classification",
        "path": str(source),
        "fields": {"input": text, "label": label[0] if label else None},
        "classes": {pattern: name for pattern, _, name in pairs},
        "max_characters": 100_000,
    }


def train_one(
    records: Sequence[Record], system: str, size: int, recipes: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Train a system on some records with the stages; returns its test scores and the times.

    The stages run in a temporary folder. `size` counts the records of all splits.
    """
    recipe = deepcopy(recipes["experiments"][system])
    backbone = recipes["backbones"][recipe["backbone"]]
    test = round(TEST * len(records))
    valid = round(VALID / (1 - TEST) * min((1 - TEST) * size, len(records) - test))
    others = round((1 - TEST) * min(size, len(records)))  # train and valid
    files = {
        "test": records[:test],
        "valid": records[test : test + valid],
        "train": records[test + valid : test + others],
    }
    corpus = {
        "task": "classification",
        "path": "source",
        "fields": {"input": "text", "label": "label", "language": None, "id": None},
        "max_characters": 100_000,
        "split": {"files": {name: [f"{name}.csv"] for name in files}},
    }
    blocks = _blocks(
        corpora={NAME: corpus},
        backbones={recipe["backbone"]: {**backbone, "corpus": NAME}},
        experiments={system: {**recipe, "task": "classification", "study": NAME, "corpus": NAME}},
        studies={
            NAME: {"task": "classification", "title": NAME, "seed": seed, "experiments": [system]}
        },
    )
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("source").mkdir()
        for name, members in files.items():
            with Path("source", f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                rows = [("text", "label"), *((r.input, r.gold) for r in members)]
                csv.writer(file).writerows(rows)
        params = check({**OPTIONS, "seed": seed, **blocks})
        seconds = {}
        for stage, name in (
            *((stage, NAME) for stage in (download, preprocess)),
            *((stage, recipe["backbone"]) for stage in (tokenizer, pretrain)),
            *((stage, system) for stage in (tokenize, align, train, evaluate)),
        ):
            start = time.monotonic()
            stage.main(params, name)
            seconds[stage.__name__.removeprefix("stages.")] = round(time.monotonic() - start, 1)
        scores = read_json(paths.metrics(NAME, system))
    return {"train": len(files["train"]), "seconds": seconds, "scores": scores}


def table_rows(cells: Mapping[tuple[str, int], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The accuracy of systems by number of records; seconds of training with the most records."""
    systems = list(dict.fromkeys(system for system, _ in cells))
    rows: list[dict[str, Any]] = []
    for size in sorted({size for _, size in cells}):
        here = {system: cells[system, size] for system in systems if (system, size) in cells}
        counts = f"{size:,} ({max(cell['train'] for cell in here.values()):,})"
        scores = {name: _accuracy(here[name]) if name in here else None for name in systems}
        rows.append({"records (to train on)": counts, **scores})
    last = {name: max(size for system, size in cells if system == name) for name in systems}
    seconds = {name: cells[name, last[name]]["seconds"] for name in systems}
    times = {name: f"{s['pretrain'] + s['train']:,.0f}" for name, s in seconds.items()}
    return [*rows, {"records (to train on)": "seconds of training", **times}]


def _accuracy(cell: Mapping[str, Any]) -> list[float]:
    return [cell["scores"][key] for key in ("accuracy", "accuracy_low", "accuracy_high")]


def _blocks(**sections: Mapping[str, Any]) -> dict[str, Any]:
    names = ("corpora", "backbones", "experiments", "studies")
    return {**{name: {} for name in names}, **sections}


if __name__ == "__main__":
    benchmarks.run(app)
