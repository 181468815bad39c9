"""The figures of a page: plain data in, plotly figures out.

A figure has no legend, no background and no colour for text and grid: the page has room for the
first, and knows the reader's light or dark scheme. Names from data are shown as text, never as
plotly's markup.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wxb.metrics import Metric
from wxb.reporting.charts.formatting import with_interval, words

# Each at least 3:1 against white and against near-black, so that both schemes can share them.
SERIES = ("#2f7ebc", "#c9691c", "#2a9470", "#9a63c4", "#a8841f", "#cf4f63", "#96705a")
OTHERS = "#7d7f87"  # what was published, of whatever system
SYMBOLS = {  # plotly's name, and the character that looks like it
    "circle": "●",
    "diamond": "◆",
    "square": "■",
    "triangle-up": "▲",
    "triangle-down": "▼",
    "star": "★",
}

ROW = 44  # pixels
FRAME = 64  # axis and its title
LABEL, LABELS = 12, 90  # one label of a matrix, and those of the axis across

Curve = Sequence[tuple[int, float]]  # (step, value)


class Line(NamedTuple):
    """One curve of `curves`; lines of one `series` share a colour."""

    name: str
    series: int
    points: Curve
    dashed: bool = False


def forest(
    metric: Metric,
    scores: Mapping[str, Mapping[str, float]],
    published: Mapping[str, float],
) -> go.Figure:
    """A score (`value`, `low`, `high`) by experiment; below, hollow, what others print.

    The published ones are other systems on other records, and come without intervals.
    """
    rows = len(scores) + len(published)
    figure = _figure(height=FRAME + ROW * rows)
    for number, (name, score) in enumerate(scores.items()):
        figure.add_scatter(
            x=[score["value"]],
            y=[broken(name)],
            error_x=_interval(score, number),
            mode="markers",
            marker=_mark(number),
            hovertemplate=(
                f"{text(name)}<br>{metric.title} {with_interval(score, metric)}<extra></extra>"
            ),
        )
    figure.add_scatter(
        x=list(published.values()),
        y=[f"{broken(name)}<br>(published)" for name in published],
        mode="markers",
        marker={"color": OTHERS, "symbol": "circle-open", "size": 10, "line": {"width": 2}},
        hovertemplate=(
            f"%{{y}}<br>{metric.title} %{{x:.{metric.decimals}f}},"
            " other records and models<extra></extra>"
        ),
    )
    if published:
        figure.add_hline(y=len(scores) - 0.5, line={"color": OTHERS, "width": 1, "dash": "dot"})
    figure.update_xaxes(title=axis(metric))
    _name_rows(figure, rows)
    return figure


def tradeoff(
    metric: Metric,
    scores: Mapping[str, Mapping[str, float]],
    prices: Mapping[str, float],
    *,
    title: str,
) -> go.Figure:
    """A score with its interval over a price, on a log scale; who has none above 0 is left out."""
    figure = _figure(height=320)
    for number, (name, score) in enumerate(scores.items()):
        if prices.get(name, 0) <= 0:
            continue
        figure.add_scatter(
            x=[prices[name]],
            y=[score["value"]],
            error_y=_interval(score, number),
            mode="markers",
            marker=_mark(number),
            hovertemplate=(
                f"{text(name)}<br>%{{x:,.4~s}}<br>{metric.title} %{{y:.{metric.decimals}f}}"
                "<extra></extra>"
            ),
        )
    figure.update_xaxes(
        title=f"{title} (log scale)", **_log_axis([price for price in prices.values() if price > 0])
    )
    figure.update_yaxes(title=axis(metric))
    return figure


def stacked(
    rows: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], *, title: str
) -> go.Figure:
    """Amounts by row, then by part, as one horizontal bar a row; parts in the order of colours."""
    figure = _figure(height=FRAME + ROW * max(2, len(rows)))
    for part, fill in colours.items():
        figure.add_bar(
            x=[amounts.get(part, 0) for amounts in rows.values()],
            y=[broken(row) for row in rows],
            name=words(part),
            orientation="h",
            marker={"color": fill},
            hovertemplate="%{y}<br>%{x:,}",
        )
    figure.update_layout(barmode="stack", bargap=0.45)
    figure.update_xaxes(title=title)
    _name_rows(figure, len(rows))
    return figure


def curves(
    lines: Sequence[Line], *, title: str, step: str = "step", height: int = 320
) -> go.Figure:
    """Curves over steps of the optimiser, or whatever else `step` says."""
    figure = _figure(height=height)
    for line in lines:
        figure.add_scatter(
            x=[step for step, _ in line.points],
            y=[value for _, value in line.points],
            name=text(line.name),
            # A curve of one point has no line to see.
            mode="lines+markers" if len(line.points) < 20 else "lines",
            marker={"size": 7, "symbol": symbol(line.series)},
            line={
                "color": colour(line.series),
                "dash": "dash" if line.dashed else "solid",
                "width": 2,
            },
            hovertemplate=f"{step} %{{x:,}}<br>%{{y:.4f}}",
        )
    # What a page says to whom it cannot show the curves.
    ends = [
        f"; {line.name} from {line.points[0][1]:.3f} to {line.points[-1][1]:.3f}"
        for line in lines
        if line.points
    ]
    figure.update_layout(meta="".join(ends))
    figure.update_xaxes(title=step, rangemode="tozero")
    figure.update_yaxes(title=title, rangemode="tozero")
    return figure


def regions(
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    points: NDArray[np.float64],
    classes: Sequence[int],
) -> go.Figure:
    """What a model of two classes says of each place of a plane, and points with their classes.

    `score` gives numbers (N,) for places (N, 2), above 0 for class 1; `points` has shape (P, 2).
    """
    low, high = points.min() - 0.5, points.max() + 0.5
    ticks = np.linspace(low, high, 61)
    places = np.stack(np.meshgrid(ticks, ticks), axis=-1)  # (61, 61, 2): rows are x₂, columns x₁
    scores = score(places.reshape(-1, 2)).reshape(len(ticks), -1)
    figure = _figure(height=230)
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
    """Numbers (R, C) as colours, from the smallest to the largest; `names` are those of the axes.

    Rows and columns may have the same name more than once. With `every` all are labelled, and the
    figure is as high as that takes; else as many as are legible.
    """
    figure = _figure(height=max(height, LABELS + LABEL * len(rows)) if every else height)
    figure.add_heatmap(
        z=values.round(4).tolist(),
        customdata=[[[text(row), text(column)] for column in columns] for row in rows],
        colorscale=[[0, "rgba(125, 127, 135, 0.08)"], [1, colour(0)]],
        showscale=False,
        xgap=1,
        ygap=1,
        hovertemplate="%{customdata[0]} → %{customdata[1]}<br>%{z:.3f}<extra></extra>",
    )
    for axis, labels in (("yaxis", rows), ("xaxis", columns)):
        step = 1 if every else math.ceil(len(labels) / 24)
        shown = range(0, len(labels), step)
        ticks = {"tickvals": [*shown], "ticktext": [text(labels[place]) for place in shown]}
        figure.update_layout({axis: {**ticks, "showgrid": False, "tickfont": {"size": 10}}})
    figure.update_xaxes(title=names[1], tickangle=-90 if every else -60)
    figure.update_yaxes(title={"text": names[0], "standoff": 8}, autorange="reversed")
    return figure


def plain(figure: go.Figure) -> dict[str, Any]:
    """A figure as JSON values, for Plotly.react."""
    content: dict[str, Any] = json.loads(figure.to_json())  # NaN, which JSON lacks, is null here
    return content


def colour(number: int) -> str:
    """The colour of the experiment in this place of its study, the first being 0."""
    return SERIES[number % len(SERIES)]


def symbol(number: int) -> str:
    """The symbol of that experiment, by plotly's name."""
    return list(SYMBOLS)[number % len(SYMBOLS)]


def chips(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The character and the colour that stand for each name in figures."""
    return {name: (SYMBOLS[symbol(number)], colour(number)) for number, name in enumerate(names)}


def axis(metric: Metric) -> str:
    """What an axis of this score is called."""
    return f"{metric.title} (lower is better)" if metric.lower_is_better else metric.title


def text(name: str) -> str:
    """A name as plotly will show it literally: its labels understand some HTML."""
    return html.escape(name, quote=False)


def broken(name: str, width: int = 18) -> str:
    """A name for an axis, as `text` gives it, in lines broken after hyphens where it is long."""
    lines = [""]
    for part in re.findall("[^-]*-+|[^-]+", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "<br>".join(text(line) for line in lines)


def _mark(number: int) -> dict[str, Any]:
    """The mark of an experiment; the page gives its edge the colour of the paper."""
    mark = {"color": colour(number), "symbol": symbol(number), "size": 12}
    return {**mark, "line": {"width": 1.5}}


def _interval(score: Mapping[str, float], number: int) -> dict[str, Any]:
    """A pale band, on which the mark is seen however narrow it is."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [score["high"] - score["value"]],
        "arrayminus": [score["value"] - score["low"]],
        "color": f"{colour(number)}66",
        "thickness": 7,
        "width": 0,
    }


def _log_axis(values: Sequence[float]) -> dict[str, Any]:
    """Range and ticks of a log scale; plotly labels one of few decades with bare digits."""
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


def _figure(*, height: int) -> go.Figure:
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
            "dragmode": False,  # a finger on a figure scrolls the page
            "hoverlabel": {"namelength": -1},
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def _name_rows(figure: go.Figure, rows: int) -> None:
    # A type called "2024" is a name too, not a place on a scale. The first row is on top.
    figure.update_yaxes(type="category", range=[rows - 0.5, -0.5], showgrid=False)
