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
from wxb.core.errors import WxbError, counted
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting import costs, figures, formatting, pairs, parts, tables
from wxb.reporting.figures import Line
from wxb.reporting.formatting import Cell, Table, duration, p_value, rounded, signed, variant_text
from wxb.reporting.parts import Block, Charts, Curves, Fold, Page, Section, Study, render

PUBLISHED = Path(__file__).with_name("published")  # <study>.csv
LOSS, VALID_LOSS = "loss", "valid_loss"  # curves on training and on validation records
DEPTH = 45  # percent of colour of a significant difference


def assemble(study: Study, task: Page) -> str:
    """The page of a study as HTML: the answer to its question, the scores, then all else."""
    comparison = study.comparison
    answer, *sentences = pairs.conclusions(comparison)
    best = []
    for test_set, results in pairs.test_sets(comparison).items():
        name, metric = pairs.ranked(results)[0], pairs.headline(results)
        score = formatting.with_interval(results["systems"][name][metric.key], metric)
        best.append(f"{name} on {test_set}, {metric.title} {score}")
    sections = [_results(study, task, sentences), *task.sections(study), *languages(study)]
    sections += [_cost(study), _training(study, task), *published_scores(study)]
    warnings = [f"Check the data: {warning}." for warning in comparison.get("warnings", [])]
    notes = [f"Best scores: {'; '.join(best)}.", *warnings, *alignment_changes(study)]
    title, footer = comparison["title"], f"Study {comparison['study']}."
    return render(title, answer, sections, notes=notes, legend=study.chips, footer=footer)


def _results(study: Study, task: Page, sentences: Sequence[str]) -> Section:
    """The chart, ranking, notes and `sentences`; in folds, the task, differences and commands."""
    comparison, sets = study.comparison, pairs.test_sets(study.comparison)
    metric = pairs.headline(comparison)
    scores = {name: pairs.headline_scores(results) for name, results in sets.items()}
    order = {name: study.chips[name] for name in pairs.ranked(comparison)}
    chart = figures.forest(metric, scores, order)
    legend = figures.chips(sets, sets, figures.HOLLOW) if len(sets) > 1 else {}
    notes = [
        data_text(study),
        f"{comparison['level']:.0%} intervals: {tables.jackknife_text(comparison)}.",
        "Lower is better." if metric.lower_is_better else "",
        tables.reading_notes(comparison),
    ]
    blocks: list[Block] = [Charts({metric.title: chart}, legend), ranking(study)]
    blocks += [text for text in (" ".join(filter(None, notes)), " ".join(sentences)) if text]
    blocks += [f"On {name}: {pairs.conclusion(sets[name])}" for name in comparison["further"]]
    methods = [f"{name}: {_method_text(study, name)}" for name in study.systems]
    name = study.params.experiments[pairs.trained_names(comparison)[0]].task
    description = [f"Task: {name}. {task.RULE}", f"Experiments: {'; '.join(methods)}."]
    blocks.append(Fold("Task", description))
    if comparison["pairs"]:
        blocks.append(Fold("Differences", _difference_blocks(comparison)))
    blocks += [Fold("Run", _reproduction(study)), downloads_and_docs(study)]
    return Section("results", "Results", blocks)


def _method_text(study: Study, name: str) -> str:
    """`tagging on encoder (bert), LoRA`; of a baseline, `baseline without training, VARIANT`."""
    experiment = study.params.experiments[name]
    if experiment.is_baseline:
        return f"baseline without training, {variant_text(experiment)}"
    backbone = study.params.root_backbone(experiment)
    kind = f" ({backbone.architecture.model_type})" if backbone.architecture else ""
    where = "" if backbone.is_tokenizer_only else f" on {experiment.backbone}{kind}"
    return ", ".join(filter(None, [f"{experiment.method}{where}", variant_text(experiment)]))


def data_text(study: Study) -> str:
    """`Records: train 800, ...`, with the field that a further test set holds out; may be empty."""
    name = study.params.experiments[pairs.trained_names(study.comparison)[0]].corpus
    corpus, records = study.params.corpora[name], study.comparison.get("records", {})
    fields = {k: f" (each {by} is new)" for k, (by, _) in corpus.split.held_out_fields.items()}
    counts = [f"{k} {number:,}{fields.get(k, '')}" for k, number in records.items()]
    kind = "Synthetic records" if corpus.generate else "Records"
    return f"{kind}: {', '.join(counts)}." if counts else ""


def alignment_changes(study: Study) -> Iterator[str]:
    """A sentence on training gold that alignment changed or lost, if any: counts by experiment."""
    changes = []
    for name, counts in study.alignments.items():
        rest = {formatting.words(k): n for k, n in counts.items() if k not in ("gold", "kept")}
        others = [f"{status} {number:,}" for status, number in rest.items() if number]
        if others:
            changes.append(f"{name} {', '.join(others)} of {counts['gold']:,}")
    if changes:
        yield f"Training gold that alignment changed: {'; '.join(changes)}."


def ranking(study: Study) -> Table:
    """A row for each system, best first: tier on `test`, 4 or 5 scores at most, training time."""
    comparison = study.comparison
    table = tables.score_table(comparison, with_counts=False)
    seconds = costs.training_seconds(comparison, study.costs)
    shown = [i for i, title in enumerate(table.header) if not title.endswith(": tier")][:6]
    rows = dict(zip(comparison["systems"], table.rows, strict=True))
    times = {name: Cell(duration(time), time) for name, time in seconds.items()}
    return Table(
        table.caption,
        [*(table.header[i] for i in shown), "training"],
        [[*(rows[n][i] for i in shown), times.get(n, "–")] for n in pairs.ranked(comparison)],
    )


def downloads_and_docs(study: Study) -> Markup:
    """Links to download all scores as CSV and JSON, links to docs, and the command `wxb card`."""
    comparison = study.comparison
    name = next(n for n in pairs.ranked(comparison) if n in pairs.trained_names(comparison))
    link = Markup('<a download="{}.{}" href="data:text/plain;base64,{}">{}</a>')
    files = [
        link.format(comparison["study"], suffix, base64.b64encode(text.encode()).decode(), suffix)
        for suffix, text in (("csv", tables.as_csv(comparison)), ("json", json.dumps(comparison)))
    ]
    return Markup(
        "Download all scores: {}, {}. Read about <a href='../docs/tasks/{}.md'>the task</a>,"
        " <a href='../docs/method.md'>how scores are computed</a> and <a"
        " href='../docs/glossary.md'>terms</a>. <code>wxb card {}</code> prints its model card."
    ).format(*files, study.params.experiments[name].task, name)


def _difference_blocks(comparison: Mapping[str, Any]) -> list[Block]:
    """What significant means, all differences on `test`, and in folds those on other test sets."""
    tests = counted(pairs.number_of_tests(comparison), "pairs")
    return [
        "Differences of the row over the column; positive: the row is better. Coloured: significant"
        f", as the {comparison['level']:.0%} interval excludes 0 and p, corrected by Holm's method"
        f" for {tests}, is at most {pairs.ALPHA}. Tests are paired by record or group, so a"
        " smaller difference can be significant if steadier. Intervals and p values are on hover.",
        differences(comparison),
        *(Fold(f"On {name}", [differences(o)]) for name, o in comparison["further"].items()),
    ]


def differences(comparison: Mapping[str, Any]) -> Table:
    """The triangle of leads of trained experiments over later ones in the study, if tested."""
    leads = pairs.pairs_by_names(pairs.tested_pairs(comparison))
    metric = pairs.headline(comparison)
    names = pairs.trained_names(comparison)

    def cell(a: str, b: str) -> str:
        if (pair := leads.get((a, b))) is None or names.index(a) > names.index(b):
            return ""
        low, high = (signed(bound, metric) for bound in (pair.low, pair.high))
        p = f"p {p_value(pair.p_value)}, corrected {p_value(pair.corrected)}"
        return Cell(
            signed(pair.value, metric),
            pair.value,
            shade=pair.significant * (DEPTH if pair.value > 0 else -DEPTH),
            note=f"{a} over {b}: {low} to {high}, {p}, {pair.conclusion}",
        )

    rows = [[a, *(cell(a, b) for b in names[1:])] for a in names[:-1]]
    return Table(f"Differences of {metric.title}", ["", *names[1:]], rows)


def languages(study: Study) -> list[Section]:
    """The first seed's headline scores and errors by language; none without two languages."""
    metric, everything = pairs.headline(study.comparison), study.predictions.values()
    rows, errors = [], []
    for language in sorted({row.language for rows in everything for row in rows}):
        members = [[row for row in rows if row.language == language] for rows in everything]
        scores = [study.scorer.rounded_scores(part)[metric.key] for part in members]
        cells = [Cell(rounded(score, metric), score) for score in scores]
        rows.append([language or "unknown", f"{len(members[0]):,}", *cells])
        if all("errors" in system for system in study.systems.values()):
            details = map(study.scorer.details, members)
            systems = dict(zip(study.predictions, details, strict=True))
            title = f"Errors, {language or 'unknown'}"
            errors.append(Fold(title, [parts.error_table(title, systems)]))
    title = f"{metric.title} by language"
    table = Table(title, ["language", "records", *study.predictions], rows)
    return [Section("languages", title, [table, *errors])] if len(rows) > 1 else []


def _cost(study: Study) -> Section:
    """The section of costs, also if none was measured."""
    note = (
        f"{costs.measured_on(study.costs)} Each time is that of the last run, of all seeds; a"
        " training that was resumed counts from there. Stages restored from the cache have none."
        " Experiments on a backbone share its pretraining."
    )
    table = costs.cost_table(study.params, study.systems, study.costs)
    return Section("cost", "Cost", [note, table])


def _training(study: Study, task: Page) -> Section:
    """Validation scores by update; in a fold, losses of experiments and backbones on a log axis."""
    scores = pairs.metrics(study.comparison)
    titles = {f"valid_{key}": metric.title for key, metric in scores.items()}
    keys = {key for curves in study.curves.values() for key in curves if key.startswith("valid_")}
    keys -= {VALID_LOSS}
    legend = {name: study.chips[name] for name in study.curves}
    drawn = {name: chip for name, chip in legend.items() if keys & study.curves[name].keys()}
    validation = {}
    for key in sorted(keys, key=lambda key: (key not in titles, key)):
        title = f"validation {titles.get(key, formatting.words(key.removeprefix('valid_')))}"
        validation[title] = figures.curves(_lines(study.curves, [key]), y_title=title)
    note = "Dashed: validation. Losses of different objectives or tokenizers are not comparable."
    losses = []
    for kind, named in {"experiment": study.curves, "backbone": study.pretraining}.items():
        chips = legend if kind == "experiment" else figures.chips(named)
        chart = figures.curves(_lines(named), y_title="loss").update_yaxes(type="log")
        with_loss = {name: chip for name, chip in chips.items() if LOSS in named[name]}
        losses.append(Charts({f"Loss of each {kind}": chart}, with_loss))
    folded = Fold("Losses", [note, *losses])
    charts = Charts(validation, drawn)
    return Section("training", "Training", [task.VALIDATION_NOTE, charts, folded])


def published_scores(study: Study) -> list[Section]:
    """The published scores of the series for the study of a demo; none for other records."""
    path, params = PUBLISHED / f"{study.comparison['study']}.csv", study.params
    corpus = params.experiments[pairs.trained_names(study.comparison)[0]].corpus
    if not path.exists() or not params.corpora[corpus].path.startswith("demos/"):
        return []
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    note = (
        "From the series github.com/AUSTIN2526/learning-wx-b-in-30-days, measured on other records,"
        " with other models and another scorer: do not compare them with the scores above."
    )
    return [Section("published", "Published scores", [note, Table("Published", header, rows)])]


def _reproduction(study: Study) -> list[Block]:
    """The data, score, seeds and commands of a study; in a fold, the settings that differ."""
    comparison, params = study.comparison, study.params
    names = pairs.trained_names(comparison)
    differing = differing_settings(params, names)
    sets = pairs.test_sets(comparison).items()
    seeds = ", ".join(map(str, comparison["seeds"]))
    return [
        f"Data: {formatting.origin(params.corpora[params.experiments[names[0]].corpus])}."
        f" {' '.join(tables.test_set_line(*item) for item in sets)}"
        f" Score: {comparison['signature']}. Seeds: {seeds}. Errors, types"
        " and examples are of the first seed.",
        f"Run: dvc repro report@{comparison['study']}, or dvc repro evaluate@EXPERIMENT.",
        *([Fold(differing.caption, [differing])] if differing.rows else []),
    ]


def differing_settings(params: Params, names: Sequence[str]) -> Table:
    """Settings, also of backbones, that differ between experiments, except null and empty ones."""
    columns = []
    for name in names:
        experiment = params.experiments[name]
        block = experiment.model_dump(mode="json", exclude={"study", "backbone"})
        backbone = params.root_backbone(experiment).model_dump(mode="json")
        values = flatten({**block, "backbone": {"name": experiment.backbone, **backbone}}).items()
        columns.append({key: formatting.setting(v) for key, v in values if v not in (None, {}, [])})
    rows = [
        [key, *(column.get(key, "–") for column in columns)]
        for key in dict.fromkeys(key for column in columns for key in column)
        if len({column[key] for column in columns if key in column}) > 1
    ]
    return Table("Settings that differ", ["setting", *names], rows)


def _lines(curves: Curves, keys: Sequence[str] = (LOSS, VALID_LOSS)) -> list[Line]:
    """A line for each name and key with such a curve; VALID_LOSS is dashed."""
    return [
        Line(name, series, by_key[key], key == VALID_LOSS)
        for series, (name, by_key) in enumerate(curves.items())
        for key in keys
        if key in by_key
    ]


def write_index(params: Params) -> Path:
    """Write reports/index.html, and return its path. Raises WxbError if no block has a page."""
    link = Markup('<a href="{}.html">{}</a>')
    description = re.compile('<meta name="description" content="([^"]*)">')
    sections = []
    for title, blocks in (("Studies", params.studies), ("Lessons", params.lessons)):
        rows = []
        for name, block in blocks.items():
            if (path := paths.page(name)).exists():
                match = description.search(path.read_text("utf-8"))
                answer = html.unescape(match[1]) if match else ""
                rows.append([link.format(quote(name), block.title), answer])
        if rows:
            table = Table(title, ["question", "answer"], rows)
            sections.append(Section(title.lower(), title, [table]))
    if not sections:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    with publish(paths.INDEX) as (draft,):
        page = render("Reports", "Results of the studies and lessons of this project.", sections)
        draft.write_text(page, encoding="utf-8")
    return paths.INDEX
