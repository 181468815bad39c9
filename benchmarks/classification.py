"""Classifiers on collections of real texts: from how many records on is a network worth it?

`folds` cross-validates TF-IDF beside scikit-learn's own pipeline, on the same folds. `curve` trains
the systems of classification.yaml by the project's stages on fewer and more records of a file, all
scored on the same test records. Each finished cell is kept, so that it goes on where it stopped.
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

import numpy as np
import typer

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from wxb import tasks
from wxb.core import paths
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import check, read_yaml
from wxb.core.params.section import Section
from wxb.core.progress import tracked
from wxb.corpora import clean
from wxb.corpora.records import Record

RECIPES = Path(__file__).with_suffix(".yaml")
NAME = "texts"  # of the one corpus and study of a project
OPTIONS = {"threads": 1, "portable": False, "resamples": 1000, "lessons": {}, "parity": {}}
TEST, VALID = 0.2, 0.1  # of the records
SIZES = [250, 500, 1000, 2000, 4000]
SYSTEMS = ("tfidf", "bilstm", "transformer", "pretrained")

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
File = Annotated[Path, typer.Argument(help="a file or folder of records with one class each")]
Fields = Annotated[str, typer.Option(help="the fields of text and class, or of the text alone")]
Classes = Annotated[list[str], typer.Option("--class", help="pattern=class, of files of one class")]
Group = Annotated[str | None, typer.Option(help="a field whose values stay in one fold")]
Seed = Annotated[int, typer.Option(min=0, help="of folds, splits and training")]


@app.command()
def folds(
    source: File,
    fields: Fields = "review,sentiment",
    classes: Classes = [],  # noqa: B006
    group: Group = None,
    giveaways: Annotated[str, typer.Option(help="removed or kept")] = "removed",
    number: Annotated[int, typer.Option(min=2)] = 5,
    C: Annotated[float, typer.Option(help="inverse strength of regularization")] = 10.0,  # noqa: N803
    seed: Seed = 1,
) -> None:
    """Cross-validate TF-IDF of the project and scikit-learn's pipeline on the same folds."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline

    from wxb.tasks.classification.record.giveaways import giveaways as marks

    records = read(source, fields, classes, group, seed)
    texts = [record.input for record in records]
    if giveaways == "removed":
        texts = [_without(text, marks(text)) for text in texts]
    gold = np.array([record.gold for record in records])
    ours, theirs = np.empty_like(gold), np.empty_like(gold)
    divided = GroupKFold(number, shuffle=True, random_state=seed)
    parts = divided.split(texts, groups=[record.group for record in records])
    for learnt, held in tracked(parts, "folds", number, unit="fold"):
        known, asked = [texts[at] for at in learnt], [texts[at] for at in held]
        theirs[held] = (
            make_pipeline(
                TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
                LogisticRegression(C=C, max_iter=1000, tol=1e-6),
            )
            .fit(known, gold[learnt])
            .predict(asked)
        )
        ours[held] = counted(known, gold[learnt], asked, C)
    print(
        f"{len(records):,} records, {number} folds, C {C:g}: accuracy"
        f" {accuracy_score(gold, ours):.4f}, scikit-learn's pipeline"
        f" {accuracy_score(gold, theirs):.4f}; {int((ours != theirs).sum())} predictions differ"
    )


def counted(
    known: Sequence[str], gold: Sequence[str], asked: Sequence[str], strength: float
) -> list[str]:
    """What TF-IDF of the project, trained on the known texts, says of those asked for."""
    from wxb.corpora.text import tokenizers
    from wxb.tasks.classification.params import Regression, Tfidf, TfidfModel
    from wxb.tasks.classification.tfidf import method

    bare = tokenizers.train("words", 200_000, known)
    with tempfile.TemporaryDirectory() as folder:
        bare.save_pretrained(Path(folder))
        words = tokenizers.SavedTokenizer(Path(folder))
    labels = sorted(set(gold))
    settings = Tfidf.model_construct(
        model=TfidfModel(ngrams=2, min_texts=2, sublinear=True), training=Regression(C=[strength])
    )
    classifier = method.Method(settings, labels, words)
    found = {
        name: [one.ids for one in method.words(tokenizers.encode(words, texts), texts, words)]
        for name, texts in (("known", known), ("asked", asked))
    }
    items = [
        {"input_ids": ids, "labels": np.int64(labels.index(name))}
        for ids, name in zip(found["known"], gold, strict=True)
    ]
    run = classifier.training_run(items, items[:1], seed=1, checkpoints=Path(), label="fit")
    model, _ = classifier.fit(Path(), run)
    logits = model.logits(model.features(found["asked"]))
    return [labels[place] for place in logits.argmax(axis=1)]


@app.command()
def curve(
    source: File,
    systems: Annotated[
        list[str] | None, typer.Option("--system", help="default: the first four")
    ] = None,
    sizes: Annotated[
        list[int], typer.Option("--size", help="records, of which 7 in 10 train")
    ] = SIZES,
    fields: Fields = "review,sentiment",
    classes: Classes = [],  # noqa: B006
    group: Group = None,
    output: Annotated[Path, typer.Option(help="where finished cells are kept")] = Path(
        ".wxb/classification"
    ),
    kept: Annotated[bool, typer.Option(help="only print what is kept")] = False,
    seed: Seed = 1,
) -> None:
    """Train systems on fewer and more records; print their accuracy on the same test records."""
    recipes = read_yaml(RECIPES)
    cells: dict[tuple[str, int], dict[str, Any]] = {}
    records = [] if kept else read(source, fields, classes, group, seed)
    for system in systems or SYSTEMS:
        for size in sorted(sizes):
            path = output / f"{source.stem}-{system}-{size}-{seed}.json"
            if not path.exists() and not kept:
                cell = train_one(records, system, size, recipes, seed)
                output.mkdir(parents=True, exist_ok=True)
                with publish(path) as (draft,):
                    write_json(draft, cell)
            if path.exists():
                cells[system, size] = read_json(path)
    print("\n".join(told(cells)))


def read(
    source: Path, fields: str, classes: Iterable[str], group: str | None, seed: int
) -> list[Record]:
    """The records of a source as the project cleans them, shuffled by the seed."""
    names = [*fields.split(","), None][:2]
    corpus = {
        "task": "classification",
        "path": str(source.resolve()),
        "fields": {"input": names[0], "label": names[1]},
        "classes": dict(one.split("=") for one in classes),
        "max_characters": 100_000,
        "split": {"by": group, "test": TEST, "valid": VALID},
    }
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        params = check({**OPTIONS, "seed": seed, **_blocks(corpora={NAME: corpus})})
        for stage in (download, preprocess):
            stage.main(params, NAME)
        profile = read_json(paths.clean(NAME) / paths.PROFILE)
        print(f"{profile['records']}, rejects {profile['rejects']}", flush=True)
        labelling = tasks.get("classification").record
        found = [
            record
            for split in clean.SPLITS
            for record in clean.labelled(paths.clean(NAME) / f"{split}.parquet", labelling)
        ]
    random.Random(seed).shuffle(found)
    return found


def train_one(
    records: Sequence[Record], system: str, size: int, recipes: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Train a system by the stages on the records of a size; its scores on the test records."""
    recipe = deepcopy(recipes["experiments"][system])
    backbone = recipes["backbones"][recipe["backbone"]]
    held = round(TEST * len(records))
    valid = round(VALID / (1 - TEST) * min((1 - TEST) * size, len(records) - held))
    used = round((1 - TEST) * min(size, len(records)))
    files = {
        "test": records[:held],
        "valid": records[held : held + valid],
        "train": records[held + valid : held + used],
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
                rows = [("text", "label"), *((one.input, one.gold) for one in members)]
                csv.writer(file).writerows(rows)
        params = check({**OPTIONS, "seed": seed, **blocks})
        seconds = {}
        for stage, name in (
            *((stage, NAME) for stage in (download, preprocess)),
            *((stage, recipe["backbone"]) for stage in (tokenizer, pretrain)),
            *((stage, system) for stage in (tokenize, align, train, evaluate)),
        ):
            began = time.monotonic()
            stage.main(params, name)
            seconds[stage.__name__.removeprefix("stages.")] = round(time.monotonic() - began, 1)
        scores = read_json(paths.metrics(NAME, system))
    return {"train": len(files["train"]), "seconds": seconds, "scores": scores}


def told(cells: Mapping[tuple[str, int], Mapping[str, Any]]) -> list[str]:
    """The cells as a table and a chart, in Markdown."""
    systems = list(dict.fromkeys(system for system, _ in cells))
    sizes = sorted({size for _, size in cells})
    rows = [
        ["records (to train on)", *systems],
        ["---:", *("---:" for _ in systems)],
        *(
            [
                f"{size:,} ({max(cells[one]['train'] for one in cells if one[1] == size):,})",
                *(_score(cells.get((system, size))) for system in systems),
            ]
            for size in sizes
        ),
        ["seconds of training", *(_seconds(cells, system) for system in systems)],
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    whole = [size for size in sizes if all((system, size) in cells for system in systems)]
    chart = [
        "```mermaid",
        "xychart-beta",
        f'    x-axis "labelled records" [{", ".join(map(str, whole))}]',
        '    y-axis "accuracy" 0.5 --> 1',
        *(_line([cells[system, size] for size in whole]) for system in systems),
        "```",
    ]
    return [*lines, "", *chart]


def _line(cells: Iterable[Mapping[str, Any]]) -> str:
    values = ", ".join(f"{cell['scores']['accuracy']:.3f}" for cell in cells)
    return f"    line [{values}]"


def _score(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    scores = cell["scores"]
    low, high = (scores[f"accuracy_{end}"] for end in ("low", "high"))
    return f"{scores['accuracy']:.3f} ({low:.3f}–{high:.3f})"


def _seconds(cells: Mapping[tuple[str, int], Mapping[str, Any]], system: str) -> str:
    size = max(size for name, size in cells if name == system)
    spent = cells[system, size]["seconds"]
    return f"{spent['pretrain'] + spent['train']:,.0f}"


def _blocks(**sections: Mapping[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {
        name: {} for name in ("corpora", "backbones", "experiments", "studies")
    }
    return {**empty, **{name: _plain(blocks) for name, blocks in sections.items()}}


def _plain(blocks: Mapping[str, Any]) -> Any:
    return {name: b.model_dump() if isinstance(b, Section) else b for name, b in blocks.items()}


def _without(text: str, stretches: Iterable[tuple[int, int]]) -> str:
    parts, reached = [], 0
    for start, end in stretches:
        parts.append(text[reached:start])
        reached = end
    return " ".join([*parts, text[reached:]])


if __name__ == "__main__":
    app()
