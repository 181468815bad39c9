"""The page of a study: one HTML file that holds everything it shows and asks the network nothing.

Numbers and choices are made in this package, their wording and looks in templates/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wxb.reporting import costs, tables
from wxb.reporting.charts import figures, pairs
from wxb.reporting.charts.figures import Curve, Line
from wxb.reporting.charts.formatting import origin, words
from wxb.reporting.charts.losses import evened
from wxb.reporting.charts.parts import Page, Part, Study
from wxb.reporting.charts.rendering import render
from wxb.reporting.charts.scores import headline, metrics
from wxb.reporting.lead import lead
from wxb.reporting.settings import settings, structured

TRAINED = "loss"  # the curve on training records
VALID, LOSS = "valid_", "valid_loss"  # curves on validation records
STAGES = dict(zip(("pretrain", "train", "evaluate"), figures.SERIES, strict=False))
PANEL = 210  # pixels of a small figure
# The parts that every study has, by their ids, with their titles in the list of sections.
OWN = {
    "results": "Results",
    "noise": "Noise",
    "cost": "Cost",
    "training": "Training",
    "making": "How it was made",
}


def assemble(study: Study, task: Page) -> str:
    """The page of a study of a task as HTML, its systems by their scores, the best first."""
    listed = list(study.comparison["systems"])
    study = _ranked(study)
    comparison, params = study.comparison, study.params
    systems = comparison["systems"]
    names = list(systems)
    chips = figures.chips(names)
    backbones = costs.of_backbones(params, names, study.pretrained, study.costs)
    experiments = costs.of_experiments(systems, study.costs)
    parts = {part.id: part for part in task.parts(study)}
    metric, validation = headline(comparison), _validation(study)
    scores = {name: system[metric.key] for name, system in systems.items()}
    charts = {
        "forest": figures.forest(metric, scores, task.PUBLISHED),
        **_prices(comparison, backbones, experiments),
        **_curves(study, validation),
        **{id_: chart for part in parts.values() for id_, chart in part.charts.items()},
    }
    return render(
        "wxb.reporting",
        "study.html",
        charts,
        parts=parts,
        sections=_sections(parts),
        task=task,
        headline=metric,
        metrics=metrics(comparison),
        comparison=comparison,
        systems=systems,
        sets=tables.test_sets(comparison),
        shares=tables.shares(comparison),
        resampled=tables.resampled(comparison),
        verdicts={name: pairs.verdicts(found) for name, found in comparison["further"].items()},
        seconds=costs.of_training(comparison, study.costs),
        params=params,
        lead=lead(comparison, study.costs, task),
        wall={name: costs.wall(params, name, study.costs) for name in names},
        machines=costs.machines([*backbones, *experiments]),
        days=costs.days([*backbones, *experiments]),
        listed=listed,
        matrix=pairs.matrix(comparison),
        too_few=pairs.too_few(comparison),
        alpha=pairs.ALPHA,
        experiments=experiments,
        backbones=backbones,
        structured=structured(params, [row.name for row in backbones]),
        chips=chips,
        backbone_chips=figures.chips(study.pretraining),
        validation=validation,
        watched={
            key: {name: chip for name, chip in chips.items() if key in study.curves[name]}
            for key in validation
        },
        stage_colours=STAGES,
        pretrained=study.pretrained,
        pretrained_figures=_keys(study.pretrained.values()),
        origin=origin(params.corpora[params.experiments[names[0]].corpus]),
        settings=settings(params, names),
    )


def _ranked(study: Study) -> Study:
    """The same, its systems in the order of their scores."""
    order = pairs.ranking(pairs.results(study.comparison)) or [*study.comparison["systems"]]

    def ranked(rows: Mapping[str, Any]) -> dict[str, Any]:
        return {name: rows[name] for name in order}

    def of(comparison: Mapping[str, Any]) -> dict[str, Any]:
        return {**comparison, "systems": ranked(comparison["systems"])}

    further = {name: of(found) for name, found in study.comparison["further"].items()}
    return study._replace(
        comparison={**of(study.comparison), "further": further},
        judged=ranked(study.judged),
        curves=ranked(study.curves),
    )


# Figures by the id of their place in the page.
_Figures = dict[str, figures.go.Figure]


def _sections(parts: Mapping[str, Part]) -> dict[str, str]:
    """The titles of all parts by their ids, in the order of the page."""
    after = {
        place: {id_: part.title for id_, part in parts.items() if part.place == place}
        for place in OWN
    }
    return {
        id_: title for place in OWN for id_, title in {place: OWN[place], **after[place]}.items()
    }


def _prices(
    comparison: Mapping[str, Any], backbones: Sequence[costs.Row], experiments: Sequence[costs.Row]
) -> _Figures:
    metric, systems = headline(comparison), comparison["systems"]
    scores = {name: system[metric.key] for name, system in systems.items()}
    trained = {name: system["trainable_parameters"] for name, system in systems.items()}
    spent = costs.seconds(experiments)
    training = {name: verbs["train"] for name, verbs in spent.items() if "train" in verbs}
    # A backbone may have the name of an experiment's file, but never its row of the figure.
    shared = {f"{name} (backbone)": verbs for name, verbs in costs.seconds(backbones).items()}
    drawn = {
        "seconds": figures.tradeoff(metric, scores, training, title="seconds of training"),
        "parameters": figures.tradeoff(metric, scores, trained, title="trained parameters"),
    }
    return {
        **{f"{metric.key}-{price}": figure for price, figure in drawn.items()},
        "seconds": figures.stacked({**shared, **spent}, STAGES, title="seconds"),
    }


def _curves(study: Study, validation: Mapping[str, str]) -> _Figures:
    losses = {
        f"loss-{name}": figures.curves(
            _lines({name: drawn}, TRAINED, LOSS, first=number), title="loss", height=PANEL
        )
        for number, (name, drawn) in enumerate(study.curves.items())
    }
    watched = {
        key: figures.curves(_lines(study.curves, key), title=title)
        for key, title in validation.items()
    }
    return {
        **watched,
        **losses,
        "pretraining-loss": figures.curves(
            _lines(study.pretraining, TRAINED, LOSS), title="pretraining loss"
        ),
    }


def _validation(study: Study) -> dict[str, str]:
    """The titles of the curves, but losses, on validation records: first those of test scores."""
    titles = {f"{VALID}{key}": metric.title for key, metric in metrics(study.comparison).items()}
    drawn = {key for curves in study.curves.values() for key in curves if key.startswith(VALID)}
    drawn -= {LOSS}
    known = [key for key in titles if key in drawn]
    return {
        key: f"validation {titles.get(key, words(key.removeprefix(VALID)))}"
        for key in [*known, *sorted(drawn - {*known})]
    }


def _lines(
    curves: Mapping[str, Mapping[str, Curve]], solid: str, dashed: str = "", *, first: int = 0
) -> list[Line]:
    return [
        Line(
            f"{name}, validation" if key == dashed else name,
            number,
            evened(drawn[key]) if key == TRAINED else drawn[key],
            key == dashed,
        )
        for number, (name, drawn) in enumerate(curves.items(), start=first)
        for key in (solid, dashed)
        if key in drawn
    ]


def _keys(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))
