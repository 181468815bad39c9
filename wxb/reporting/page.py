"""The page of a study, as one self-contained HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting import costs, tables
from wxb.reporting.about import about, commit
from wxb.reporting.charts import figures
from wxb.reporting.charts.figures import Curve, Line
from wxb.reporting.charts.formatting import (
    Cell,
    Table,
    amount,
    origin,
    p_value,
    rounded,
    signed,
    words,
)
from wxb.reporting.charts.pairs import (
    ALPHA,
    claim,
    corrected_pairs,
    pairs_by_names,
)
from wxb.reporting.charts.parts import Block, Charts, Fold, Page, Section, Study
from wxb.reporting.charts.rendering import render
from wxb.reporting.charts.scores import (
    baselines,
    headline,
    headline_scores,
    metrics,
    trained,
)

TRAIN_LOSS = "loss"  # the curve on training records
VALID, VALID_LOSS = "valid_", "valid_loss"  # curves on validation records
PANEL = 210  # pixels of a small chart
DEEP, PALE = 45, 12  # percent of colour of a difference beyond and within noise


def assemble(study: Study, task: Page) -> str:
    """The page of a study as HTML, with its experiments in the order of params.yaml.

    An order by scores would change with the machine.
    """
    comparison = study.comparison
    return render(
        comparison["title"],
        claim(comparison),
        [
            _results(study, task),
            Section("noise", "Noise", [*_tests(comparison)]),
            *task.sections(study),
            _cost(study),
            _training(study, task),
            *task.published(comparison["study"]),
            _making(study),
        ],
        notes=[f"On {name}: {claim(other)}" for name, other in comparison["further"].items()],
        chips=study.chips,
        footer=f"Study {comparison['study']}.",
    )


def _results(study: Study, task: Page) -> Section:
    comparison = study.comparison
    metric = headline(comparison)
    further = {name: headline_scores(other) for name, other in comparison["further"].items()}
    notes = [
        f"{comparison['level']:.0%} intervals: {tables.uncertainty(comparison)}.",
        "Lower is better." if metric.lower_is_better else "",
        f"Hollow markers: {', '.join(further)}." if further else "",
        "Grey: baselines, which need no training and are in no test."
        if baselines(comparison)
        else "",
        tables.caption(comparison),
    ]
    chart = figures.forest(metric, headline_scores(comparison), further, baselines(comparison))
    shares = tables.shares_table(comparison)
    return Section(
        "results",
        "Results",
        [
            Charts({metric.title: chart}),
            " ".join(filter(None, notes)),
            tables.score_table(comparison, counts=False),
            *([Fold(shares.caption, [shares])] if shares.rows else []),
            Fold("About this study", [*about(study, task)]),
        ],
    )


def _tests(comparison: Mapping[str, Any]) -> list[Block]:
    """All differences of each test set, and what beyond noise means."""
    if not comparison["pairs"]:
        return ["The study has one experiment, so there are no differences to test."]
    return [
        f"Differences in {headline(comparison).title} of the row over the column; positive: the"
        f" row is better. Deep: beyond noise, as the {comparison['level']:.0%} interval excludes 0"
        f" and p, corrected for {len(comparison['pairs'])} pairs by Holm's method, is at most"
        f" {ALPHA}. Pale: within noise. Intervals and p values are on hover.",
        differences(comparison),
        *(Fold(f"On {name}", [differences(o)]) for name, o in comparison["further"].items()),
    ]


def differences(comparison: Mapping[str, Any]) -> Table:
    """The triangle of leads of each trained experiment over those after it."""
    leads, metric = pairs_by_names(corrected_pairs(comparison)), headline(comparison)
    names = trained(comparison)

    def cell(a: str, b: str) -> str:
        if (pair := leads.get((a, b))) is None or names.index(a) > names.index(b):
            return ""
        low, high = (signed(bound, metric) for bound in (pair.low, pair.high))
        p = f"p {p_value(pair.p_value)}, corrected {p_value(pair.corrected)}"
        depth = DEEP if pair.beyond_noise else PALE
        return Cell(
            signed(pair.value, metric),
            pair.value,
            shade=depth if pair.value > 0 else -depth,
            note=f"{a} over {b}: {low} to {high}, {p}, {pair.finding}",
        )

    rows = [[a, *(cell(a, b) for b in names[1:])] for a in names[:-1]]
    return Table(f"Differences of {metric.title}", ["", *names[1:]], rows)


def _cost(study: Study) -> Section:
    metric = headline(study.comparison)
    chart = figures.tradeoff(
        metric,
        headline_scores(study.comparison),
        costs.training_seconds(study.comparison, study.costs),
        x_title="seconds of training",
        grey=baselines(study.comparison),
    )
    note = (
        "Each time is from one run; stages restored from the cache have none. Experiments on a"
        " backbone share its pretraining."
    )
    seconds = costs.training_seconds(study.comparison, study.costs)
    return Section(
        "cost",
        "Cost",
        [
            f"{costs.measured_text(study.costs)} {note}",
            Charts({f"{metric.title} by seconds of training": chart}, study.chips),
            costs.cost_table(study.params, study.systems, study.costs),
            Fold("Amount of training", [tables.training_table(study.comparison, seconds)]),
        ],
    )


def _training(study: Study, task: Page) -> Section:
    titles = _validation_titles(study)
    validation = {
        title: figures.curves(_lines(study.curves, key), y_title=title)
        for key, title in titles.items()
    }
    losses = {
        name: figures.curves(
            _lines({name: curves}, TRAIN_LOSS, VALID_LOSS, first=index),
            y_title="loss",
            height=PANEL,
        )
        for index, (name, curves) in enumerate(study.curves.items())
        if TRAIN_LOSS in curves  # a baseline has none
    }
    pretraining = figures.curves(
        _lines(study.pretraining, TRAIN_LOSS, VALID_LOSS), y_title="pretraining loss"
    )
    return Section(
        "training",
        "Training",
        [
            task.VALIDATION_NOTE,
            Charts(validation, {name: study.chips[name] for name in study.curves}),
            Fold(
                "Loss of each experiment",
                ["Dashed: validation records. Each chart has its own scale.", Charts(losses)],
            ),
            Fold(
                "Pretraining",
                [
                    Charts(
                        {"Loss of each backbone": pretraining}, figures.chips(study.pretraining)
                    ),
                    _backbones(study.pretrained),
                    "The curve is the loss of the whole objective on training texts, the table"
                    " that of tokens on held-out texts. Losses of different objectives or"
                    " tokenizers are not comparable.",
                ],
            ),
        ],
    )


def _backbones(pretrained: Mapping[str, Mapping[str, float]]) -> Table:
    """The metrics of each backbone on held-out texts."""
    keys = dict.fromkeys(key for row in pretrained.values() for key in row)

    def cell(key: str, row: Mapping[str, float]) -> str:
        if key not in row:
            return "–"
        text = amount(row[key]) if key.endswith("parameters") else rounded(row[key])
        return Cell(text, row[key])

    rows = [[name, *(cell(key, row) for key in keys)] for name, row in pretrained.items()]
    return Table("Backbones on held-out texts", ["backbone", *map(words, keys)], rows)


def _making(study: Study) -> Section:
    comparison, params = study.comparison, study.params
    names = trained(comparison)
    differing, common = settings(params, names)
    sets = tables.test_sets(comparison).items()
    state = commit()
    seeds = ", ".join(map(str, comparison["seeds"]))
    return Section(
        "making",
        "How it was made",
        [
            f"Data: {origin(params.corpora[params.experiments[names[0]].corpus])}."
            f" {' '.join(tables.test_set_line(*item) for item in sets)}"
            f" Score: {comparison['signature']}. Seeds: {seeds}."
            f"{f' Commit {state}.' if state else ''}",
            f"Run: dvc repro report@{comparison['study']}, or dvc repro evaluate@EXPERIMENT.",
            *([Fold(differing.caption, [differing])] if differing.rows else []),
            Fold(common.caption, [common]),
        ],
    )


def settings(params: Params, names: Sequence[str]) -> tuple[Table, Table]:
    """The settings of experiments and of their backbones: those that differ, and the others.

    A setting differs if it has two values among the experiments that have it.
    """
    columns = [_settings_of(params, name) for name in names]
    keys = dict.fromkeys(key for column in columns for key in column)
    values = {key: [column.get(key, "–") for column in columns] for key in keys}
    differing = [key for key in keys if len({*values[key]} - {"–"}) > 1]
    common = [[key, *({*values[key]} - {"–"})] for key in keys if key not in differing]
    return (
        Table("Settings that differ", ["setting", *names], [[k, *values[k]] for k in differing]),
        Table("Settings in common", ["setting", "value"], common),
    )


def _settings_of(params: Params, name: str) -> dict[str, str]:
    experiment = params.experiments[name]
    block = experiment.model_dump(mode="json", exclude={"study", "backbone"})
    backbone = params.backbone_of(experiment).model_dump(mode="json")
    values = flatten({**block, "backbone": {"name": experiment.backbone, **backbone}})
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in values.items()
        if value not in (None, {}, [])
    }


def _validation_titles(study: Study) -> dict[str, str]:
    """The titles of the validation curves except losses; metrics of the test come first."""
    titles = {f"{VALID}{key}": metric.title for key, metric in metrics(study.comparison).items()}
    keys = {key for curves in study.curves.values() for key in curves if key.startswith(VALID)}
    keys -= {VALID_LOSS}
    known = [key for key in titles if key in keys]
    return {
        key: f"validation {titles.get(key, words(key.removeprefix(VALID)))}"
        for key in [*known, *sorted(keys - {*known})]
    }


def _lines(
    curves: Mapping[str, Mapping[str, Curve]], solid: str, dashed: str = "", *, first: int = 0
) -> list[Line]:
    """A solid and a dashed line for each name that has such curves; `first` is its series."""
    return [
        Line(
            f"{name}, validation" if key == dashed else name,
            series,
            figures.smoothed(by_key[key]) if key == TRAIN_LOSS else by_key[key],
            key == dashed,
        )
        for series, (name, by_key) in enumerate(curves.items(), start=first)
        for key in (solid, dashed)
        if key in by_key
    ]
