"""The project folder: its code and packages, parameters, engines and locks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from itertools import chain
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.version import Version

import wxb
from wxb.core.params import PARAMS
from wxb.project import profiles
from wxb.project.doctor import INSTALL, SECONDS, Check, Finding
from wxb.project.staleness import running
from wxb.reporting.charts.formatting import shortened

LOCKED = Path("requirements.txt")
RUNS = Path(".dvc/cache/runs")
SHOWN = 6  # packages named one by one


def package() -> Iterator[Finding]:
    """Where `wxb` comes from: stages always run the code of this folder."""
    used, here = Path(wxb.__file__).parent.resolve(), Path("wxb").resolve()
    try:
        version = metadata.version("wxb")
    except metadata.PackageNotFoundError:
        version = "not installed"
    if here.is_dir() and used != here:
        found = f"this command runs {used}, but stages run {here}"
        yield Finding("wxb", "note", found, "pip install --no-deps --editable .")
    else:
        yield Finding("wxb", "ok", f"{version}, {used}")


def packages() -> Iterator[Finding]:
    """What is installed, beside the lock; without what wxb itself asks for, nothing will run."""
    if not LOCKED.exists():
        yield Finding("packages", "note", f"{LOCKED}: not here, so there is nothing to compare")
        return
    asked = _asked()
    missing, differing, broken = [], [], False
    for line in LOCKED.read_text(encoding="utf-8").splitlines():
        name, _, locked = line.partition("==")
        try:
            found = Version(metadata.version(name))
        except metadata.PackageNotFoundError:
            missing.append(name)
            broken |= _plain(name) in asked
            continue
        if found.public != locked:  # a local label such as +cpu is the same release
            differing.append(f"{name} {found} (locked: {locked})")
            asks = asked.get(_plain(name))
            broken |= asks is not None and not asks.specifier.contains(found, prereleases=True)
    told = [*(f"{name} is missing" for name in missing), *differing]
    if not told:
        yield Finding("packages", "ok", f"all as {LOCKED} locks them")
        return
    found_ = f"{shortened(told, SHOWN)}; results may differ from the recorded ones"
    yield Finding("packages", "problem" if broken else "note", found_, INSTALL)


def parameters(fault: str) -> Iterator[Finding]:
    """Whether params.yaml is valid, or has a `fault`, and the profile whose sizes it has."""
    if fault:
        mend = "wxb params, until it is valid" if PARAMS.exists() else "cd to the project's root"
        yield Finding("params.yaml", "problem", fault, mend)
        return
    differ = profiles.sizes()
    if not differ:
        yield Finding("params.yaml", "ok", "valid")
        return
    nearest = min(differ, key=differ.__getitem__)
    size = f"the sizes of {nearest}"
    if differ[nearest]:
        size = f"sizes of its own (keys that differ from {nearest}: {differ[nearest]})"
    yield Finding("params.yaml", "ok", f"valid, with {size}")


@contextmanager
def engines() -> Iterator[Check]:
    """Start both engines, and lend the check that hears what they say."""
    started = {
        name: subprocess.Popen(
            [sys.executable, "-m", name, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in ("dvc", "snakemake")
    }

    def heard() -> Iterator[Finding]:
        for name, process in started.items():
            told, _ = process.communicate(timeout=SECONDS)
            lines = told.strip().splitlines() or ["it said nothing"]
            if process.returncode:
                yield Finding(name, "problem", f"does not run: {lines[-1]}", INSTALL)
            else:
                yield Finding(name, "ok", lines[-1])

    try:
        yield heard
    finally:
        for process in started.values():
            process.kill()
            process.communicate()


def repository() -> Iterator[Finding]:
    """Whether DVC can open the project, and reads its stages."""
    from dvc.exceptions import DvcException, NotDvcRepoError
    from dvc.repo import Repo
    from dvc.scm import SCMError

    try:
        with Repo() as repo:
            stages = len(repo.index.stages)
    except NotDvcRepoError:
        found = f"{Path.cwd()} is in no project of DVC"
        yield Finding("repository", "problem", found, "cd to the project's root")
    except SCMError:
        found = "the project is in no git repository, which DVC asks for"
        yield Finding("repository", "problem", found, "git init")
    except DvcException as error:
        yield Finding("repository", "problem", " ".join(str(error).split()), "dvc status")
    else:
        yield Finding("repository", "ok", f"DVC reads {stages} stages from dvc.yaml")


def locks() -> Iterator[Finding]:
    """What runs in this folder, and what killed runs left locked."""
    findings = [*_of_dvc(), *_of_snakemake()]
    if stages := running():
        findings.append(Finding("locks", "note", f"running now: {', '.join(stages)}"))
    yield from findings or [Finding("locks", "ok", "none is held")]


def run_cache() -> Iterator[Finding]:
    """Whether DVC's memory of earlier runs is whole: a killed DVC may leave a gap that it fails at.

    Snakemake fills it by itself, and `dvc repro` stops at it.
    """
    from wxb.project.engines import empty_runs

    if found := empty_runs(RUNS):
        told = f"{found[0]}: empty, and `dvc repro` fails at it; a DVC was killed as it wrote there"
        yield Finding("run cache", "problem", told, f"find {RUNS} -type d -empty -delete")


def telemetry() -> Iterator[Finding]:
    """Nothing of the project may phone home."""
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
    for name, (on, mend) in switches.items():
        if on:
            yield Finding("telemetry", "problem", f"{name}: on", mend)
    if not any(on for on, _ in switches.values()):
        yield Finding("telemetry", "ok", f"off: {', '.join(switches)}")


def _of_dvc() -> Iterator[Finding]:
    """DVC notes who uses a file, and believes it for as long as some process has that number."""
    path = Path(".dvc/tmp/rwlock")
    if not path.exists():
        return
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        entries = [*held.get("write", {}).values(), *chain(*held.get("read", {}).values())]
        owners = {entry["pid"]: entry["cmd"] for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError):
        yield Finding("locks", "problem", f"{path}: damaged, and DVC stops at it", f"rm {path}")
        return
    for pid, command in owners.items():
        if not psutil.pid_exists(pid):
            found = f"{path}: left by process {pid} ({command}), which is dead; DVC removes it"
            yield Finding("locks", "note", found)
        elif not _runs(now := _arguments(pid), "dvc", "snakemake", "wxb"):
            found = f"{path}: process {pid} ({command}) is dead, and its number belongs to:"
            found = " ".join([found, *now])
            yield Finding("locks", "problem", found, f"rm {path}")
        else:
            yield Finding("locks", "note", f"process {pid} is at work here: {command}")


def _of_snakemake() -> Iterator[Finding]:
    """Snakemake does not ask who left a lock."""
    if not any(Path(".snakemake/locks").glob("*.lock")):
        return
    here = str(Path.cwd())
    for process in psutil.process_iter(["pid", "cwd", "cmdline"]):
        told = process.info
        if told["cwd"] == here and _runs(told["cmdline"] or [], "snakemake"):
            yield Finding("locks", "note", f"process {told['pid']} is at work here: snakemake")
            return
    found = ".snakemake/locks: left by a run that was killed"
    yield Finding("locks", "problem", found, "snakemake --unlock")


def _arguments(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline() or [psutil.Process(pid).name()]
    except psutil.Error:
        return ["a process that cannot be seen"]


def _runs(arguments: Sequence[str], *programs: str) -> bool:
    """Whether a command is one of the programs; a folder's name (/wxb/.venv/bin/python) is none."""
    return any(Path(argument).name in programs for argument in arguments)


def _asked() -> dict[str, Requirement]:
    """What wxb asks for to run, by the plain form of the name; nothing if it is not installed."""
    try:
        requirements = [Requirement(line) for line in metadata.requires("wxb") or []]
    except metadata.PackageNotFoundError:
        return {}
    return {
        _plain(asks.name): asks
        for asks in requirements
        if asks.marker is None or asks.marker.evaluate({"extra": ""})
    }


def _plain(name: str) -> str:
    """The name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
