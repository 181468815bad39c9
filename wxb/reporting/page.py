"""The page of a study: one HTML file that holds everything it shows and asks the network nothing.

Numbers and choices are made in this package, their wording and looks in templates/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.params import Params
from wxb.reporting import costs, figures, grids, pairs, published, tables
from wxb.reporting.costs import Costs
from wxb.reporting.examples import examples
from wxb.reporting.figures import Curve, Line
from wxb.reporting.lead import lead
from wxb.reporting.rendering import render
from wxb.reporting.settings import origin, settings, wired
from wxb.tasks.ner.evaluation import Judged

STAGES = dict(zip(("pretrain", "train", "evaluate"), figures.SERIES, strict=False))
ERRORS: dict[str, str] = {
    outcome: fill for outcome, fill in figures.OUTCOMES.items() if outcome != "correct"
}
PANEL = 210  # pixels of a small figure
# What a task is watched by while it trains, and picks its best checkpoint by.
VALIDATION = {"valid_f1": "validation F1", "valid_accuracy": "validation accuracy"}


class Study(NamedTuple):
    """All that a page tells, as the stages left it; a stage that left nothing has no key."""

    params: Params
    comparison: Mapping[
        str, Any
    ]  # as wxb.tasks.ner.evaluation.compare gives it, with title and sizes
    judged: Mapping[str, Sequence[Judged]]  # by experiment
    curves: Mapping[str, Mapping[str, Curve]]  # by experiment, then figure
    pretraining: Mapping[str, Mapping[str, Curve]]  # by backbone, then figure
    pretrained: Mapping[str, Mapping[str, float]]  # by backbone: figures on held-out texts
    costs: Costs


def assemble(study: Study) -> str:
    """The page of a study as HTML."""
    comparison, params = study.comparison, study.params
    systems = comparison["systems"]
    names = list(systems)
    chips = figures.chips(names)
    backbones = costs.of_backbones(params, names, study.pretrained, study.costs)
    experiments = costs.of_experiments(systems, study.costs)
    drawn = {**_scores(comparison), **_prices(systems, backbones, experiments), **_curves(study)}
    return render(
        "study.html",
        {key: figure for key, figure in drawn.items() if _any(figure)},
        comparison=comparison,
        systems=systems,
        sets=tables.test_sets(comparison),
        recalls=tables.recalls(comparison),
        resampled=tables.resampled(comparison),
        verdicts={name: pairs.verdicts(found) for name, found in comparison["further"].items()},
        seconds=costs.of_training(comparison, study.costs),
        params=params,
        lead=lead(comparison, study.costs),
        wall={name: costs.wall(params, name, study.costs) for name in names},
        matrix=grids.matrix(comparison),
        too_few=pairs.too_few(comparison),
        alpha=pairs.ALPHA,
        experiments=experiments,
        backbones=backbones,
        wired=wired(params, [row.name for row in backbones]),
        types=grids.types(comparison),
        support=grids.support_of(comparison),
        examples={name: examples(study.judged[name]) for name in names},
        chips=chips,
        backbone_chips=figures.chips(study.pretraining),
        validation=VALIDATION,
        watched={
            key: {name: chip for name, chip in chips.items() if key in study.curves[name]}
            for key in VALIDATION
        },
        stage_colours=STAGES,
        outcomes=figures.OUTCOMES,
        errors=ERRORS,
        pretrained=study.pretrained,
        pretrained_figures=_keys(study.pretrained.values()),
        published=published,
        origin=origin(params.corpora[params.experiments[names[0]].corpus]),
        settings=settings(params, names),
    )


# Figures by the id of their place in the page.
_Figures = dict[str, figures.go.Figure]


def _scores(comparison: Mapping[str, Any]) -> _Figures:
    systems = comparison["systems"]
    return {
        "forest": figures.forest(
            {name: system["f1"] for name, system in systems.items()},
            {system.name: system.f1 for system in published.SYSTEMS},
        ),
        "errors": figures.stacked(
            {name: system["errors"] for name, system in systems.items()}, ERRORS, title="spans"
        ),
    }


def _prices(
    systems: Mapping[str, Any], backbones: Sequence[costs.Row], experiments: Sequence[costs.Row]
) -> _Figures:
    scores = {name: system["f1"] for name, system in systems.items()}
    trained = {name: system["trainable_parameters"] for name, system in systems.items()}
    spent = costs.seconds(experiments)
    training = {name: verbs["train"] for name, verbs in spent.items() if "train" in verbs}
    # A backbone may have the name of an experiment's file, but never its row of the figure.
    shared = {f"{name} (backbone)": verbs for name, verbs in costs.seconds(backbones).items()}
    return {
        "f1-seconds": figures.tradeoff(scores, training, title="seconds of training"),
        "f1-parameters": figures.tradeoff(scores, trained, title="trained parameters"),
        "seconds": figures.stacked({**shared, **spent}, STAGES, title="seconds"),
    }


def _curves(study: Study) -> _Figures:
    losses = {
        f"loss-{name}": figures.curves(
            _lines({name: drawn}, "loss", "valid_loss", first=number), title="loss", height=PANEL
        )
        for number, (name, drawn) in enumerate(study.curves.items())
    }
    validation = {
        key: figures.curves(_lines(study.curves, key), title=title)
        for key, title in VALIDATION.items()
    }
    return {
        **validation,
        **losses,
        "pretraining-loss": figures.curves(
            _lines(study.pretraining, "loss", "valid_loss"), title="pretraining loss"
        ),
    }


def _lines(
    curves: Mapping[str, Mapping[str, Curve]], solid: str, dashed: str = "", *, first: int = 0
) -> list[Line]:
    return [
        Line(f"{name}, validation" if key == dashed else name, number, drawn[key], key == dashed)
        for number, (name, drawn) in enumerate(curves.items(), start=first)
        for key in (solid, dashed)
        if key in drawn
    ]


def _any(figure: figures.go.Figure) -> bool:
    return any(trace.x for trace in figure.data)


def _keys(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))
