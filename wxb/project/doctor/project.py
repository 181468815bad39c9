"""Checks of the project folder: code, packages, parameters, DVC's records, locks and telemetry."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import wxb
from wxb.core.params import PARAMS
from wxb.project import profiles
from wxb.project.doctor import INSTALL, Finding
from wxb.project.integrity import dvc
from wxb.project.staleness import running
from wxb.reporting.charts.formatting import shortened

if TYPE_CHECKING:
    from dvc.repo import Repo  # this import takes a third of a second

LOCKED = Path("requirements.txt")
SHOWN = 6  # most packages in one finding


def package() -> Iterator[Finding]:
    """Whether this command runs the code of the working folder, as stages do."""
    imported, local = Path(wxb.__file__).parent.resolve(), Path("wxb").resolve()
    try:
        version = metadata.version("wxb")
    except metadata.PackageNotFoundError:
        version = "not installed"
    if local.is_dir() and imported != local:
        message = f"this command runs {imported}, but stages run {local}"
        yield Finding("wxb", "note", message, "pip install --no-deps --editable .")
    else:
        yield Finding("wxb", "ok", f"{version}, {imported}")


def packages() -> Iterator[Finding]:
    """Installed packages compared with requirements.txt; a problem only if wxb requires them."""
    if not LOCKED.exists():
        yield Finding("packages", "note", f"{LOCKED} does not exist, so nothing is compared")
        return
    requirements = _requirements()
    missing, differing, is_broken = [], [], False
    for line in LOCKED.read_text(encoding="utf-8").splitlines():
        name, _, locked = line.partition("==")
        try:
            version = Version(metadata.version(name))
        except metadata.PackageNotFoundError:
            missing.append(f"{name} is missing")
            is_broken |= _normalized(name) in requirements
            continue
        if version.public != locked:  # a local label such as +cpu is the same release
            differing.append(f"{name} {version} (locked: {locked})")
            specifier = requirements.get(_normalized(name))
            is_broken |= specifier is not None and not specifier.contains(version, prereleases=True)
    if not missing and not differing:
        yield Finding("packages", "ok", f"all versions are those of {LOCKED}")
        return
    listed = shortened([*missing, *differing], SHOWN)
    message = f"{listed}; results may differ from the committed ones"
    yield Finding("packages", "problem" if is_broken else "note", message, INSTALL)


def parameters(fault: str) -> Iterator[Finding]:
    """The error of params.yaml (`fault`), or the profile that differs from it least."""
    if fault:
        remedy = "wxb params, until it is valid" if PARAMS.exists() else "cd to the project's root"
        yield Finding("params.yaml", "problem", fault, remedy)
        return
    differences = profiles.switch_sizes()
    if not differences:
        yield Finding("params.yaml", "ok", "valid")
        return
    nearest = min(differences, key=differences.__getitem__)
    count = differences[nearest]
    suffix = f" with changes (keys that differ: {count})" if count else ""
    yield Finding("params.yaml", "ok", f"valid, profile {nearest}{suffix}")


def repository() -> Iterator[Finding]:
    """Repair what a killed run left in DVC's records; whether DVC can read the project's stages.

    Nothing is repaired while another run is active.
    """
    from wxb.project.engines import PlanError, repaired

    repairs: list[str] = []
    try:
        with repaired(repairs.append, "nothing was repaired") as repo:
            stages = _stages(repo)
    except PlanError as error:
        repairs.append(str(error))
        stages = None
    for sentence in repairs:
        yield Finding("repairs", "note", sentence)
    yield stages or _without_repairs()


def _stages(repo: Repo) -> Finding:
    count = len(repo.index.stages)
    return Finding("repository", "ok", f"DVC reads {count} stages from dvc.yaml")


def _without_repairs() -> Finding:
    """Whether DVC can read the project's stages while another run is active, or why it cannot."""
    from dvc.exceptions import DvcException, NotDvcRepoError
    from dvc.repo import Repo
    from dvc.scm import SCMError

    try:
        with Repo() as repo:
            return _stages(repo)
    except NotDvcRepoError:
        message = f"{Path.cwd()} is not in a DVC project"
        return Finding("repository", "problem", message, "cd to the project's root")
    except SCMError:
        message = "the project is not in a git repository, which DVC requires"
        return Finding("repository", "problem", message, "git init")
    except DvcException as error:
        return Finding("repository", "problem", " ".join(str(error).split()), "dvc status")


def locks() -> Iterator[Finding]:
    """Active runs in this folder, and locks that killed runs left."""
    findings = [*_dvc_locks(), *_snakemake_locks()]
    if stages := running():
        findings.append(Finding("locks", "note", f"running now: {', '.join(stages)}"))
    yield from findings or [Finding("locks", "ok", "none")]


def telemetry() -> Iterator[Finding]:
    """Whether telemetry of DVC and of the hub is off."""
    from dvc.analytics import is_enabled
    from dvc.config import Config, to_bool

    checks = to_bool(Config.from_cwd(validate=False).get("core", {}).get("check_update", "true"))
    switches = {
        "DVC's analytics": (is_enabled(), "dvc config core.analytics false"),
        "DVC's check for updates": (checks, "dvc config core.check_update false"),
        "telemetry of the hub": (
            os.environ.get("HF_HUB_DISABLE_TELEMETRY") != "1",
            "export HF_HUB_DISABLE_TELEMETRY=1",
        ),
    }
    for name, (is_on, remedy) in switches.items():
        if is_on:
            yield Finding("telemetry", "problem", f"{name}: on", remedy)
    if not any(is_on for is_on, _ in switches.values()):
        yield Finding("telemetry", "ok", f"off: {', '.join(switches)}")


def _dvc_locks() -> Iterator[Finding]:
    """The processes in DVC's rwlock. DVC respects an entry as long as any process has its PID."""
    path = Path(".dvc/tmp/rwlock")
    if not path.exists():
        return
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        entries = [*lock.get("write", {}).values(), *chain(*lock.get("read", {}).values())]
        owners = {entry["pid"]: entry["cmd"] for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError):  # DVC is writing it, see `repairs`
        return
    for pid, command in owners.items():
        if not psutil.pid_exists(pid):
            message = f"{path}: left by process {pid} ({command}), which is dead; DVC removes it"
            yield Finding("locks", "note", message)
        elif not _is_program(arguments := _arguments(pid), "dvc", "snakemake", "wxb", dvc.__name__):
            message = f"{path}: process {pid} ({command}) is dead, and its PID belongs to:"
            yield Finding("locks", "problem", " ".join([message, *arguments]), f"rm {path}")
        else:
            yield Finding("locks", "note", f"process {pid} runs here: {command}")


def _snakemake_locks() -> Iterator[Finding]:
    """The lock of Snakemake, which does not check whether its owner still runs."""
    if not any(Path(".snakemake/locks").glob("*.lock")):
        return
    cwd = str(Path.cwd())
    for process in psutil.process_iter(["pid", "cwd", "cmdline"]):
        info = process.info
        if info["cwd"] == cwd and _is_program(info["cmdline"] or [], "snakemake"):
            yield Finding("locks", "note", f"process {info['pid']} runs here: snakemake")
            return
    message = ".snakemake/locks: left by a run that was killed"
    yield Finding("locks", "problem", message, "snakemake --unlock")


def _arguments(pid: int) -> list[str]:
    """The command line of a process."""
    try:
        return psutil.Process(pid).cmdline() or [psutil.Process(pid).name()]
    except psutil.Error:
        return ["an invisible process"]


def _is_program(arguments: Sequence[str], *programs: str) -> bool:
    """Whether an argument is the file name of a program; /wxb/.venv/bin/python is not `wxb`."""
    return any(Path(argument).name in programs for argument in arguments)


def _requirements() -> dict[str, SpecifierSet]:
    """The versions that wxb requires, by normalized name; empty if wxb is not installed."""
    try:
        requirements = [Requirement(line) for line in metadata.requires("wxb") or []]
    except metadata.PackageNotFoundError:
        return {}
    return {
        _normalized(requirement.name): requirement.specifier
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }


def _normalized(name: str) -> str:
    """The name of a package as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()
