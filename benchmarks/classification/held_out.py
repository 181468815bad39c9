"""Trains TF-IDF on the largest part of each class, and tests it on all other parts.

The parts are the values of a field, such as the subject of an article. A fifth of the records of
the largest parts are also for testing. Training records with the wording of a test record are left
out. Accuracies have no intervals, as there are few parts.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from texts import Classes, Fields, Seed, corpus_settings, tfidf_predictions

from wxb.core.errors import WxbError
from wxb.corpora import reading
from wxb.corpora.division import drop_duplicates
from wxb.corpora.records import Record
from wxb.project.reproduction import benchmarks
from wxb.tasks.classification.params import Corpus
from wxb.tasks.classification.reading import Reading
from wxb.tasks.classification.record.leakage import without_leakage

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

STRENGTH = 10.0  # C of the regression, as in `folds` of texts.py
TITLES = {
    "tfidf": "TF-IDF, names removed",
    "tfidf_raw": "TF-IDF, names kept",
    "nearest": "nearest text",
    "majority": "largest class",
}

Part = tuple[str, str]  # a class and a value of the field


@app.command()
def main(
    source: Annotated[Path, typer.Argument(help="folder of records with one class each")],
    by: Annotated[str, typer.Option(help="field whose values are held out")] = "subject",
    fields: Fields = "text",
    classes: Classes = [],  # noqa: B006
    seed: Seed = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Train on the largest part of each class, and print the accuracy on every part."""
    records = read(source, by, fields, classes, seed)
    train, tests = divide(records)
    if not tests or len({record.gold for record in train}) < 2:
        raise WxbError(f"{source}: too few records of two classes, {len(records)} in all")
    trained = {_part(record) for record in train}
    right = {name: labels == _gold(tests) for name, labels in predictions(train, tests).items()}
    rows = [
        _row((*part, part in trained), by, right, [_part(record) == part for record in tests])
        for part in sorted({*map(_part, tests)})
    ]
    for seen in (True, False):
        among = [(_part(record) in trained) == seen for record in tests]
        rows.append(_row(("all", "all", seen), by, right, among))
    data = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(source.iterdir())}
    benchmarks.report(rows, output, data=data, by=by, seed=seed, train=len(train))


def read(source: Path, by: str, fields: str, classes: Sequence[str], seed: int) -> list[Record]:
    """The distinct records of a folder, shuffled; their group is the value of the field `by`."""
    split = {"by": by, "test": 0.2, "valid": 0.1}  # only `by` is used
    corpus = Corpus.model_validate({**corpus_settings(source, fields, classes), "split": split})
    task, place = Reading(), Path()
    raw = reading.read(source, corpus, task)
    items = task.prepare(raw, corpus, folder=source, out=place, home=place, label="read")
    records = [item for item in items if isinstance(item, Record)]
    if not records:
        raise WxbError(f"{source}: no record has {by}, {fields} and a class")
    distinct, _ = drop_duplicates(records, task.wording)
    random.Random(seed).shuffle(distinct)
    return distinct


def divide(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Divide records into training and test records, as described above."""
    sizes = Counter(map(_part, records))
    largest = {max(sizes, key=lambda p: (p[0] == name, sizes[p])) for name in {p[0] for p in sizes}}
    known = [record for record in records if _part(record) in largest]
    tests = [
        *known[: len(known) // 5],
        *(record for record in records if _part(record) not in largest),
    ]
    wording = Reading().wording
    test_wordings = {wording(record) for record in tests}
    train = [r for r in known[len(known) // 5 :] if wording(r) not in test_wordings]
    return train, tests


def predictions(
    train: Sequence[Record], tests: Sequence[Record]
) -> dict[str, NDArray[Any] | Sequence[str]]:
    """The classes of test records by each system of the table."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    raw = [[record.input for record in records] for records in (train, tests)]
    clean = [[*map(without_leakage, texts)] for texts in raw]
    counts = CountVectorizer().fit(clean[0])
    train_rows, test_rows = (normalize(counts.transform(texts)) for texts in clean)
    gold = _gold(train)
    ((majority, _),) = Counter(gold.tolist()).most_common(1)
    return {
        "tfidf": np.array(tfidf_predictions(clean[0], gold, clean[1], STRENGTH)),
        "tfidf_raw": np.array(tfidf_predictions(raw[0], gold, raw[1], STRENGTH)),
        "nearest": gold[np.asarray((test_rows @ train_rows.T).argmax(axis=1)).ravel()],
        "majority": np.full(len(tests), majority),
    }


def _part(record: Record) -> Part:
    return record.gold, record.group


def _gold(records: Sequence[Record]) -> NDArray[Any]:
    return np.array([record.gold for record in records])


def _row(
    part: tuple[str, str, bool], by: str, right: Mapping[str, Any], tests: Sequence[bool]
) -> dict[str, Any]:
    """A row of the table: class, value and whether it is in training; accuracy on `tests`."""
    class_, value, seen = part
    scores = {TITLES[name]: round(float(hits[tests].mean()), 4) for name, hits in right.items()}
    names = {"class": class_, by: value, "in training": "yes" if seen else "no"}
    return {**names, "test articles": sum(tests), **scores}


if __name__ == "__main__":
    benchmarks.run(app)
