"""The page of a study, as one self-contained HTML file.

This package computes the numbers; templates/ has their wording and layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from wxb.reporting import costs, tables
from wxb.reporting.about import about
from wxb.reporting.charts import figures, pairs
from wxb.reporting.charts.baselines import trained
from wxb.reporting.charts.figures import Curve, Line
from wxb.reporting.charts.formatting import origin, words
from wxb.reporting.charts.losses import smoothed
from wxb.reporting.charts.parts import Page, Part, Study
from wxb.reporting.charts.rendering import render
from wxb.reporting.charts.scores import headline, metrics
from wxb.reporting.lead import lead
from wxb.reporting.settings import settings, structured

TRAIN_LOSS = "loss"  # the curve on training records
VALID, VALID_LOSS = "valid_", "valid_loss"  # curves on validation records
STAGES = dict(zip(("pretrain", "train", "evaluate"), figures.SERIES, strict=False))
PANEL = 210  # pixels of a small figure
# The sections of every study by their ids, with their titles in the list of sections.
SECTIONS = {
    "results": "Results",
    "noise": "Noise",
    "cost": "Cost",
    "training": "Training",
    "caveats": "Caveats",
    "making": "How it was made",
}


def assemble(study: Study, task: Page) -> str:
    """The page of a study as HTML, with its experiments in the order of params.yaml.

    An order by scores would change with the machine.
    """
    comparison, params = study.comparison, study.params
    systems = comparison["systems"]
    names = list(systems)
    backbone_costs = costs.backbone_rows(params, names, study.pretrained, study.costs)
    experiment_costs = costs.experiment_rows(systems, study.costs)
    parts = {part.id: part for part in task.parts(study)}
    metric, validation = headline(comparison), _validation_titles(study)
    scores = {name: system[metric.key] for name, system in systems.items()}
    charts = {
        "forest": figures.forest(
            metric,
            scores,
            task.PUBLISHED_SCORES,
            study.baselines,
        ),
        **_cost_charts(study, backbone_costs, experiment_costs),
        **_curve_charts(study, validation),
        **{id_: chart for part in parts.values() for id_, chart in part.charts.items()},
    }
    return render(
        "wxb.reporting",
        "study.html",
        charts,
        parts=parts,
        sections=_section_titles(parts),
        task=task,
        headline=metric,
        metrics=metrics(comparison),
        comparison=comparison,
        systems=systems,
        test_sets=tables.test_sets(comparison),
        tiers=pairs.tiers(comparison),
        table_caption=tables.caption(comparison),
        test_set_lines=[
            tables.test_set_line(*item) for item in tables.test_sets(comparison).items()
        ],
        test_set_sizes={
            name: tables.test_set_size(results)
            for name, results in tables.test_sets(comparison).items()
        },
        shares=tables.shares(comparison),
        uncertainty=tables.uncertainty(comparison),
        beyond_noise=pairs.beyond_noise(comparison),
        test_verdicts=pairs.leads(comparison),
        verdicts={name: pairs.verdicts(other) for name, other in comparison["further"].items()},
        training_seconds=costs.training_seconds(comparison, study.costs),
        lead=lead(comparison, study.costs, task),
        about=about(study, task),
        task_name=params.experiments[names[0]].task,
        wall_times={name: costs.wall_time(params, name, study.costs) for name in names},
        machines=costs.machines([*backbone_costs, *experiment_costs]),
        dates=costs.dates([*backbone_costs, *experiment_costs]),
        matrix=pairs.matrix(comparison),
        groups_warning=pairs.groups_warning(comparison),
        alpha=pairs.ALPHA,
        experiment_costs=experiment_costs,
        backbone_costs=backbone_costs,
        structured=structured(params, [row.name for row in backbone_costs]),
        chips=study.chips,
        backbone_chips=figures.chips(study.pretraining),
        validation_titles=validation,
        validation_chips={
            key: {name: chip for name, chip in study.chips.items() if key in study.curves[name]}
            for key in validation
        },
        stage_colours=STAGES,
        backbone_metrics=study.pretrained,
        backbone_metric_keys=list(
            dict.fromkeys(key for row in study.pretrained.values() for key in row)
        ),
        origin=origin(params.corpora[params.experiments[names[0]].corpus]),
        settings=settings(params, trained(comparison)),
    )


# By the id of their element in the page.
_Figures = dict[str, figures.go.Figure]


def _section_titles(parts: Mapping[str, Part]) -> dict[str, str]:
    """The titles of all sections by their ids, in the order of the page."""
    titles: dict[str, str] = {}
    for section, title in SECTIONS.items():
        titles[section] = title
        titles |= {id_: part.title for id_, part in parts.items() if part.place == section}
    return titles


def _cost_charts(
    study: Study,
    backbone_costs: Sequence[costs.CostRow],
    experiment_costs: Sequence[costs.CostRow],
) -> _Figures:
    metric, systems = headline(study.comparison), study.comparison["systems"]
    scores = {name: system[metric.key] for name, system in systems.items()}
    parameters = {name: system["trainable_parameters"] for name, system in systems.items()}
    spent = costs.seconds(experiment_costs)
    training = {name: verbs["train"] for name, verbs in spent.items() if "train" in verbs}
    # A backbone may have the name of an experiment; its row must not.
    pretraining = {
        f"{name} (backbone)": verbs for name, verbs in costs.seconds(backbone_costs).items()
    }
    tradeoff = partial(figures.tradeoff, metric, scores, grey=study.baselines)
    return {
        f"{metric.key}-seconds": tradeoff(training, x_title="seconds of training"),
        f"{metric.key}-parameters": tradeoff(parameters, x_title="trained parameters"),
        "seconds": figures.stacked({**pretraining, **spent}, STAGES, x_title="seconds"),
    }


def _curve_charts(study: Study, validation: Mapping[str, str]) -> _Figures:
    losses = {
        f"loss-{name}": figures.curves(
            _lines({name: curves}, TRAIN_LOSS, VALID_LOSS, first=index),
            y_title="loss",
            height=PANEL,
        )
        for index, (name, curves) in enumerate(study.curves.items())
        if TRAIN_LOSS in curves  # a baseline has none
    }
    return {
        **{
            key: figures.curves(_lines(study.curves, key), y_title=title)
            for key, title in validation.items()
        },
        **losses,
        "pretraining-loss": figures.curves(
            _lines(study.pretraining, TRAIN_LOSS, VALID_LOSS), y_title="pretraining loss"
        ),
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
            smoothed(by_key[key]) if key == TRAIN_LOSS else by_key[key],
            key == dashed,
        )
        for series, (name, by_key) in enumerate(curves.items(), start=first)
        for key in (solid, dashed)
        if key in by_key
    ]
