"""The data of a study's page, and the base class of what a task adds to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import plotly.graph_objects as go
from markupsafe import Markup

from wxb.core.params import Params
from wxb.reporting.charts.baselines import is_baseline
from wxb.reporting.charts.figures import Chip, Curve, chips
from wxb.reporting.charts.rendering import render

Place = Literal["lead", "results", "noise", "cost", "training"]


class Study(NamedTuple):
    """All data of a study's page. Outputs that a stage has not written have no key."""

    params: Params
    comparison: Mapping[str, Any]  # as the stage compare writes it
    predictions: Mapping[str, Sequence[Any]]  # rows of predictions.jsonl by experiment
    curves: Mapping[str, Mapping[str, Curve]]  # by experiment, then metric
    pretraining: Mapping[str, Mapping[str, Curve]]  # by backbone, then metric
    pretrained: Mapping[str, Mapping[str, float]]  # by backbone: metrics on held-out texts
    costs: Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>

    @property
    def baselines(self) -> list[str]:
        """The names of the baselines, which are grey in legends and charts."""
        return [name for name, row in self.comparison["systems"].items() if is_baseline(row)]

    @property
    def chips(self) -> dict[str, Chip]:
        """The character and the colour of each experiment."""
        return chips(self.comparison["systems"], self.baselines)

    def rates(self, key: str) -> dict[str, float]:
        """Units predicted per second by experiment; `key` is the unit's count in the comparison.

        Sums over all test sets and seeds. Experiments without units or time are left out.
        """
        comparisons = [self.comparison, *self.comparison["further"].values()]
        rates = {}
        for name in self.comparison["systems"]:
            count = sum(each["systems"][name][key] for each in comparisons)
            if count and (seconds := self.costs.get(f"evaluate@{name}", {}).get("predicting")):
                rates[name] = count * len(self.comparison["seeds"]) / seconds
        return rates


class Part(NamedTuple):
    """A section of the page that only one task has.

    At the place `lead` it has sentences without a heading, which begin the page.
    """

    id: str
    title: str  # in the list of sections
    place: Place  # the section that it follows
    html: Markup  # as `rendering.render` returns it
    charts: Mapping[str, go.Figure]  # by the id of their element in `html`

    @classmethod
    def from_template(
        cls,
        package: str,
        id_: str,
        title: str,
        place: Place,
        charts: Mapping[str, go.Figure] | None = None,
        **context: Any,
    ) -> Self:
        """The section of the template `<id>.html`, rendered as in `rendering.render`."""
        html = render(package, f"{id_}.html", charts, **context)
        return cls(id_, title, place, html, charts or {})


class Page(ABC):
    """What a task adds to the pages of its studies."""

    RULE: ClassVar[str]  # what counts as right, in a sentence
    VALIDATION_NOTE: ClassVar[str]  # what the validation curves show, in sentences
    USABLE_SCORE: ClassVar[float | None] = None  # headline scores worse than this are unusable
    PUBLISHED_SCORES: ClassVar[Mapping[str, float]] = {}  # of others, described in #published

    @abstractmethod
    def failures(self, system: Mapping[str, Any]) -> str:
        """Where one system of a comparison fails, in sentences."""

    def example(self, row: Any) -> str:
        """The input of a test record, as readers see it."""
        return str(row.input)

    def answer(self, row: Any) -> str:
        """The gold of a test record, as readers see it."""
        return row.gold if isinstance(row.gold, str) else " / ".join(row.gold)

    def parts(self, study: Study) -> list[Part]:
        """The sections that only this task has, in their order; none by default."""
        return []
