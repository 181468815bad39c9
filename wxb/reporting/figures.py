"""The plotly figures of a page, from plain data.

Figures have no legend, background or text colour: the page has legends, and its CSS follows the
reader's light or dark scheme. Names from data are escaped, as plotly's labels allow HTML.
"""

import html
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wxb.metrics import Metric
from wxb.reporting.formatting import rounded, with_interval

# At least 3:1 against white and near-black; far apart also for colour-blind readers; no reds.
SERIES = (
    *("#5d52d9", "#eb6913", "#1fa661", "#987cfd", "#1b726a"),
    *("#a05512", "#629caf", "#8564aa", "#649b04", "#a563d3"),
)
ERRORS = ("#c52337", "#d668c7", "#de7474", "#a63899", "#ad6487")
OTHERS = "#7d7f87"  # baselines, borders and what is correct
# Plotly's names, the characters that look like them, and hollow ones but for the first.
SYMBOLS = (
    *("circle", "diamond", "square", "triangle-up"),
    *("triangle-down", "star", "cross", "triangle-right"),
)
FILLED, HOLLOW = "●◆■▲▼★✚►", "●◇□△▽☆✛▷"

ROW = 25  # pixels
OFFSET = 0.32  # rows between the markers of two test sets
FRAME = 56  # axis and its title
LABEL, LETTER = 14, 7  # pixels of a row label of a matrix, and of a letter of a column label

Curve = Sequence[tuple[float, float]]  # such as (update, value)
Floats = NDArray[np.float64]
# `value`, `low` and `high` by test set, then experiment.
Scores = Mapping[str, Mapping[str, Mapping[str, float]]]


class Chip(NamedTuple):
    """The character and the colour of a name in legends."""

    symbol: str
    colour: str


class Line(NamedTuple):
    """A line of `curves`; those of a `series` share a colour. `notes`, of points, are on hover."""

    name: str
    series: int
    points: Curve
    dashed: bool = False
    notes: Sequence[str] | None = None


def forest(metric: Metric, scores: Scores, colours: Mapping[str, Chip]) -> go.Figure:
    """Forest plot of scores and intervals: a row by name of `colours`, a marker by test set.

    The first row is on top. Unless lower is better, scores far below the best are arrows for the
    first test set, and are left out for others.
    """
    figure = _empty_figure(height=FRAME + ROW * len(colours))
    start = None if metric.lower_is_better else _axis_start(scores)
    for index, (test_set, results) in enumerate(scores.items()):
        for row, (name, chip) in enumerate(colours.items()):
            score = results[name]
            below = start is not None and score["value"] < start
            figure.add_scatter(
                x=[start if below else score["value"]],
                y=[row + OFFSET * (index - (len(scores) - 1) / 2)],
                error_x={
                    "array": [score["high"] - score["value"]],
                    "arrayminus": [score["value"] - score["low"]],
                    **{"color": chip.colour, "thickness": 1.5, "width": 3, "visible": not below},
                },
                mode="text" if below else "markers",
                text=f"◂ {rounded(score['value'], metric)}" if below and not index else "",
                textposition="middle right",
                marker={
                    "symbol": symbol(index) + "-open" * (index > 0),
                    **{"color": chip.colour, "size": 8, "line": {"width": 1.5}},
                },
                hovertemplate=f"{escape_label(name)} on {escape_label(test_set)}<br>{metric.title}"
                f" {with_interval(score, metric)}<extra></extra>",
            )
    better = " (lower is better)" if metric.lower_is_better else ""
    figure.update_xaxes(title=metric.title + better, autorangeoptions={"clipmin": start})
    labels = {"tickvals": [*range(len(colours))], "ticktext": [*map(escape_label, colours)]}
    figure.update_yaxes(range=[len(colours) - 0.5, -0.5], showgrid=False, **labels)
    return figure


def _axis_start(scores: Scores) -> float:
    """An axis start, rounded down, for the intervals of all scores of at least half the best."""
    everything = [score for results in scores.values() for score in results.values()]
    best = max(score["value"] for score in everything)
    step = 10.0 ** np.ceil(np.log10(best) - 1) if best > 0 else 1.0  # 0.1 up to 1, 10 up to 100
    lowest = min(score["low"] for score in everything if score["value"] >= best / 2)
    return float(round(step * np.floor(lowest / step), 9))


def curves(lines: Sequence[Line], *, y_title: str, x_title: str = "update") -> go.Figure:
    """Line chart of values by update, or by another quantity; both axes include 0."""
    figure = _empty_figure(height=280)
    for line in lines:
        figure.add_scatter(
            x=[x for x, _ in line.points],
            y=[y for _, y in line.points],
            text=line.notes,
            name=escape_label(line.name),
            # Markers make a curve of one point visible.
            mode="lines+markers" if len(line.points) < 20 else "lines",
            marker={"size": 7, "symbol": symbol(line.series)},
            line={
                "color": colour(line.series),
                "dash": "dash" if line.dashed else "solid",
                "width": 2,
            },
            hovertemplate=f"{'%{text}, ' * bool(line.notes)}{x_title} %{{x:,}}<br>%{{y:.4f}}",
        )
    figure.update_xaxes(title=x_title, rangemode="tozero")
    figure.update_yaxes(title=y_title, rangemode="tozero")
    return figure


def regions(score: Callable[[Floats], Floats], points: Floats, classes: Sequence[int]) -> go.Figure:
    """The decision regions of a binary classifier in the plane, and points with their classes.

    `score` maps positions (N, 2) to scores (N,), above 0 for class 1; `points` has shape (P, 2).
    """
    low, high = points.min() - 0.5, points.max() + 0.5
    ticks = np.linspace(low, high, 61)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)  # (61, 61, 2): rows are x₂, columns x₁
    scores = score(grid.reshape(-1, 2)).reshape(len(ticks), -1)
    figure = _empty_figure(height=250)
    figure.add_contour(
        x=ticks.round(3).tolist(),
        y=ticks.round(3).tolist(),
        z=scores.clip(-1, 1).round(3).tolist(),
        zmin=-1,
        zmax=1,
        opacity=0.45,
        colorscale=[[0, colour(0)], [0.5, "rgba(125, 127, 135, 0.1)"], [1, colour(1)]],
        contours={"start": 0, "end": 0, "size": 1, "coloring": "heatmap"},
        line={"color": OTHERS, "width": 2},
        showscale=False,
        hoverinfo="skip",
    )
    shapes = {"color": [*map(colour, classes)], "symbol": [*map(symbol, classes)]}
    figure.add_scatter(
        x=points[:, 0].tolist(),
        y=points[:, 1].tolist(),
        mode="markers+text",
        text=[*map(str, classes)],
        textposition="top right",
        marker={**shapes, "size": 11},
        hovertemplate="(%{x}, %{y}): %{text}<extra></extra>",
    )
    axis = {"range": [low, high], "tickvals": [0, 1], "showgrid": False, "constrain": "domain"}
    figure.update_xaxes(title="x₁", **axis)
    figure.update_yaxes(title="x₂", scaleanchor="x", **axis)  # a unit is as long on both axes
    return figure


def matrix(
    values: NDArray[np.floating],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    names: tuple[str, str],  # titles of the axes, rows first
) -> go.Figure:
    """Heatmap of values (R, C), shown on hover, by names of rows and columns, which may repeat."""
    below = LETTER * min(25, max(map(len, columns))) + 50
    figure = _empty_figure(height=below + LABEL * len(rows))
    figure.add_heatmap(
        z=values.round(4).tolist(),
        customdata=[
            [[escape_label(row), escape_label(column)] for column in columns] for row in rows
        ],
        colorscale=[[0, "rgba(125, 127, 135, 0.08)"], [1, colour(0)]],
        showscale=False,
        xgap=1,
        ygap=1,
        hovertemplate="%{customdata[0]} → %{customdata[1]}<br>%{z:.3f}<extra></extra>",
    )
    for axis, labels in (("yaxis", rows), ("xaxis", columns)):
        ticks = {"tickvals": [*range(len(labels))], "ticktext": [*map(escape_label, labels)]}
        figure.update_layout({axis: {**ticks, "showgrid": False, "tickfont": {"size": 10}}})
    figure.update_xaxes(title=names[1], tickangle=-90)
    figure.update_yaxes(title={"text": names[0], "standoff": 8}, autorange="reversed")
    if len(columns) > 12:  # as tables do, it scrolls sideways
        figure.update_layout(minreducedwidth=130 + 12 * len(columns))
    return figure


def json_object(figure: go.Figure) -> dict[str, Any]:
    """The object of a figure for Plotly.newPlot; its `data` is empty if it has no point."""
    content: dict[str, Any] = json.loads(figure.to_json())  # NaN, which JSON lacks, is null here
    has_points = any(trace.get("x") or trace.get("z") for trace in content["data"])
    return content if has_points else {**content, "data": []}


def colour(index: int) -> str:
    """The colour of a study's experiment by its index."""
    return SERIES[index % len(SERIES)]


def symbol(index: int) -> str:
    """Plotly's name of the symbol of a study's experiment by its index."""
    return SYMBOLS[index % len(SYMBOLS)]


def chips(names: Iterable[str], grey: Collection[str] = (), marks: str = FILLED) -> dict[str, Chip]:
    """The character and the colour of each name by its index, for legends, or grey if in `grey`."""
    return {
        name: Chip(marks[index % len(marks)], OTHERS if name in grey else colour(index))
        for index, name in enumerate(names)
    }


def escape_label(name: str) -> str:
    """A name escaped for plotly's labels, which allow some HTML."""
    return html.escape(name, quote=False)


def _empty_figure(*, height: int) -> go.Figure:  # height in pixels; readers cannot zoom
    axis = {
        "fixedrange": True,
        "automargin": True,
        "zeroline": False,
        "showline": True,
        "ticklabelstandoff": 6,
        "exponentformat": "none",  # otherwise 0.1 is "100m"
    }
    return go.Figure(
        layout={
            "template": go.layout.Template(),
            "height": height,
            "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13},
            "showlegend": False,
            "dragmode": False,  # dragging on a touch screen scrolls the page
            "hoverlabel": {"namelength": -1},
            "xaxis": axis,
            "yaxis": axis,
        }
    )
