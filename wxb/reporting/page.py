"""The page of a study, and the index of all pages, as self-contained HTML files."""

import csv
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting import costs, tables
from wxb.reporting.about import about
from wxb.reporting.charts import figures
from wxb.reporting.charts.figures import Curve, Line
from wxb.reporting.charts.formatting import Cell, Table, origin, p_value, signed, words
from wxb.reporting.charts.pairs import (
    ALPHA,
    baselines,
    claim,
    corrected_pairs,
    headline,
    headline_scores,
    metrics,
    number_of_tests,
    pairs_by_names,
    test_sets,
    trained,
)
from wxb.reporting.charts.parts import Block, Charts, Fold, Page, Section, Study, render

PUBLISHED = Path(__file__).with_name("published")  # <study>.csv
LOSS, VALID_LOSS = "loss", "valid_loss"  # curves on training and on validation records
PANEL = 210  # pixels of a small chart
DEEP, PALE = 45, 12  # percent of colour of a difference that is significant, and that is not


def assemble(study: Study, task: Page) -> str:
    """The page of a study as HTML, with its experiments in the order of params.yaml.

    An order by scores would change with the machine.
    """
    comparison, sets = study.comparison, test_sets(study.comparison)
    return render(
        comparison["title"],
        claim(comparison),
        [
            _results(study, task),
            Section("noise", "Noise", [*_tests(comparison)]),
            *task.sections(study),
            _cost(study),
            _training(study, task),
            *published(study),
            _making(study),
        ],
        notes=[
            *(f"Check the data: {warning}." for warning in comparison.get("warnings", [])),
            *(f"On {name}: {claim(sets[name])}" for name in comparison["further"]),
        ],
        legend=study.chips,
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
            Fold("About this study", [*about(study, task.RULE)]),
        ],
    )


def _tests(comparison: Mapping[str, Any]) -> list[Block]:
    """All differences of each test set, and what significant means."""
    if not comparison["pairs"]:
        return ["The study has one experiment, so there are no differences to test."]
    return [
        f"Differences in {headline(comparison).title} of the row over the column; positive: the"
        f" row is better. Deep: significant, as the {comparison['level']:.0%} interval excludes 0"
        f" and p, corrected for {number_of_tests(comparison)} pairs by Holm's method, is at most"
        f" {ALPHA}. Pale: not significant. Intervals and p values are on hover.",
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
        depth = DEEP if pair.significant else PALE
        return Cell(
            signed(pair.value, metric),
            pair.value,
            shade=depth if pair.value > 0 else -depth,
            note=f"{a} over {b}: {low} to {high}, {p}, {pair.conclusion}",
        )

    rows = [[a, *(cell(a, b) for b in names[1:])] for a in names[:-1]]
    return Table(f"Differences of {metric.title}", ["", *names[1:]], rows)


def _cost(study: Study) -> Section:
    seconds = costs.training_seconds(study.comparison, study.costs)
    return Section(
        "cost",
        "Cost",
        [
            f"{costs.measured_text(study.costs)} Each time is from one run; stages restored from"
            " the cache have none. Experiments on a backbone share its pretraining.",
            costs.cost_table(study.params, study.systems, study.costs),
            Fold("Amount of training", [tables.training_table(study.comparison, seconds)]),
        ],
    )


def _training(study: Study, task: Page) -> Section:
    keys = dict.fromkeys(key for curves in study.curves.values() for key in curves)
    titles = {f"valid_{key}": metric.title for key, metric in metrics(study.comparison).items()}
    validation = {}
    for key in sorted({*keys} - {LOSS, VALID_LOSS}, key=lambda key: (key not in titles, key)):
        title = f"validation {titles.get(key, words(key.removeprefix('valid_')))}"
        validation[title] = figures.curves(_lines(study.curves, key), y_title=title)
    losses = {
        name: figures.curves(
            _lines({name: curves}, LOSS, VALID_LOSS, first=index), y_title="loss", height=PANEL
        )
        for index, (name, curves) in enumerate(study.curves.items())
        if LOSS in curves  # a baseline has none
    }
    pretraining = figures.curves(
        _lines(study.pretraining, LOSS, VALID_LOSS), y_title="pretraining loss"
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
                    "Losses of different objectives or tokenizers are not comparable.",
                ],
            ),
        ],
    )


def published(study: Study) -> list[Section]:
    """The published scores that a study of a demo reproduces, from PUBLISHED.

    Studies of other records have none.
    """
    path, params = PUBLISHED / f"{study.comparison['study']}.csv", study.params
    corpus = params.experiments[trained(study.comparison)[0]].corpus
    if not path.exists() or not params.corpora[corpus].path.startswith("demos/"):
        return []
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    note = (
        "From the series github.com/AUSTIN2526/learning-wx-b-in-30-days, measured on other records,"
        " with other models and another scorer: do not compare them with the scores above."
    )
    table = Table("Published scores", header, rows)
    return [Section("published", "Published scores", [note, table])]


def _making(study: Study) -> Section:
    comparison, params = study.comparison, study.params
    names = trained(comparison)
    differing = settings(params, names)
    sets = tables.test_sets(comparison).items()
    seeds = ", ".join(map(str, comparison["seeds"]))
    return Section(
        "making",
        "How it was made",
        [
            f"Data: {origin(params.corpora[params.experiments[names[0]].corpus])}."
            f" {' '.join(tables.test_set_line(*item) for item in sets)}"
            f" Score: {comparison['signature']}. Seeds: {seeds}.",
            f"Run: dvc repro report@{comparison['study']}, or dvc repro evaluate@EXPERIMENT.",
            *([Fold(differing.caption, [differing])] if differing.rows else []),
        ],
    )


def settings(params: Params, names: Sequence[str]) -> Table:
    """The settings of experiments and of their backbones that differ.

    A setting differs if it has two values among the experiments that have it.
    """
    columns = [_settings_of(params, name) for name in names]
    rows = [
        [key, *(column.get(key, "–") for column in columns)]
        for key in dict.fromkeys(key for column in columns for key in column)
        if len({column[key] for column in columns if key in column}) > 1
    ]
    return Table("Settings that differ", ["setting", *names], rows)


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


def _lines(
    curves: Mapping[str, Mapping[str, Curve]], solid: str, dashed: str = "", *, first: int = 0
) -> list[Line]:
    """A solid and a dashed line for each name that has such curves; `first` is its series."""
    return [
        Line(
            f"{name}, validation" if key == dashed else name,
            series,
            by_key[key],
            key == dashed,
        )
        for series, (name, by_key) in enumerate(curves.items(), start=first)
        for key in (solid, dashed)
        if key in by_key
    ]


def write_index(params: Params) -> Path:
    """Write reports/index.html for all existing pages, and return its path.

    Raises WxbError if there is no page yet.
    """
    link = Markup('<a href="{}.html">{}</a>')
    sections = []
    for title, blocks in (("Studies", params.studies), ("Lessons", params.lessons)):
        rows = [
            [link.format(quote(name), block.title), read_description(paths.page(name))]
            for name, block in blocks.items()
            if paths.page(name).exists()
        ]
        if rows:
            table = Table(title, ["question", "answer"], rows)
            sections.append(Section(title.lower(), title, [table]))
    if not sections:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    with publish(paths.INDEX) as (draft,):
        page = render("Reports", "Results of the studies and lessons of this project.", sections)
        draft.write_text(page, encoding="utf-8")
    return paths.INDEX


def read_description(page: Path) -> str:
    """The description in the head of a page; empty if it has none."""
    head, _, _ = page.read_text(encoding="utf-8").partition("</head>")
    match = re.search('<meta name="description" content="([^"]*)">', head)
    return html.unescape(match[1]) if match else ""
