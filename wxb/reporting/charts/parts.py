"""What a page is made of, and what the `page` of a task adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import plotly.graph_objects as go
from markupsafe import Markup

from wxb.core.params import Params
from wxb.reporting.charts.figures import Curve

Place = Literal["lead", "results", "noise", "cost", "training"]


class Study(NamedTuple):
    """All that a page tells, as the stages left it; a stage that left nothing has no key."""

    params: Params
    comparison: Mapping[str, Any]  # as the stage compare writes it
    judged: Mapping[str, Sequence[Any]]  # rows of predictions.jsonl, by experiment
    curves: Mapping[str, Mapping[str, Curve]]  # by experiment, then figure
    pretraining: Mapping[str, Mapping[str, Curve]]  # by backbone, then figure
    pretrained: Mapping[str, Mapping[str, float]]  # by backbone: figures on held-out texts
    costs: Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>

    def rates(self, key: str) -> dict[str, float]:
        """How much of what `details` counts as `key` each experiment predicted in a second.

        All test sets and seeds together; an experiment that was evaluated elsewhere has none.
        """
        sets = [self.comparison, *self.comparison["further"].values()]
        found = {}
        for name in self.comparison["systems"]:
            counted = sum(tested["systems"][name][key] for tested in sets)
            if seconds := self.costs.get(f"evaluate@{name}", {}).get("predicting"):
                found[name] = counted * len(self.comparison["seeds"]) / seconds
        return found


class Part(NamedTuple):
    """A section of the page, with its heading, that only studies of one task have.

    At the place `lead` it is sentences without a heading, with which the page begins.
    """

    id: str
    title: str  # in the list of sections
    place: Place  # the section that it follows
    html: Markup  # as `rendering.render` gives it
    charts: Mapping[str, go.Figure]  # by the id of their place in it


class Page(ABC):
    """What only the pages of a task's studies have."""

    RULE: ClassVar[str]  # what counts as right, in a sentence
    WATCHED: ClassVar[str]  # what the curves on validation records are, in sentences
    USABLE: ClassVar[float | None] = None  # the headline score below which nobody uses a system
    PUBLISHED: ClassVar[Mapping[str, float]] = {}  # headline scores by system: the part `published`

    @abstractmethod
    def failures(self, system: Mapping[str, Any]) -> str:
        """Where one system of a comparison fails, in sentences; the first part has the rest."""

    def parts(self, study: Study) -> list[Part]:
        """The parts of a study's page that only this task has, in their order."""
        return []
