"""Checks of `wxb doctor`, without network; that of DVC repairs what a killed run left."""

import importlib
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.version import Version
from rich.console import RenderableType
from rich.text import Text

from wxb.core.errors import WxbError, counted, error_line, shortened, storage_error
from wxb.project import engines
from wxb.reporting import terminal
from wxb.reporting.formatting import size

Level = Literal["ok", "note", "problem"]
STYLES: dict[Level, str] = {"ok": "green", "note": "yellow", "problem": "bold red"}

LOCKED = Path("requirements.txt")
INSTALL = f"pip install --requirement {LOCKED}"


class Finding(NamedTuple):
    """A result of a check; `remedy` is a command, or text if no command helps."""

    name: str
    level: Level
    message: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Run all checks, and repair DVC's files; a check that raises an exception is a problem."""
    for check in (python, packages, torch, repair_dvc, disk):
        try:
            yield from check()
        except Exception as error:
            remedy = "" if (line := storage_error(error)) else INSTALL
            yield Finding(check.__name__, "problem", line or error_line(error), remedy)


def python() -> Iterator[Finding]:
    """The interpreter, and a problem if the PATH has no `python` or one of another folder."""
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")
    folder, on_path = Path(sys.executable).parent, shutil.which("python")
    if on_path is None or Path(on_path).parent.resolve() != folder.resolve():
        message = f"`python`, with which `dvc repro` runs stages, is {on_path or 'not found'}"
        yield Finding("PATH", "problem", message, f'export PATH="{folder}:$PATH"')


def packages() -> Iterator[Finding]:
    """One finding: a problem if a package of the lock is missing, a note if versions differ."""
    missing, differing = [], []
    for line in LOCKED.read_text(encoding="utf-8").splitlines():
        name, _, locked = line.partition("==")
        try:
            version = Version(metadata.version(name))
        except metadata.PackageNotFoundError:
            missing.append(f"{name} is missing")
            continue
        if version.public != locked:  # a local label such as +cpu is the same release
            differing.append(f"{name} {version} (locked: {locked})")
    level: Level = "problem" if missing else "note" if differing else "ok"
    faults = shortened([*missing, *differing], most=6)
    message = f"{faults}; results may differ" if faults else f"all versions are those of {LOCKED}"
    yield Finding("packages", level, message, INSTALL if faults else "")


def torch() -> Iterator[Finding]:  # raises ImportError without torch
    """The version of torch and each GPU; no usable GPU is a note if nvidia-smi exists, else ok."""
    module = importlib.import_module("torch")
    yield Finding("torch", "ok", module.__version__)
    for index in range(module.cuda.device_count()):
        free, total = module.cuda.mem_get_info(index)
        memory = f"{size(total)} ({size(free)} free), CUDA {module.version.cuda}"
        yield Finding("GPU", "ok", f"{module.cuda.get_device_name(index)}, {memory}")
    if not module.cuda.is_available():
        message = "none that this torch can use (see docs/one-gpu.md); tiny and demo need none"
        yield Finding("GPU", "note" if shutil.which("nvidia-smi") else "ok", message)


def repair_dvc() -> Iterator[Finding]:
    """Repair what a killed run left in DVC's files; report repairs, and if DVC can read stages.

    An active run is a note; its files are left alone.
    """
    repairs: list[str] = []
    try:
        with engines.repaired(repairs.append, "nothing was repaired") as repo:
            stages = counted(len(repo.index.stages), "stages")
        last = Finding("DVC", "ok", f"{metadata.version('dvc')} reads {stages} from dvc.yaml")
    except engines.ActiveRunError as error:
        last = Finding("DVC", "note", str(error))
    except WxbError as error:
        remedy = "dvc status" if isinstance(error, engines.PlanError) else ""  # others name theirs
        last = Finding("DVC", "problem", str(error), remedy)
    yield from [*(Finding("DVC", "note", sentence) for sentence in repairs), last]


def disk() -> Iterator[Finding]:
    """Free space for the project; under 1 GiB, four times what the demo writes, is a problem."""
    free = shutil.disk_usage(".").free
    remedy = "wxb clean, then dvc gc --workspace" if free < 2**30 else ""
    message = f"{size(free)} free for {Path.cwd()}"
    yield Finding("disk", "problem" if remedy else "ok", message, remedy)


def table(findings: Iterable[Finding]) -> RenderableType:
    """The findings as a table, each remedy on a line of its own."""
    rows: list[terminal.Row] = []
    for finding in findings:
        level = Text(finding.level, style=STYLES[finding.level])
        rows.append((level, Text(finding.name, style="bold"), finding.message))
        if finding.remedy:
            rows.append(("", "", Text(f"-> {finding.remedy}", style="cyan")))
    return terminal.table((), rows)
