"""The sets of own_data.py: labelled records, and their division into training and test records."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stages import download, preprocess
from wxb import tasks
from wxb.core import paths
from wxb.core.files import write_jsonl
from wxb.core.params import check
from wxb.corpora import clean
from wxb.corpora.records import Record

NAME = "set"  # of the corpus that `read` makes
VALID = 5  # training records for each validation record


class Data(NamedTuple):
    """A set of records: its task, block of `corpora`, numbers of training records, and language.

    A size of None means all records.
    """

    task: str
    corpus: dict[str, Any]
    sizes: tuple[int | None, ...]
    language: str = "en"


Splits = Mapping[str, Sequence[Record]]

SIZES = (100, 300, 1000)
SHARES = {"test": 0.25, "valid": 0.1}
NEWS = {"path": "news", "classes": {"Fake.csv": "fake", "True.csv": "real"}}
PUBLISHED = {"token": 0, "tag": -1, "join": " "}
CHARACTERS = {**PUBLISHED, "join": ""}


def _fields(**names: str | None) -> dict[str, Any]:
    return {"language": None, "id": None, **names}


def _files(**patterns: str) -> dict[str, Any]:
    return {"files": {split: [pattern] for split, pattern in patterns.items()}}


# Paths are relative to the folder of `--data`.
SETS = {
    "articles": Data(
        "classification",
        {**NEWS, "fields": _fields(input="text", label=None), "split": {"by": "title", **SHARES}},
        SIZES,
    ),
    "titles": Data(
        "classification",
        {**NEWS, "fields": _fields(input="title", label=None), "split": SHARES},
        SIZES,
    ),
    "subjects": Data(
        "classification",
        {"path": "news", "fields": _fields(input="title", label="subject"), "split": SHARES},
        SIZES,
    ),
    "reviews": Data(
        "classification",
        {
            "path": "sentiment/imdb_reviews.csv",
            "fields": _fields(input="review", label="sentiment"),
            "split": {"test": 0.14, "valid": 0.1},
        },
        (*SIZES, 3000),
    ),
    "synth": Data(
        "ner",
        {
            "path": "pii/synth_dataset_v2.json",
            "fields": _fields(
                input="full_text",
                start="start_position",
                end="end_position",
                type="entity_type",
                value="entity_value",
            ),
            "split": {"by": "template_id", **SHARES},
        },
        (100, 300, None),
    ),
    "conll": Data(
        "ner",
        {
            "path": "ner/conll2003",
            "conll": PUBLISHED,
            "split": _files(train="train.txt", valid="valid.txt", test="test.txt"),
        },
        (*SIZES, 3000),
    ),
    "wnut": Data(
        "ner",
        {
            "path": "ner/wnut17",
            "conll": PUBLISHED,
            "split": _files(train="*train*", valid="*dev*", test="*test*"),
        },
        (1000, 3000),
    ),
    "weibo": Data(
        "ner",
        {
            "path": "ner/weibo",
            "conll": {**CHARACTERS, "characters": True},
            "split": _files(train="*train", valid="*dev", test="*test"),
        },
        (300, None),
        "zh",
    ),
    "msra": Data(
        "ner",
        {"path": "ner/msra/msra_test_bio.txt", "conll": CHARACTERS, "split": SHARES},
        (300, 1000),
        "zh",
    ),
    "tatoeba": Data(
        "translation",
        {
            "path": "translation/chinese_english.csv",
            "fields": _fields(input="chinese", target="english"),
            "split": {"test": 0.05, "valid": 0.05},
        },
        (1000, 3000),
        "zh",
    ),
}


def empty_project(options: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a params.yaml without blocks."""
    names = ("corpora", "backbones", "experiments", "studies", "lessons")
    return {**options, **{name: {} for name in names}}


def read(set_: Data, data: Path, options: Mapping[str, Any]) -> dict[str, list[Record]]:
    """The labelled records of a set by split, each shuffled by the seed.

    Runs the stages download and preprocess in the working folder.
    """
    corpus = {**set_.corpus, "task": set_.task, "path": str(data / set_.corpus["path"])}
    params = check({**empty_project(options), "corpora": {NAME: corpus}})
    for stage in (download, preprocess):
        stage.main(params, NAME)
    labelling, shuffle = tasks.get(set_.task).record, random.Random(options["seed"]).shuffle
    splits = {
        name: [*clean.read_labelled(clean.split_file(paths.CLEAN / NAME, name), labelling)]
        for name in (*clean.TRAINING_SPLITS, "test")
    }
    for members in splits.values():
        shuffle(members)
    return splits


def limit(splits: Splits, size: int | None, tests: int) -> Splits:
    """The first records of each split; validation has a fifth as many as training."""
    train, valid, test = (splits[name] for name in (*clean.TRAINING_SPLITS, "test"))
    train = train[:size]
    return {"train": train, "valid": valid[: len(train) // VALID], "test": test[:tests]}


def write(splits: Splits, task: str, folder: Path) -> None:
    """Write records as a user has them: a file for each split."""
    folder.mkdir()
    for name, members in splits.items():
        rows = (row for record in members for row in _rows(record, task))
        write_jsonl(folder / f"{name}.jsonl", rows)


def _rows(record: Record, task: str) -> list[dict[str, Any]]:
    if task == "ner":
        return [{"text": record.input, "spans": [span._asdict() for span in record.gold]}]
    if task == "translation":
        return [{"source": record.input, "target": target} for target in record.gold]
    return [{"text": record.input, "label": record.gold}]
