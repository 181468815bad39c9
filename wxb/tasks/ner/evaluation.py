"""Scores of entity recognisers, whatever they emit: one scorer for all, and their comparison.

A system's predictions are kept with the gold spans of the same records, so that everything said
about it can be computed from its folder alone. Where it was trained with several seeds there is a
run of each: scores are means over runs, errors and scores by type those of the first.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain, combinations
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.errors import WxbError
from wxb.files import read_jsonl, write_json, write_jsonl
from wxb.metrics import LEVEL, TEST
from wxb.metrics.bootstrap import by_group, intervals, paired
from wxb.params.experiments import SEED
from wxb.tasks.ner.metrics import CORRECT, GOLD, PREDICTED, breakdown, by_type, counts, prf
from wxb.tasks.ner.spans import Span

if TYPE_CHECKING:
    from wxb.corpora.records import Record

DIGITS = 6  # of a published score

PREDICTIONS, BY_TYPE, ERRORS = "predictions.jsonl", "by_type.csv", "errors.json"


class Judged(NamedTuple):
    """One test record with its gold spans and what a system found."""

    id: str
    text: str
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]
    scores: tuple[float, ...]  # of the predicted spans, in [0, 1]
    group: str = ""  # records of one group are resampled together; empty: a group of its own
    seen: tuple[bool, ...] = ()  # for each gold span, whether training has it; empty: not known


Run = Sequence[Judged]  # the test records with what the model of one seed found


def mentions(records: Iterable[Record]) -> set[tuple[str, str]]:
    """The gold mentions of records, as text and type."""
    return {
        (record.text[span.start : span.end], span.type)
        for record in records
        for span in record.spans or ()
    }


def judge(
    record: Record, found: Iterable[tuple[Span, float]], known: Set[tuple[str, str]]
) -> Judged:
    """A test record with the spans and scores found; `known` are the `mentions` of training."""
    gold = record.spans or ()
    spans, scores = zip(*found, strict=True) if (found := list(found)) else ((), ())
    seen = tuple((record.text[span.start : span.end], span.type) in known for span in gold)
    group = "" if record.group == record.text else record.group
    return Judged(record.id, record.text, gold, spans, scores, group, seen)


def metrics(runs: Sequence[Run], *, resamples: int, seed: int) -> dict[str, float]:
    """The flat figures of reports/metrics: means over runs, and how many spans there are a run.

    F1 has its interval, and with several runs its standard deviation over them; recall is also told
    for the mentions that training has and those that it has not, as far as known.
    """
    scores = intervals(_table(runs), resamples=resamples, seed=seed, level=LEVEL)
    told = _counted(runs)
    spread = {"f1_sd": round(stdev(told.f1), DIGITS)} if len(runs) > 1 else {}
    return {
        **{name: round(interval.value, DIGITS) for name, interval in scores.items()},
        "f1_low": round(scores["f1"].low, DIGITS),
        "f1_high": round(scores["f1"].high, DIGITS),
        **spread,
        **told.recalls,
        "support": told.gold,
        "predicted": told.predicted,
    }


class _Counted(NamedTuple):
    """What is counted of the runs of a system; numbers of spans are means over runs."""

    gold: int
    correct: int
    predicted: int
    recalls: dict[str, float]  # of mentions that training has, and has not; and how many it has
    f1: list[float]  # of each run


def _counted(runs: Sequence[Run]) -> _Counted:
    sums = _table(runs).sum(axis=0)  # (runs, 3)
    means = np.rint(sums.mean(axis=0)).astype(int).tolist()
    return _Counted(
        means[GOLD], means[CORRECT], means[PREDICTED], _recalls(runs), prf(sums)[2].tolist()
    )


def _recalls(runs: Sequence[Run]) -> dict[str, float]:
    counts = {True: [0, 0], False: [0, 0]}  # by whether training has the mention: found, gold
    for record in chain.from_iterable(runs):
        for span, seen in zip(record.gold, record.seen, strict=bool(record.seen)):
            counts[seen][0] += span in record.predicted
            counts[seen][1] += 1
    recalls = {
        name: round(counts[seen][0] / counts[seen][1], DIGITS)
        for name, seen in (("recall_seen", True), ("recall_unseen", False))
        if counts[seen][1]
    }
    return {**recalls, "support_seen": counts[True][1] // len(runs)} if recalls else {}


def save(folder: Path, judged: Mapping[str, Mapping[str, Run]]) -> None:
    """Write the runs of each test set to a new folder; `load` reads them again.

    Runs are by their place in the folder of their set, the first on top (""). TEST, which comes
    first, lies on top of the folder, other sets below it.
    """
    for name, runs in judged.items():
        for place, run in runs.items():
            write(folder / ("" if name == TEST else name) / place, run)


def load(folder: Path) -> dict[str, dict[str, Run]]:
    """What was given to `save`: the runs of TEST first, then of the other sets by their names."""
    folders = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(SEED))
    return {TEST: _runs(folder), **{path.name: _runs(path) for path in folders}}


def _runs(folder: Path) -> dict[str, Run]:
    others = {path.name: read(path) for path in folder.glob(f"{SEED}*")}
    return {"": read(folder), **others}


def write(folder: Path, judged: Run) -> None:
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
                "group": record.group,
                "seen": record.seen,
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
            group=row["group"],
            seen=tuple(row["seen"]),
        )
        for row in read_jsonl(folder / PREDICTIONS)
    ]


def compare(systems: Mapping[str, Sequence[Run]], *, resamples: int, seed: int) -> dict[str, Any]:
    """Scores with intervals, errors and scores by type of each system; every pair tested.

    A system has a run for each seed that it was trained with. Raises WxbError when not all runs
    judged the same records.
    """
    names = list(systems)
    first = systems[names[0]][0]
    for name, runs in systems.items():
        if any(_records(run) != _records(first) for run in runs):
            raise WxbError(
                f"{name} and {names[0]} were scored on different records; evaluate both again"
            )
    tables = {name: _table(runs) for name, runs in systems.items()}
    options = {"resamples": resamples, "seed": seed, "level": LEVEL}
    pairs = []
    for a, b in combinations(names, 2):
        difference = paired(tables[a], tables[b], **options)  # type: ignore[arg-type]
        pairs.append({"a": a, "b": b, "difference": _rounded(difference._asdict())})
    return {
        "documents": len(first),
        "groups": len(tables[names[0]]),
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
                **_told(runs),
            }
            for name, runs in systems.items()
        },
        "pairs": pairs,
    }


def _told(runs: Sequence[Run]) -> dict[str, Any]:
    """What is counted of a system, with its scores by type and kinds of errors."""
    counted, first = _counted(runs), _columns(runs[0])
    return {
        "f1_by_run": [round(f1, DIGITS) for f1 in counted.f1],
        "correct": counted.correct,
        "predicted": counted.predicted,
        **counted.recalls,
        "errors": breakdown(*first),
        "by_type": {kind: _type_row(table) for kind, table in by_type(*first).items()},
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


def _table(runs: Sequence[Run]) -> NDArray[np.int64]:
    """Counts of each group and run: (groups, runs, 3)."""
    table = np.stack([counts(*_columns(run)) for run in runs], axis=1)
    # Ids and groups could have the same names.
    return by_group(table, [f"+{r.group}" if r.group else f"-{r.id}" for r in runs[0]])


def _records(judged: Run) -> list[tuple[str, str, tuple[Span, ...]]]:
    return [(record.id, record.text, record.gold) for record in judged]


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in figures.items()}
