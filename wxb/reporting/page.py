"""The page of a study, and the index of all pages, as self-contained HTML files."""

import base64
import csv
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting import costs, formatting, tables
from wxb.reporting.charts import figures, pairs
from wxb.reporting.charts.figures import Curve, Line
from wxb.reporting.charts.parts import Block, Charts, Fold, Page, Section, Study, render
from wxb.reporting.formatting import Cell, Table, duration, p_value, rounded, signed, tuning_text

PUBLISHED = Path(__file__).with_name("published")  # <study>.csv
LOSS, VALID_LOSS = "loss", "valid_loss"  # curves on training and on validation records
DEEP, PALE = 45, 12  # percent of colour of a difference that is significant, and that is not


def assemble(study: Study, task: Page) -> str:
    """The page of a study as HTML: the answer to its question, the scores, then all else."""
    comparison = study.comparison
    answer, *rest = pairs.conclusions(comparison)
    return render(
        comparison["title"],
        answer,
        [
            _results(study, task, rest),
            *task.sections(study),
            *languages(study),
            _cost(study),
            _training(study, task),
            *published(study),
        ],
        notes=[f"Check the data: {warning}." for warning in comparison.get("warnings", [])],
        legend=study.chips,
        footer=f"Study {comparison['study']}.",
    )


def _results(study: Study, task: Page, rest: Sequence[str]) -> Section:
    comparison, sets = study.comparison, pairs.test_sets(study.comparison)
    metric = pairs.headline(comparison)
    scores = {name: pairs.headline_scores(results) for name, results in sets.items()}
    order = {name: study.chips[name] for name in pairs.ranked(comparison)}
    chart = figures.forest(metric, scores, order)
    legend = figures.chips(sets, sets, figures.HOLLOW) if len(sets) > 1 else {}
    notes = [
        f"{comparison['level']:.0%} intervals: {tables.uncertainty(comparison)}.",
        "Lower is better." if metric.lower_is_better else "",
        tables.caption(comparison),
    ]
    return Section(
        "results",
        "Results",
        [
            Charts({metric.title: chart}, legend),
            ranking(study),
            " ".join(filter(None, notes)),
            *filter(None, [" ".join(rest)]),
            *(f"On {name}: {pairs.claim(sets[name])}" for name in comparison["further"]),
            Fold("Task", [*about(study, task.RULE)]),
            Fold("Noise", _tests(comparison)),
            Fold("Run", _making(study)),
            links(study),
        ],
    )


def about(study: Study, rule: str) -> Iterator[str]:
    """Paragraphs on the task with its `rule` of scoring, and on the experiments."""
    names = [*study.systems]
    yield f"Task: {study.params.experiments[names[0]].task}. {rule}"
    yield f"Experiments: {'; '.join(f'{name}: {_line(study, name)}' for name in names)}."


def _line(study: Study, name: str) -> str:
    experiment = study.params.experiments[name]
    if experiment.is_baseline:
        return f"baseline without training, {tuning_text(experiment)}"
    backbone = study.params.backbone_of(experiment)
    kind = f" ({backbone.architecture.model_type})" if backbone.architecture else ""
    where = "" if backbone.is_tokenizer_only else f" on {experiment.backbone}{kind}"
    return ", ".join(filter(None, [f"{experiment.method}{where}", tuning_text(experiment)]))


def ranking(study: Study) -> Table:
    """A row for each system by its score, with seven columns at most; tiers are of `test`."""
    comparison = study.comparison
    table = tables.score_table(comparison, counts=False)
    seconds = costs.training_seconds(comparison, study.costs)
    shown = [i for i, title in enumerate(table.header) if not title.endswith(": tier")][:6]
    rows = dict(zip(comparison["systems"], table.rows, strict=True))
    times = {name: Cell(duration(time), time) for name, time in seconds.items()}
    return Table(
        table.caption,
        [*(table.header[i] for i in shown), "training"],
        [[*(rows[n][i] for i in shown), times.get(n, "–")] for n in pairs.ranked(comparison)],
    )


def links(study: Study) -> Markup:
    """Links to download the scores, and to the documentation."""
    comparison = study.comparison
    name = next(n for n in pairs.ranked(comparison) if n in pairs.trained(comparison))
    link = Markup('<a download="{}.{}" href="data:text/plain;base64,{}">{}</a>')
    files = [
        link.format(comparison["study"], suffix, base64.b64encode(text.encode()).decode(), suffix)
        for suffix, text in (("csv", tables.as_csv(comparison)), ("json", json.dumps(comparison)))
    ]
    return Markup(
        "Download all scores: {}, {}. Read about <a href='../docs/tasks/{}.md'>the task</a> and"
        " <a href='../docs/method.md'>how scores are computed</a>. <code>wxb card {}</code> prints"
        " its model card."
    ).format(*files, study.params.experiments[name].task, name)


def _tests(comparison: Mapping[str, Any]) -> list[Block]:
    """All differences of each test set, and what significant means."""
    if not comparison["pairs"]:
        return ["The study has one experiment, so there are no differences to test."]
    return [
        "Differences of the row over the column; positive: the row is better. Deep: significant,"
        f" as the {comparison['level']:.0%} interval excludes 0 and p, corrected by Holm's method"
        f" for {pairs.number_of_tests(comparison)} pairs, is at most {pairs.ALPHA}. Pale: not"
        " significant. Intervals and p values are on hover.",
        differences(comparison),
        *(Fold(f"On {name}", [differences(o)]) for name, o in comparison["further"].items()),
    ]


def differences(comparison: Mapping[str, Any]) -> Table:
    """The triangle of leads of each trained experiment over those after it."""
    leads = pairs.pairs_by_names(pairs.corrected_pairs(comparison))
    metric = pairs.headline(comparison)
    names = pairs.trained(comparison)

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


def languages(study: Study) -> list[Section]:
    """The headline score of each experiment by language; none without two languages."""
    metric, everything = study.scorer.headline, study.predictions.values()
    rows = []
    for language in sorted({row.language for rows in everything for row in rows}):
        members = [[row for row in rows if row.language == language] for rows in everything]
        scores = [study.scorer.rounded_scores(part)[metric.key] for part in members]
        cells = [Cell(rounded(score, metric), score) for score in scores]
        rows.append([language or "unknown", f"{len(members[0]):,}", *cells])
    title = f"{metric.title} by language"
    table = Table(title, ["language", "records", *study.predictions], rows)
    return [Section("languages", title, [table])] if len(rows) > 1 else []


def _cost(study: Study) -> Section:
    note = (
        f"{costs.measured_text(study.costs)} Each time is from one run; stages restored from the"
        " cache have none. Experiments on a backbone share its pretraining."
    )
    table = costs.cost_table(study.params, study.systems, study.costs)
    return Section("cost", "Cost", [note, table])


def _training(study: Study, task: Page) -> Section:
    scores = pairs.metrics(study.comparison)
    titles = {f"valid_{key}": metric.title for key, metric in scores.items()}
    keys = {key for curves in study.curves.values() for key in curves if key.startswith("valid_")}
    legend = {name: study.chips[name] for name in study.curves}
    validation = {}
    for key in sorted(keys - {VALID_LOSS}, key=lambda key: (key not in titles, key)):
        title = f"validation {titles.get(key, formatting.words(key.removeprefix('valid_')))}"
        validation[title] = figures.curves(_lines(study.curves, [key]), y_title=title)
    note = (
        "Dashed: validation records. Losses of different objectives or tokenizers are not"
        " comparable."
    )
    losses = [
        Charts({f"Loss of each {kind}": figures.curves(_lines(named), y_title="loss")}, chips)
        for kind, named, chips in (
            ("experiment", study.curves, legend),
            ("backbone", study.pretraining, figures.chips(study.pretraining)),
        )
    ]
    folded = Fold("Losses", [note, *losses])
    return Section(
        "training", "Training", [task.VALIDATION_NOTE, Charts(validation, legend), folded]
    )


def published(study: Study) -> list[Section]:
    """The published scores that a study of a demo reproduces, from PUBLISHED.

    Studies of other records have none.
    """
    path, params = PUBLISHED / f"{study.comparison['study']}.csv", study.params
    corpus = params.experiments[pairs.trained(study.comparison)[0]].corpus
    if not path.exists() or not params.corpora[corpus].path.startswith("demos/"):
        return []
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    note = (
        "From the series github.com/AUSTIN2526/learning-wx-b-in-30-days, measured on other records,"
        " with other models and another scorer: do not compare them with the scores above."
    )
    return [Section("published", "Published scores", [note, Table("Published", header, rows)])]


def _making(study: Study) -> list[Block]:
    comparison, params = study.comparison, study.params
    names = pairs.trained(comparison)
    differing = settings(params, names)
    sets = pairs.test_sets(comparison).items()
    seeds = ", ".join(map(str, comparison["seeds"]))
    return [
        f"Data: {formatting.origin(params.corpora[params.experiments[names[0]].corpus])}."
        f" {' '.join(tables.test_set_line(*item) for item in sets)}"
        f" Score: {comparison['signature']}. Seeds: {seeds}.",
        f"Run: dvc repro report@{comparison['study']}, or dvc repro evaluate@EXPERIMENT.",
        *([Fold(differing.caption, [differing])] if differing.rows else []),
    ]


def settings(params: Params, names: Sequence[str]) -> Table:
    """The settings of experiments and of their backbones that differ.

    A setting differs if it has two values among the experiments that have it.
    """
    columns = []
    for name in names:
        experiment = params.experiments[name]
        block = experiment.model_dump(mode="json", exclude={"study", "backbone"})
        backbone = params.backbone_of(experiment).model_dump(mode="json")
        values = flatten({**block, "backbone": {"name": experiment.backbone, **backbone}}).items()
        columns.append({key: formatting.value(v) for key, v in values if v not in (None, {}, [])})
    rows = [
        [key, *(column.get(key, "–") for column in columns)]
        for key in dict.fromkeys(key for column in columns for key in column)
        if len({column[key] for column in columns if key in column}) > 1
    ]
    return Table("Settings that differ", ["setting", *names], rows)


def _lines(
    curves: Mapping[str, Mapping[str, Curve]], keys: Sequence[str] = (LOSS, VALID_LOSS)
) -> list[Line]:
    """A line for each name and key with such a curve; VALID_LOSS is dashed."""
    return [
        Line(name, series, by_key[key], key == VALID_LOSS)
        for series, (name, by_key) in enumerate(curves.items())
        for key in keys
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
    match = re.search('<meta name="description" content="([^"]*)">', page.read_text("utf-8"))
    return html.unescape(match[1]) if match else ""
