"""The DAG of dvc.yaml as DVC sees it at this moment, read beside whatever runs.

Nothing is locked. DVC's own `status` holds the lock of the project for seconds and notes what it
reads in its rwlock: a stage that ends meanwhile finds them taken, and what it has made is lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

LOCKFILE = Path("dvc.lock")
RWLOCK = Path(".dvc/tmp/rwlock")

CHECK = "check"  # the stage before all others; its output never changes, and makes nothing stale

# DVC writes both files in place. It takes dvc.lock a second, after each stage.
ATTEMPTS = 8
SECONDS_BETWEEN = 0.25


class UnreadableError(Exception):
    """DVC cannot say what is stale; the message, without a full stop, says what was found."""


@dataclass(frozen=True)
class Step:
    """A stage of dvc.yaml, by its name in DVC (`train@NAME`), and what changed since it ran.

    `upstream`: the stages whose outputs it reads. `changes`: how each file or folder differs, by
    DVC's words (modified, new, deleted, not in cache); what a run writes at this moment is left
    out, and makes the stage that it belongs to `running`. `before` and `after`: the values of its
    parameters when it ran, and now.
    """

    name: str
    upstream: tuple[str, ...]
    changes: Mapping[str, str]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    running: bool

    @property
    def due(self) -> bool:
        """Whether DVC has to look at it again."""
        return self.running or bool(self.changes) or self.before != self.after


def steps() -> list[Step]:
    """All stages that `dvc repro` in the working folder visits, in its order: upstream first.

    It takes a second. Raises UnreadableError if DVC cannot read the project.
    """
    from dvc.exceptions import DvcException

    for _ in range(ATTEMPTS):
        before, found, fault = _version(LOCKFILE), [], ""
        try:
            found = _steps()
        except DvcException as error:
            fault = f"DVC cannot read this project: {' '.join(str(error).split())}"
        if _version(LOCKFILE) == before:  # else it may have been read half written
            if fault:
                raise UnreadableError(fault)
            return found
        time.sleep(SECONDS_BETWEEN)
    raise UnreadableError(f"{LOCKFILE} is being written again and again; ask again in a while")


def written() -> dict[str, int]:
    """The absolute paths that a run of DVC writes at this moment, with the process that does."""
    for _ in range(ATTEMPTS):
        with suppress(FileNotFoundError, ValueError):
            held = json.loads(RWLOCK.read_text(encoding="utf-8")).get("write", {})
            return {p: by["pid"] for p, by in held.items() if psutil.pid_exists(by["pid"])}
        if not RWLOCK.exists():
            break
        time.sleep(SECONDS_BETWEEN)
    return {}


def _steps() -> list[Step]:
    from dvc.dependency import ParamsDependency
    from dvc.fs import localfs
    from dvc.repo import Repo
    from dvc.repo.reproduce import get_active_graph, plan_repro

    busy = written()

    def in_work(entry: Any) -> bool:
        return any(localfs.overlaps(entry.fs_path, path) for path in busy)

    found = []
    with Repo() as repo, _parsed_once():
        graph = get_active_graph(repo.index.graph)
        ours = [stage for stage in graph if stage.relpath == "dvc.yaml"]
        for stage in plan_repro(graph, ours):
            deps = [] if stage.frozen else stage.deps
            params = [dep for dep in deps if isinstance(dep, ParamsDependency)]
            changes: dict[str, str] = {}
            for entry in [*deps, *stage.outs]:
                if entry not in params and not in_work(entry):
                    changes |= _differences(entry)
            if stage.changed_stage() or stage.always_changed:
                changes["dvc.yaml"] = "modified"  # its command, or the list of its outputs
            found.append(
                Step(
                    name=stage.addressing,
                    upstream=tuple(sorted(before.addressing for before in graph.successors(stage))),
                    changes=changes,
                    before=_merged(entry.hash_info.value or {} for entry in params),
                    after=_merged(entry.read_params() for entry in params),
                    running=any(map(in_work, stage.outs)),
                )
            )
    return found


def _differences(entry: Any) -> dict[str, str]:
    """How a dependency or output differs."""
    try:
        return dict(entry.status())
    except FileNotFoundError:  # a run has removed it meanwhile
        return {str(entry): "deleted"}


def _merged(blocks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for block in blocks for key, value in block.items()}


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Let DVC parse a YAML file of parameters once; it would for each stage that has some."""
    from dvc.utils.serialize import LOADERS

    load = LOADERS[".yaml"]
    parsed = cache(load)
    LOADERS[".yaml"] = lambda path, fs: parsed(str(Path(path).absolute()), fs=fs)
    try:
        yield
    finally:
        LOADERS[".yaml"] = load


def _version(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
