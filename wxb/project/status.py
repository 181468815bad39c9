"""The stages of dvc.yaml and what changed since each ran, read without DVC's lock.

DVC's own `status` holds the project's lock for seconds and writes its rwlock. A stage that ends
meanwhile cannot get them, and its outputs are lost.
"""

import io
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from functools import cache
from itertools import filterfalse, islice
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from wxb.core import files
from wxb.core.errors import WxbError
from wxb.core.params.section import flatten
from wxb.project.root import require_no_braces_or_conflicts
from wxb.runtime.engine import LOCKFILE, writer_pids

NOT_IN_CACHE = "not in cache"  # DVC's word for an output that its cache lacks
CHECK = "check"  # the first stage: its output never changes, so it makes no other stage stale

# DVC writes dvc.lock and its rwlock in place. After each stage, dvc.lock takes it a second.
ATTEMPTS = 8
SECONDS_BETWEEN = 0.25


class PlanError(WxbError):
    """DVC cannot read the project, or a run cannot start; the message has no full stop."""


def unreadable_error(reason: object) -> PlanError:
    """The error for a project that DVC cannot read; without a git repository, it names the cure."""
    text = " ".join(str(reason).split())
    cure = "; run `git init` in it" if text.endswith("is not a git repository") else ""
    return PlanError(f"DVC cannot read this project: {text}{cure}")


class Step(NamedTuple):
    """A stage of dvc.yaml, and what changed since it ran.

    `name`: its name in DVC (`train@NAME`). `upstream`: the stages whose outputs it reads.
    `changes`: how each file or folder differs, in DVC's words (modified, new, deleted, not in
    cache), without files that a run is writing now. An output that is not in the cache is as
    dvc.lock says; runs of Snakemake put it back into the cache. `before` and `after`: the values of
    its parameters when it ran, and now. `is_running`: whether a run is writing its outputs now.
    `absent`: the sources that do not exist, while the outputs made from them are unchanged. Whoever
    pulls results may not have another's files, so such a stage is never due.
    """

    name: str
    upstream: tuple[str, ...]
    changes: Mapping[str, str]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    is_running: bool
    absent: tuple[str, ...] = ()

    @property
    def is_due(self) -> bool:
        """Whether it is running, or changed and has its sources; NOT_IN_CACHE does not count."""
        is_changed = any(how != NOT_IN_CACHE for how in self.changes.values())
        return self.is_running or (not self.absent and (is_changed or self.before != self.after))


class Change(NamedTuple):
    """A file, folder or parameter that differs from the last run of its stage."""

    what: str
    how: str  # modified, new, deleted, not in cache; `before -> after`, or absent, of a parameter


class Staleness(NamedTuple):
    """What changed since each stage of dvc.yaml ran, and its upstream stages except `check`.

    If DVC cannot read the project, `why_unknown` has the reason and the rest is empty.
    """

    changes: Mapping[str, list[Change]] = {}
    upstream: Mapping[str, list[str]] = {}
    why_unknown: str = ""

    def is_stale(self, stage: str) -> bool | None:
        """Whether a stage exists and may be outdated; None if DVC cannot read the project."""
        return None if self.why_unknown else any(self.reasons(stage))

    def reasons(self, stage: str) -> Iterator[tuple[str, Change]]:
        """Yield stage and change, upstream first, without files absent here or in DVC's cache."""
        for origin in [*self.upstream.get(stage, ()), stage]:
            for change in self.changes.get(origin, ()):
                # Absence makes nothing stale: a clone without data has valid metrics.
                if change.how not in ("deleted", NOT_IN_CACHE):
                    yield origin, change


def last_stage(name: str, lessons: Collection[str]) -> str:
    """The stage that writes the page of a study, or the results of a lesson."""
    return f"{'lesson' if name in lessons else 'report'}@{name}"


def print_stale(names: Iterable[str], lessons: Collection[str]) -> None:
    """Print to stderr each stale name with one reason and the cure, or why staleness is unknown."""
    status = staleness()
    if status.why_unknown:
        print(f"wxb: staleness is unknown: {status.why_unknown}", file=sys.stderr)
    for name in names:
        stage = last_stage(name, lessons)
        for origin, (what, how) in islice(status.reasons(stage), 1):
            verb = "has not run with" if how == "new" else "ran with another"
            reason = f"{origin} {verb} {what} ({how})"
            print(f"wxb: {name} is stale: {reason}; run `dvc repro {stage}`", file=sys.stderr)


def steps() -> list[Step]:
    """All stages that `dvc repro` visits, upstream first, each with what changed since it ran.

    Takes a second and no lock of DVC. Reads again while DVC is writing dvc.lock. Raises WxbError
    as `require_no_braces_or_conflicts` and `require_valid_links` do, and PlanError if DVC fails.
    """
    from dvc.exceptions import DvcException

    require_no_braces_or_conflicts()
    for _ in range(ATTEMPTS):
        version, result, fault = file_version(LOCKFILE), [], None
        try:
            with redirect_stderr(io.StringIO()):  # hides DVC's progress bars
                result = _steps()
        except DvcException as error:
            fault = unreadable_error(error)
        if file_version(LOCKFILE) == version:  # else it may have been half written
            if fault:
                raise fault
            return result
        time.sleep(SECONDS_BETWEEN)
    raise PlanError(f"{LOCKFILE} is being written again and again; try again later")


def staleness() -> Staleness:
    """The staleness of the project in the working folder, or why DVC cannot read it."""
    try:
        current = steps()
    except WxbError as error:
        return Staleness(why_unknown=str(error))
    upstream: dict[str, list[str]] = {}
    for step in current:
        direct = {*step.upstream} - {CHECK}
        ancestors = direct.union(*(upstream[name] for name in direct))
        upstream[step.name] = [name for name in upstream if name in ancestors]
    return Staleness({step.name: list(_changes(step)) for step in current}, upstream)


def outputs(stage: Mapping[str, Any]) -> list[str]:
    """The paths of a stage's outputs as dvc.yaml has them: with variables such as `${key}`."""
    outs = [out for kind in ("outs", "metrics", "plots") for out in stage.get(kind, [])]
    return [out if isinstance(out, str) else next(iter(out)) for out in outs]  # or with options


def require_valid_links(stages: Iterable[Any], *, folders_only: bool = False) -> None:
    """Raise WxbError for outputs of this dvc.yaml below a linked folder, or with a broken link.

    `folders_only` checks only the folders above the outputs. Stages of other files are skipped.
    """
    own_stages = [stage for stage in stages if stage.relpath == "dvc.yaml"]
    outputs = [Path(out.def_path) for stage in own_stages for out in stage.outs]
    files.require_valid_links([path.parent / "x" for path in outputs] if folders_only else outputs)


def paths_in_use() -> dict[str, int]:
    """The absolute paths that live runs of DVC write, with PIDs; empty if its rwlock is damaged."""
    for _ in range(ATTEMPTS):
        with suppress(ValueError):
            return {path: pid for path, pid in writer_pids().items() if psutil.pid_exists(pid)}
        time.sleep(SECONDS_BETWEEN)
    return {}


def file_version(path: Path) -> tuple[int, int]:
    """A file's modification time in nanoseconds and its size; zeros if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _changes(step: Step) -> Iterator[Change]:
    """The changes of a step, with parameters one by one: DVC compares whole blocks."""
    yield from map(Change._make, step.changes.items())
    if step.after and not step.before:  # it has never run
        yield Change("params.yaml", "new")
        return
    before, after = flatten(step.before), flatten(step.after)
    for key in sorted(before.keys() | after.keys()):
        values = [blocks.get(key, "absent") for blocks in (before, after)]
        if values[0] != values[1]:
            yield Change(key, " -> ".join("null" if v is None else str(v) for v in values))


def _steps() -> list[Step]:
    """All stages in the order of `dvc repro`. Raises WxbError for outputs with bad links.

    A new command is a change of "dvc.yaml". Inputs of frozen stages, files in use, and files that
    `check` has yet to write do not count as changed. An input folder that lacks another stage's
    output, as after `dvc checkout --allow-missing`, counts as deleted.
    """
    from dvc.dependency import ParamsDependency
    from dvc.fs import localfs
    from dvc.repo import Repo
    from dvc.repo.reproduce import get_active_graph, plan_repro

    in_use = paths_in_use()

    def is_in_use(entry: Any) -> bool:
        return any(localfs.overlaps(entry.fs_path, path) for path in in_use)

    known: dict[tuple[Any, ...], dict[str, str]] = {}  # many stages depend on the same files

    def differences(entry: Any) -> dict[str, str]:
        key = (type(entry), entry.fs_path, entry.hash_info.value)
        if key not in known:
            known[key] = _differences(entry)
            if entry.fs_path in partial_folders and "modified" in known[key].values():
                known[key] = {str(entry): "deleted"}
        return known[key]

    result = []
    with Repo() as repo, _yaml_cache():
        graph = get_active_graph(repo.index.graph)
        own_stages = [stage for stage in graph if stage.relpath == "dvc.yaml"]
        require_valid_links(own_stages)
        products = {out.fs_path for stage in own_stages for out in stage.outs}
        absent_outputs = (Path(path) for path in products if not localfs.lexists(path))
        partial_folders = {str(folder) for path in absent_outputs for folder in path.parents}
        # A run writes them before it plans, see `engines.repair_and_run_check`.
        checks = (stage for stage in own_stages if stage.addressing == CHECK)
        check_outputs = [out.fs_path for stage in checks for out in stage.outs if not out.exists]
        for stage in plan_repro(graph, own_stages):
            deps = [] if stage.frozen else stage.deps
            params = [dep for dep in deps if isinstance(dep, ParamsDependency)]
            entries = [entry for entry in [*deps, *stage.outs] if entry not in params]
            changes: dict[str, str] = {}
            for entry in filterfalse(is_in_use, entries):
                if not any(localfs.overlaps(entry.fs_path, path) for path in check_outputs):
                    changes |= differences(entry)
            absent = _absent_sources(changes, products, stage)
            if stage.changed_stage() or stage.always_changed:
                changes["dvc.yaml"] = "modified"  # its command, or the list of its outputs
            result.append(
                Step(
                    name=stage.addressing,
                    upstream=tuple(sorted(other.addressing for other in graph.successors(stage))),
                    changes={path: how for path, how in changes.items() if path not in absent},
                    before={k: v for p in params for k, v in (p.hash_info.value or {}).items()},
                    after={k: v for p in params for k, v in p.read_params().items()},
                    is_running=any(map(is_in_use, stage.outs)),
                    absent=absent,
                )
            )
    return result


def _absent_sources(
    changes: Mapping[str, str], products: Collection[str], stage: Any
) -> tuple[str, ...]:
    """The absent inputs in dvc.lock that no stage writes; empty if an output of `stage` changed."""
    from dvc.fs import localfs

    if any(changes.get(str(out), NOT_IN_CACHE) != NOT_IN_CACHE for out in stage.outs):
        return ()
    return tuple(
        str(dep)
        for dep in stage.deps
        if dep.hash_info  # else it is another source than that of the outputs
        and changes.get(str(dep)) == "deleted"
        and not any(localfs.overlaps(dep.fs_path, path) for path in products)
    )


def _differences(entry: Any) -> dict[str, str]:
    """How a dependency or output differs, or is not in the cache, by its path; empty if neither."""
    try:
        status = dict(entry.status())
        if NOT_IN_CACHE in status.values():  # DVC has not looked at the file itself
            return dict(entry.workspace_status()) or status
        return status if entry.hash_info or not entry.exists else dict.fromkeys(status, "new")
    except FileNotFoundError:  # a run has just removed it
        return {str(entry): "deleted"}


@contextmanager
def _yaml_cache() -> Iterator[None]:
    """Make DVC parse each YAML file of parameters once, instead of once for each stage."""
    from dvc.utils.serialize import LOADERS

    load = LOADERS[".yaml"]
    cached_load = cache(load)
    LOADERS[".yaml"] = lambda path, fs: cached_load(str(Path(path).absolute()), fs=fs)
    try:
        yield
    finally:
        LOADERS[".yaml"] = load
