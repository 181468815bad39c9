"""What would run again and why, as DVC sees it; and what runs at this moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from wxb.core.params.section import flat
from wxb.project import dag

LOCKS = Path(".wxb/locks")  # where a stage says which process runs it

# DVC's words for what is not there. Nothing made from it is wrong for that: a clone without data
# has the very metrics that were committed.
ABSENT = {"deleted", "not in cache"}


class Change(NamedTuple):
    """A file, folder or parameter that is not as it was when its stage ran, and how it differs."""

    what: str
    how: str  # modified, new, deleted, not in cache; of a parameter `before -> after`


@dataclass(frozen=True)
class Staleness:
    """For each stage of dvc.yaml what changed since it ran, and all upstream that make it stale.

    Nothing is known where `unknown` says why.
    """

    changes: Mapping[str, list[Change]] = field(default_factory=dict)
    upstream: Mapping[str, list[str]] = field(default_factory=dict)
    unknown: str = ""

    def of(self, stage: str) -> bool | None:
        """Whether the outputs of a stage may be wrong by now; None if that is not known."""
        return None if self.unknown else any(self.reasons(stage))

    def reasons(self, stage: str) -> Iterator[tuple[str, Change]]:
        """What makes a stage stale: the stages where it shows, upstream first, and the changes."""
        for place in [*self.upstream.get(stage, ()), stage]:
            for change in self.changes.get(place, ()):
                if change.how not in ABSENT:
                    yield place, change


def staleness() -> Staleness:
    """Ask DVC about the project in the working folder; it takes a second, and disturbs no run."""
    try:
        steps = dag.steps()
    except dag.UnreadableError as error:
        return Staleness(unknown=str(error))
    upstream: dict[str, list[str]] = {}
    for step in steps:
        direct = {*step.upstream} - {dag.CHECK}
        every = direct.union(*(upstream[name] for name in direct))
        upstream[step.name] = [name for name in upstream if name in every]
    return Staleness({step.name: list(_changes(step)) for step in steps}, upstream)


def running() -> list[str]:
    """The stages of this project that run at this moment, whoever started them."""
    return sorted(path.stem for path in LOCKS.glob("*.lock") if _is_run(path))


def _changes(step: dag.Step) -> Iterator[Change]:
    """What DVC sees, with the keys and values of parameters: it compares whole blocks."""
    for what, how in step.changes.items():
        yield Change(what, how)
    before, after = flat(step.before), flat(step.after)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield Change(key, f"{_said(before, key)} -> {_said(after, key)}")


def _said(values: Mapping[str, Any], key: str) -> str:
    return "absent" if key not in values else "null" if values[key] is None else str(values[key])


def _is_run(lock: Path) -> bool:
    """Whether the process that a stage's lock names still runs that stage.

    The lock itself is not touched: a stage that starts meanwhile would find it held.
    """
    verb, _, name = lock.stem.partition("@")
    try:
        command = psutil.Process(int(lock.read_text(encoding="utf-8"))).cmdline()
    except (ValueError, OSError, psutil.Error):
        return False
    return f"stages.{verb}" in command and name in command
