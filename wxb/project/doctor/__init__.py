"""`wxb doctor`: whether this machine and this folder can run the project, and what mends it.

Nothing is changed and no network is asked: what can be tried is tried here, the rest is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from wxb.core.errors import WxbError, in_one_line
from wxb.core.params import Params, load
from wxb.reporting.terminal import Row, grid

Level = Literal["ok", "note", "problem"]


class Finding(NamedTuple):
    """What one check found; `mend` is a command, or words where no command does it."""

    name: str
    level: Level
    found: str
    mend: str = ""


STYLES: dict[Level, str] = {"ok": "green", "note": "yellow", "problem": "bold red"}

Check = Callable[[], Iterable[Finding]]

INSTALL = "pip install --requirement requirements.txt"
SECONDS = 120  # for another process to tell what it found


def examine() -> Iterator[Finding]:
    """The findings of all checks."""
    from wxb.project.doctor import libraries, machine, project

    params, fault = parameters()
    with project.engines() as engines, libraries.tried() as tried:  # they go on beside the others
        yield from run(
            [
                ("Python", machine.python),
                ("wxb", project.package),
                ("packages", project.packages),
                ("params.yaml", partial(project.parameters, fault)),
                ("CPU", partial(machine.cpu, params)),
                ("memory", machine.memory),
                ("disk", partial(machine.disk, params)),
                ("hub", partial(machine.hub, params)),
                ("repository", project.repository),
                ("locks", project.locks),
                ("run cache", project.run_cache),
                ("telemetry", project.telemetry),
                ("engines", engines),
                ("libraries", tried),
            ]
        )


def run(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """What checks find; one that breaks down is a problem itself, and hides no other."""
    for name, check in checks:
        try:
            yield from check()
        except Exception as error:
            yield Finding(name, "problem", f"the check itself failed: {in_one_line(error)}")


def table(findings: Iterable[Finding]) -> RenderableType:
    """The findings for people, each with what mends it on a line of its own."""
    rows: list[Row] = []
    for finding in findings:
        level = Text(finding.level, style=STYLES[finding.level])
        rows.append((level, Text(finding.name, style="bold"), finding.found))
        if finding.mend:
            rows.append(("", "", Text(f"-> {finding.mend}", style="cyan")))
    return grid(rows, columns=3)


def parameters() -> tuple[Params | None, str]:
    """The parameters, or what is wrong with them."""
    try:
        return load(), ""
    except WxbError as error:
        return None, str(error)
