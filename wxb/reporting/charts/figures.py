"""The plotly figures of a page, from plain data.

Figures have no legend, background or text colour: the page has legends, and its CSS follows the
reader's light or dark scheme. Names from data are escaped, as plotly's labels allow HTML.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wxb.metrics import Metric
from wxb.reporting.charts.formatting import with_interval, words

# Each at least 3:1 against white and against near-black, so that both schemes can share them.
SERIES = ("#2f7ebc", "#c9691c", "#2a9470", "#9a63c4", "#a8841f", "#cf4f63", "#96705a")
OTHERS = "#7d7f87"  # baselines and borders
SYMBOLS = {  # plotly's name, and the character that looks like it
    "circle": "●",
    "diamond": "◆",
    "square": "■",
    "triangle-up": "▲",
    "triangle-down": "▼",
    "star": "★",
}

ROW = 36  # pixels
FRAME = 64  # axis and its title
LABEL, LABELS = 12, 90  # pixels of one row label of a matrix, and of all its column labels

Curve = Sequence[tuple[int, float]]  # (step, value)


class Chip(NamedTuple):
    """The character and the colour of a name in legends."""

    symbol: str
    colour: str


class Line(NamedTuple):
    """A line of `curves`; lines of the same `series` share a colour, if they are not `grey`."""

    name: str
    series: int
    points: Curve
    dashed: bool = False
    grey: bool = False


def forest(
    metric: Metric,
    scores: Mapping[str, Mapping[str, float]],
    further: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    grey: Collection[str] = (),
) -> go.Figure:
    """Forest plot: scores (`value`, `low`, `high`) by experiment.

    Hollow markers are the scores on `further` test sets, without intervals.
    """
    figure = _empty_figure(height=FRAME + ROW * len(scores))
    symbols = chips(scores, grey)
    for index, (name, score) in enumerate(scores.items()):
        figure.add_scatter(
            x=[score["value"]],
            y=[wrap_label(name)],
            error_x=_error_bar(score, symbols[name].colour),
            mode="markers",
            marker=_marker(index, symbols[name].colour),
            hovertemplate=_hover(name, metric, score),
        )
    for test_set, other in (further or {}).items():
        for index, (name, score) in enumerate(other.items()):
            marker = _marker(index, symbols[name].colour, size=9)
            figure.add_scatter(
                x=[score["value"]],
                y=[wrap_label(name)],
                mode="markers",
                marker={**marker, "symbol": f"{marker['symbol']}-open"},
                hovertemplate=_hover(f"{name} on {test_set}", metric, score),
            )
    figure.update_xaxes(title=axis_title(metric))
    _name_rows(figure, len(scores))
    return figure


def tradeoff(
    metric: Metric,
    scores: Mapping[str, Mapping[str, float]],
    prices: Mapping[str, float],
    *,
    x_title: str,
    grey: Collection[str] = (),
) -> go.Figure:
    """Scores with intervals over prices on a log scale; without a price above 0, no marker."""
    figure, symbols = _empty_figure(height=320), chips(scores, grey)
    for index, (name, score) in enumerate(scores.items()):
        if prices.get(name, 0) <= 0:
            continue
        figure.add_scatter(
            x=[prices[name]],
            y=[score["value"]],
            error_y=_error_bar(score, symbols[name].colour),
            mode="markers",
            marker=_marker(index, symbols[name].colour, size=9),
            hovertemplate=_hover(f"{name}: {prices[name]:,.4g}", metric, score),
        )
    figure.update_xaxes(
        title=f"{x_title} (log scale)",
        **_log_axis([price for price in prices.values() if price > 0]),
    )
    figure.update_yaxes(title=axis_title(metric))
    return figure


def stacked(
    rows: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], *, x_title: str
) -> go.Figure:
    """A stacked horizontal bar for each row of amounts by part; `colours` orders the parts."""
    figure = _empty_figure(height=FRAME + ROW * max(2, len(rows)))
    for part, fill in colours.items():
        figure.add_bar(
            x=[amounts.get(part, 0) for amounts in rows.values()],
            y=[wrap_label(row) for row in rows],
            name=words(part),
            orientation="h",
            marker={"color": fill},
            hovertemplate="%{y}<br>%{x:,}",
        )
    figure.update_layout(barmode="stack", bargap=0.45)
    figure.update_xaxes(title=x_title)
    _name_rows(figure, len(rows))
    return figure


def curves(
    lines: Sequence[Line], *, y_title: str, x_title: str = "step", height: int = 320
) -> go.Figure:
    """Line chart; its alternative text has the first and last value of each line."""
    figure = _empty_figure(height=height)
    for line in lines:
        figure.add_scatter(
            x=[step for step, _ in line.points],
            y=[value for _, value in line.points],
            name=escape_label(line.name),
            # Markers make a curve of one point visible.
            mode="lines+markers" if len(line.points) < 20 else "lines",
            marker={"size": 7, "symbol": symbol(line.series)},
            line={
                "color": OTHERS if line.grey else colour(line.series),
                "dash": "dash" if line.dashed else "solid",
                "width": 2,
            },
            hovertemplate=f"{x_title} %{{x:,}}<br>%{{y:.4f}}",
        )
    ends = [
        f"; {line.name} from {line.points[0][1]:.3f} to {line.points[-1][1]:.3f}"
        for line in lines
        if line.points
    ]
    figure.update_layout(meta="".join(ends))
    figure.update_xaxes(title=x_title, rangemode="tozero")
    figure.update_yaxes(title=y_title, rangemode="tozero")
    return figure


def regions(
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    points: NDArray[np.float64],
    classes: Sequence[int],
) -> go.Figure:
    """The decision regions of a binary classifier in the plane, and points with their classes.

    `score` maps positions (N, 2) to scores (N,), above 0 for class 1; `points` has shape (P, 2).
    """
    low, high = points.min() - 0.5, points.max() + 0.5
    ticks = np.linspace(low, high, 61)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)  # (61, 61, 2): rows are x₂, columns x₁
    scores = score(grid.reshape(-1, 2)).reshape(len(ticks), -1)
    figure = _empty_figure(height=230)
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
    for label in (0, 1):
        members = points[np.array(classes) == label]
        figure.add_scatter(
            x=members[:, 0].tolist(),
            y=members[:, 1].tolist(),
            mode="markers+text",
            text=[str(label)] * len(members),
            textposition="top right",
            marker={"color": colour(label), "symbol": symbol(label), "size": 11},
            hovertemplate=f"(%{{x}}, %{{y}}): {label}<extra></extra>",
        )
    figure.update_xaxes(title="x₁", range=[low, high], tickvals=[0, 1], showgrid=False)
    figure.update_yaxes(title="x₂", range=[low, high], tickvals=[0, 1], showgrid=False)
    return figure


def matrix(
    values: NDArray[np.floating],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    names: tuple[str, str],
    height: int = 300,
    every: bool = False,
) -> go.Figure:
    """Heatmap of values (R, C); `names` are the titles of the row and the column axis.

    Names of rows and columns may repeat. With `every` all are labelled, and the figure is as high
    as they need; else as many as are legible.
    """
    figure = _empty_figure(height=max(height, LABELS + LABEL * len(rows)) if every else height)
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
        step = 1 if every else math.ceil(len(labels) / 24)
        shown = range(0, len(labels), step)
        ticks = {"tickvals": [*shown], "ticktext": [escape_label(labels[i]) for i in shown]}
        figure.update_layout({axis: {**ticks, "showgrid": False, "tickfont": {"size": 10}}})
    figure.update_xaxes(title=names[1], tickangle=-90 if every else -60)
    figure.update_yaxes(title={"text": names[0], "standoff": 8}, autorange="reversed")
    if len(columns) > 24:  # as tables do, it scrolls sideways
        figure.update_layout(minreducedwidth=LABELS + 10 * len(columns))
    return figure


def smoothed(points: Curve) -> Curve:
    """A logged loss at regular steps, each value the mean since the previous one.

    The Trainer also logs at checkpoints, often the mean of a few unusual batches at the end of an
    epoch. Such a point is merged with the next, and the last one with that before it, weighted by
    their steps. Losses without a common stride are returned unchanged.
    """
    steps = [0, *(step for step, _ in points)]
    stride = max((after - before for before, after in pairwise(steps)), default=0)
    if not stride or not {*range(stride, steps[-1] + 1, stride)} <= {*steps}:
        return points
    regular: list[tuple[int, float]] = []
    total, last_step = 0.0, 0  # sum of step losses since the last regular point, and its step
    for before, (step, value) in zip(steps, points, strict=False):
        total += (step - before) * value
        if step % stride == 0:
            regular.append((step, total / stride))
            total, last_step = 0.0, step
    rest = steps[-1] - last_step
    if rest:
        _, value = regular.pop()
        regular.append((steps[-1], (stride * value + total) / (stride + rest)))
    return regular


def to_json(figure: go.Figure) -> dict[str, Any]:
    """A figure as JSON values, as Plotly.newPlot needs it; without data if it has no point."""
    content: dict[str, Any] = json.loads(figure.to_json())  # NaN, which JSON lacks, is null here
    return content if any(t.get("x") or t.get("z") for t in content["data"]) else {"data": []}


def colour(index: int) -> str:
    """The colour of a study's experiment by its index."""
    return SERIES[index % len(SERIES)]


def symbol(index: int) -> str:
    """Plotly's name of the symbol of a study's experiment by its index."""
    return list(SYMBOLS)[index % len(SYMBOLS)]


def chips(names: Iterable[str], grey: Collection[str] = ()) -> dict[str, Chip]:
    """The character and the colour of each name, for legends; `grey` names have no own colour."""
    return {
        name: Chip(SYMBOLS[symbol(index)], OTHERS if name in grey else colour(index))
        for index, name in enumerate(names)
    }


def axis_title(metric: Metric) -> str:
    """The title of an axis with a metric, and whether lower is better."""
    return f"{metric.title} (lower is better)" if metric.lower_is_better else metric.title


def escape_label(name: str) -> str:
    """A name escaped for plotly's labels, which allow some HTML."""
    return html.escape(name, quote=False)


def wrap_label(name: str, width: int = 18) -> str:
    """An escaped name for an axis; long ones break after hyphens and spaces."""
    lines = [""]
    for part in re.findall("[^- ]*[- ]+|[^- ]+", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "<br>".join(map(escape_label, lines))


def _marker(index: int, fill: str, size: float = 12) -> dict[str, Any]:
    """A marker; triangles are larger, as plotly draws them smaller than other symbols."""
    size *= 1.3 if symbol(index).startswith("triangle") else 1
    # CSS gives its border the colour of the page.
    return {"color": fill, "symbol": symbol(index), "size": size, "line": {"width": 1.5}}


def _hover(name: str, metric: Metric, score: Mapping[str, float]) -> str:
    """The text of a marker: its name, and its score with the interval."""
    return f"{escape_label(name)}<br>{metric.title} {with_interval(score, metric)}<extra></extra>"


def _error_bar(score: Mapping[str, float], fill: str) -> dict[str, Any]:
    """An interval as a pale thick band behind its marker."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [score["high"] - score["value"]],
        "arrayminus": [score["value"] - score["low"]],
        "color": f"{fill}66",
        "thickness": 7,
        "width": 0,
    }


def _log_axis(values: Sequence[float]) -> dict[str, Any]:
    """Range and ticks of a log axis. By default plotly labels short ranges with bare digits."""
    if not values:
        return {}
    low, high = math.log10(min(values)) - 0.2, math.log10(max(values)) + 0.2
    steps = (1, 2, 5) if high - low < 2 else (1,)
    decades = range(math.floor(low), math.ceil(high))
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": [tick for tick in ticks if low <= math.log10(tick) <= high],
        "tickformat": "~s",
    }


def _empty_figure(*, height: int) -> go.Figure:
    axis = {
        "fixedrange": True,
        "automargin": True,
        "zeroline": False,
        "showline": True,
        "ticklabelstandoff": 6,
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


def _name_rows(figure: go.Figure, rows: int) -> None:
    # Names such as "2024" are categories, not numbers. The first row is on top.
    figure.update_yaxes(type="category", range=[rows - 0.5, -0.5], showgrid=False)
