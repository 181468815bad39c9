"""Which stages are stale and why, according to DVC."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wxb.core.errors import WxbError
from wxb.core.params.section import flatten
from wxb.project import dag

# DVC's words for absent files. Absence makes nothing stale: a clone without data has valid metrics.
ABSENT = {"deleted", dag.NOT_IN_CACHE}


class Change(NamedTuple):
    """A file, folder or parameter that differs from the last run of its stage."""

    what: str
    how: str  # modified, new, deleted, not in cache; for a parameter `before -> after`


@dataclass(frozen=True)
class Staleness:
    """For each stage of dvc.yaml, what changed since it ran, and all stages upstream of it.

    If DVC cannot read the project, `unknown` is the reason and the rest is empty.
    """

    changes: Mapping[str, list[Change]] = field(default_factory=dict)
    upstream: Mapping[str, list[str]] = field(default_factory=dict)
    unknown: str = ""

    def is_stale(self, stage: str) -> bool | None:
        """Whether the outputs of a stage may be outdated; None if that is unknown."""
        return None if self.unknown else any(self.reasons(stage))

    def reasons(self, stage: str) -> Iterator[tuple[str, Change]]:
        """Each change that makes a stage stale, after the stage where it occurs; upstream first."""
        for origin in [*self.upstream.get(stage, ()), stage]:
            for change in self.changes.get(origin, ()):
                if change.how not in ABSENT:
                    yield origin, change


def staleness() -> Staleness:
    """Read the staleness of the project in the working folder from DVC, without locks.

    Takes a second.
    """
    try:
        steps = dag.steps()
    except WxbError as error:
        return Staleness(unknown=str(error))
    upstream: dict[str, list[str]] = {}
    for step in steps:
        direct = {*step.upstream} - {dag.CHECK}
        ancestors = direct.union(*(upstream[name] for name in direct))
        upstream[step.name] = [name for name in upstream if name in ancestors]
    return Staleness({step.name: list(_changes(step)) for step in steps}, upstream)


def _changes(step: dag.Step) -> Iterator[Change]:
    """The changes of a step, with parameters one by one: DVC compares whole blocks."""
    yield from map(Change._make, step.changes.items())
    before, after = flatten(step.before), flatten(step.after)
    for key in sorted(before.keys() | after.keys()):
        values = [blocks.get(key, "absent") for blocks in (before, after)]
        if values[0] != values[1]:
            yield Change(key, " -> ".join("null" if v is None else str(v) for v in values))
