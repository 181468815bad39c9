"""Scores of entity recognisers, whatever they emit: one scorer for all, and their comparison.

A system's predictions are kept with the gold spans of the same records, so that everything said
about it can be computed from its folder alone.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.errors import WxbError
from wxb.files import read_jsonl, write_json, write_jsonl
from wxb.metrics.bootstrap import intervals, paired
from wxb.metrics.spans import CORRECT, GOLD, PREDICTED, breakdown, by_type, counts, prf
from wxb.spans import Span

DIGITS = 6  # of a published score
LEVEL = 0.95

PREDICTIONS, BY_TYPE, ERRORS = "predictions.jsonl", "by_type.csv", "errors.json"


class Judged(NamedTuple):
    """One test record with its gold spans and what a system found."""

    id: str
    text: str
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]
    scores: tuple[float, ...]  # of the predicted spans, in [0, 1]


def metrics(judged: Sequence[Judged], *, resamples: int, seed: int) -> dict[str, float]:
    """The flat figures of reports/metrics: scores, the interval of F1, support and predicted."""
    table = _counts(judged)
    scores = intervals(table, resamples=resamples, seed=seed, level=LEVEL)
    return {
        **{name: round(interval.value, DIGITS) for name, interval in scores.items()},
        "f1_low": round(scores["f1"].low, DIGITS),
        "f1_high": round(scores["f1"].high, DIGITS),
        "support": int(table[:, GOLD].sum()),
        "predicted": int(table[:, PREDICTED].sum()),
    }


def write(folder: Path, judged: Sequence[Judged]) -> None:
    """Write predictions, the table by type and the breakdown of errors to a new folder."""
    folder.mkdir(parents=True)
    write_jsonl(
        folder / PREDICTIONS,
        (
            {
                "id": record.id,
                "text": record.text,
                "gold": record.gold,
                "predicted": record.predicted,
                "scores": [round(score, 4) for score in record.scores],
            }
            for record in judged
        ),
    )
    gold, predicted = _columns(judged)
    with (folder / BY_TYPE).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["type", "precision", "recall", "f1", "support", "predicted"])
        for name, table in by_type(gold, predicted).items():
            sums = table.sum(axis=0)
            scores = (round(score, DIGITS) for score in prf(sums))
            rows.writerow([name, *scores, sums[GOLD], sums[PREDICTED]])
    write_json(folder / ERRORS, breakdown(gold, predicted))


def read(folder: Path) -> list[Judged]:
    """The predictions in a folder that `write` wrote."""
    return [
        Judged(
            id=row["id"],
            text=row["text"],
            gold=tuple(Span(*span) for span in row["gold"]),
            predicted=tuple(Span(*span) for span in row["predicted"]),
            scores=tuple(row["scores"]),
        )
        for row in read_jsonl(folder / PREDICTIONS)
    ]


def compare(
    systems: Mapping[str, Sequence[Judged]], *, resamples: int, seed: int
) -> dict[str, Any]:
    """Scores with intervals, errors and scores by type of each system; every pair tested.

    Raises WxbError when the systems did not judge the same records.
    """
    names = list(systems)
    for name in names[1:]:
        if _records(systems[name]) != _records(systems[names[0]]):
            raise WxbError(
                f"{name} and {names[0]} were scored on different records; evaluate both again"
            )
    tables = {name: _counts(judged) for name, judged in systems.items()}
    first = systems[names[0]]
    options = {"resamples": resamples, "seed": seed, "level": LEVEL}
    pairs = []
    for a, b in combinations(names, 2):
        difference = paired(tables[a], tables[b], **options)  # type: ignore[arg-type]
        pairs.append({"a": a, "b": b, "difference": _rounded(difference._asdict())})
    return {
        "documents": len(first),
        "spans": sum(len(record.gold) for record in first),
        "resamples": resamples,
        "seed": seed,
        "level": LEVEL,
        "systems": {
            name: {
                **{
                    metric: _rounded(interval._asdict())
                    for metric, interval in intervals(tables[name], **options).items()  # type: ignore[arg-type]
                },
                "correct": int(tables[name][:, CORRECT].sum()),
                "predicted": int(tables[name][:, PREDICTED].sum()),
                "errors": breakdown(*_columns(judged)),
                "by_type": {
                    kind: _type_row(table) for kind, table in by_type(*_columns(judged)).items()
                },
            }
            for name, judged in systems.items()
        },
        "pairs": pairs,
    }


def _type_row(table: NDArray[np.int64]) -> dict[str, float]:
    sums = table.sum(axis=0)
    precision, recall, f1 = prf(sums)
    scores = _rounded({"precision": precision, "recall": recall, "f1": f1})
    return {**scores, "support": int(sums[GOLD]), "predicted": int(sums[PREDICTED])}


def _columns(
    judged: Sequence[Judged],
) -> tuple[list[tuple[Span, ...]], list[tuple[Span, ...]]]:
    return [record.gold for record in judged], [record.predicted for record in judged]


def _counts(judged: Sequence[Judged]) -> NDArray[np.int64]:
    return counts(*_columns(judged))


def _records(judged: Sequence[Judged]) -> list[tuple[str, str, tuple[Span, ...]]]:
    return [(record.id, record.text, record.gold) for record in judged]


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in figures.items()}
