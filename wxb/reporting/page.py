"""The page of a study: one HTML file that holds everything it shows and asks the network nothing.

Numbers and choices are made here, their wording and looks in templates/study.html; jinja2 escapes
all text that comes from data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.metrics.ner import Judged
from wxb.metrics.spans import Finding, Outcome, compare
from wxb.params import Corpus, Params
from wxb.reporting import figures, published, tables
from wxb.reporting.figures import Curve, Line
from wxb.spans import Span

STAGES = dict(zip(("pretrain", "train", "evaluate"), figures.SERIES, strict=False))
EXAMPLES = 10  # records shown of each experiment
PLAIN = 160  # characters of text without a span that are shown whole
KEPT = 60  # of a longer one, at either end

ERRORS: dict[str, str] = {
    outcome: fill for outcome, fill in figures.OUTCOMES.items() if outcome != "correct"
}


class Study(NamedTuple):
    """All that a page tells, as the stages left it; a stage that left nothing has no key."""

    params: Params
    comparison: Mapping[str, Any]  # as wxb.metrics.ner.compare gives it, with title and sizes
    judged: Mapping[str, Sequence[Judged]]  # by experiment
    curves: Mapping[str, Mapping[str, Curve]]  # by experiment, then figure
    pretraining: Mapping[str, Mapping[str, Curve]]  # by backbone, then figure
    pretrained: Mapping[str, Mapping[str, float]]  # by backbone: figures on held-out texts
    costs: Mapping[str, Mapping[str, Any]]  # by stage, such as train@ner-encoder


class Piece(NamedTuple):
    """A stretch of a record's text, and what the spans over it turned out to be."""

    text: str
    outcome: Outcome | None  # of the first span over it
    labels: list[tuple[str, Outcome]]  # type and outcome of the spans that end here


class Example(NamedTuple):
    """A record with its gold spans and a system's spans marked in its text."""

    id: str
    gold: list[Piece]
    predicted: list[Piece]


def assemble(study: Study) -> str:
    """The page of a study as HTML."""
    environment = Environment(
        loader=PackageLoader("wxb.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        score="{:.3f}".format,
        count="{:,}".format,
        millions=lambda number: f"{number / 1e6:,.2f} M",
        duration=duration,
        words=figures.words,
    )
    comparison, params = study.comparison, study.params
    names = list(comparison["systems"])
    corpus = params.corpora[params.experiments[names[0]].corpus]
    settings = {name: _settings(params, name) for name in names}
    return environment.get_template("study.html").render(
        comparison=comparison,
        systems=comparison["systems"],
        params=params,
        answer=answer(comparison),
        verdicts=tables.verdicts(comparison),
        wall={name: _wall(study, name) for name in names},
        stages=_stages(study),
        chips=_chips(names),
        backbone_chips=_chips(study.pretraining),
        stage_colours=STAGES,
        outcomes=figures.OUTCOMES,
        errors=ERRORS,
        support=_support(comparison),
        examples={name: examples(study.judged[name]) for name in names},
        pretrained=study.pretrained,
        pretrained_figures=_keys(study.pretrained.values()),
        published=published,
        shared_types=[kind for kind in _support(comparison) if kind in _published_types()],
        origin=_origin(corpus),
        differing=_rows(settings, lambda values: len(set(values)) > 1),
        common=_rows(settings, lambda values: len(set(values)) == 1),
        figures={key: figures.plain(figure) for key, figure in _figures(study).items()},
        plotly=Markup(get_plotlyjs()),
    )


def answer(comparison: Mapping[str, Any]) -> str:
    """The study in one sentence: its two best experiments compared, or what the only one scores."""
    scores = {name: system["f1"] for name, system in comparison["systems"].items()}
    best, *others = sorted(scores, key=lambda name: -scores[name]["value"])
    if not others:
        score = scores[best]
        interval = f"{score['low']:.3f}–{score['high']:.3f}"
        return f"{best} reaches F1 {score['value']:.3f} (95% interval {interval})."
    sentences = zip(comparison["pairs"], tables.verdicts(comparison), strict=True)
    return next(said for pair, said in sentences if {pair["a"], pair["b"]} == {best, others[0]})


def examples(judged: Sequence[Judged], number: int = EXAMPLES) -> list[Example]:
    """Up to so many records: each kind of error in turn, in the records' order, then any others."""
    found = [compare(record.gold, record.predicted) for record in judged]
    kinds = [
        [row for row, findings in enumerate(found) if any(f.outcome == kind for f in findings)]
        for kind in ERRORS
    ]
    turns = [row for turn in zip_longest(*kinds) for row in turn if row is not None]
    chosen = list(dict.fromkeys([*turns, *range(len(judged))]))[:number]
    return [_example(judged[row], found[row]) for row in chosen]


def pieces(text: str, spans: Sequence[tuple[Span, Outcome]]) -> list[Piece]:
    """Cut a text at the edges of its spans, which may overlap; long gaps are shortened."""
    edges = sorted({0, len(text), *(edge for span, _ in spans for edge in span[:2])})
    cut = []
    for start, end in pairwise(edges):
        over = [(span, kind) for span, kind in spans if span.start <= start and end <= span.end]
        cut.append(
            Piece(
                text=text[start:end] if over else _shortened(text[start:end]),
                outcome=over[0][1] if over else None,
                labels=[(span.type, kind) for span, kind in over if span.end == end],
            )
        )
    return cut


def duration(seconds: float) -> str:
    """Seconds for people: 4.2 s, 3 min 05 s, 2 h 07 min."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _example(record: Judged, findings: Sequence[Finding]) -> Example:
    gold = [(f.gold, f.outcome) for f in findings if f.gold is not None]
    predicted = [(f.predicted, f.outcome) for f in findings if f.predicted is not None]
    return Example(record.id, pieces(record.text, gold), pieces(record.text, predicted))


def _shortened(text: str) -> str:
    return text if len(text) <= PLAIN else f"{text[:KEPT]} … {text[-KEPT:]}"


def _support(comparison: Mapping[str, Any]) -> dict[str, int]:
    """Gold spans by type, most first; every system judged the same ones."""
    system = next(iter(comparison["systems"].values()))
    rows = {kind: row["support"] for kind, row in system["by_type"].items() if row["support"]}
    return dict(sorted(rows.items(), key=lambda row: (-row[1], row[0])))


def _published_types() -> set[str]:
    return {kind for rows in published.by_type().values() for kind in rows}


def _figures(study: Study) -> dict[str, figures.go.Figure]:
    """Every figure of the page by the id of its place."""
    systems = study.comparison["systems"]
    support = _support(study.comparison)
    seconds = {
        name: {stage.split("@")[0]: study.costs[stage]["seconds"] for stage in stages}
        for name in systems
        if (stages := [s for s in _stages_of(study.params, name) if s in study.costs])
    }
    drawn = {
        "forest": figures.forest({name: system["f1"] for name, system in systems.items()}),
        "by-type": figures.by_type(
            {
                name: {kind: system["by_type"][kind]["f1"] for kind in support}
                for name, system in systems.items()
            },
            support,
        ),
        "errors": figures.stacked(
            {name: system["errors"] for name, system in systems.items()}, ERRORS, title="spans"
        ),
        "loss": figures.curves(_lines(study.curves, "loss", "valid_loss"), title="loss"),
        "valid-f1": figures.curves(_lines(study.curves, "valid_f1"), title="validation F1"),
        "pretraining-loss": figures.curves(
            _lines(study.pretraining, "loss", "valid_loss"), title="pretraining loss"
        ),
        "seconds": figures.stacked(seconds, STAGES, title="seconds"),
    }
    return {key: figure for key, figure in drawn.items() if figure.data and figure.data[0].x}


def _chips(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The character and the colour that stand for each name in figures."""
    return {
        name: (figures.SYMBOLS[figures.symbol(number)], figures.colour(number))
        for number, name in enumerate(names)
    }


def _lines(curves: Mapping[str, Mapping[str, Curve]], solid: str, dashed: str = "") -> list[Line]:
    return [
        Line(f"{name}, validation" if key == dashed else name, number, drawn[key], key == dashed)
        for number, (name, drawn) in enumerate(curves.items())
        for key in (solid, dashed)
        if key in drawn
    ]


def _stages_of(params: Params, name: str) -> list[str]:
    experiment = params.experiments[name]
    return [f"pretrain@{experiment.backbone}", f"train@{name}", f"evaluate@{name}"]


class _StageRow(NamedTuple):
    stage: str
    parameters: int | None  # that it could change; all of them, where it changes none
    cost: Mapping[str, Any] | None


def _stages(study: Study) -> list[_StageRow]:
    """The stages that took the time, with what they cost where that was measured."""
    sizes: dict[str, int | None] = {}
    for name, system in study.comparison["systems"].items():
        backbone = study.params.experiments[name].backbone
        pretrain, train, evaluate = _stages_of(study.params, name)
        trained = study.pretrained.get(backbone, {}).get("trainable_parameters")
        sizes[pretrain] = None if trained is None else int(trained)
        sizes[train] = system["trainable_parameters"]
        sizes[evaluate] = system["parameters"]
    return [_StageRow(stage, size, study.costs.get(stage)) for stage, size in sizes.items()]


class _Wall(NamedTuple):
    seconds: float
    devices: str


def _wall(study: Study, name: str) -> _Wall | None:
    """The time from pretraining to evaluation; None unless all of it was measured."""
    costs = [study.costs.get(stage) for stage in _stages_of(study.params, name)]
    measured = [cost for cost in costs if cost is not None]
    if len(measured) < len(costs):
        return None
    devices = dict.fromkeys(cost["device"] for cost in measured)
    return _Wall(sum(cost["seconds"] for cost in measured), ", then ".join(devices))


def _keys(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _origin(corpus: Corpus) -> str:
    """Where the records of a corpus come from, in words."""
    if corpus.generate:
        languages = ", ".join(corpus.generate.languages)
        return f"{corpus.generate.labelled:,} generated records ({languages})"
    return f"records of {corpus.hub.repository if corpus.hub else corpus.path}"


def _settings(params: Params, name: str) -> dict[str, str]:
    """The settings of an experiment and of its backbone, one line a knob."""
    experiment = params.experiments[name]
    settings = experiment.model_dump(exclude={"study", "backbone"})
    backbone = {"name": experiment.backbone, **params.backbones[experiment.backbone].model_dump()}
    return dict(_flat({**settings, "backbone": backbone}))


def _flat(block: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in block.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif value not in (None, {}):
            yield f"{prefix}{key}", str(value)


def _rows(
    settings: Mapping[str, Mapping[str, str]], wanted: Callable[[Sequence[str]], bool]
) -> dict[str, list[str]]:
    """Values by knob, in the order of the experiments, where the values are as wanted."""
    rows = {
        key: [values.get(key, "–") for values in settings.values()]
        for key in _keys(settings.values())
    }
    return {key: values for key, values in rows.items() if wanted(values)}
