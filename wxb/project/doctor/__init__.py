"""Checks of `wxb doctor`: can this machine and this folder run the project?

Checks use no network. One repairs what a killed run left; the others change no file. Some start
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from wxb.core.errors import WxbError, error_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wxb.reporting.terminal import Row

Level = Literal["ok", "note", "problem"]


class Finding(NamedTuple):
    """A result of a check; `remedy` is a command, or text if no command helps."""

    name: str
    level: Level
    message: str
    remedy: str = ""


STYLES: dict[Level, str] = {"ok": "green", "note": "yellow", "problem": "bold red"}

Check = Callable[[], Iterable[Finding]]

INSTALL = "pip install --requirement requirements.txt"
SECONDS = 120  # the most that a process of a check may take


def examine() -> Iterator[Finding]:
    """Run all checks; those of libraries run in a process at the same time as the others."""
    from wxb.core.params import load
    from wxb.project.doctor import libraries, machine, project

    params, fault = None, ""
    try:
        params = load()
    except WxbError as error:
        fault = str(error)
    with libraries.library_check(params) as imports:
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
                ("telemetry", project.telemetry),
                ("libraries", imports),
            ]
        )


def run(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Run named checks; a check that raises an exception is a finding itself."""
    for name, check in checks:
        try:
            yield from check()
        except Exception as error:
            yield Finding(name, "problem", f"the check itself failed: {error_line(error)}")


def table(findings: Iterable[Finding]) -> RenderableType:
    """The findings as a table, each remedy on a line of its own."""
    from rich.text import Text

    from wxb.reporting.terminal import grid

    rows: list[Row] = []
    for finding in findings:
        level = Text(finding.level, style=STYLES[finding.level])
        rows.append((level, Text(finding.name, style="bold"), finding.message))
        if finding.remedy:
            rows.append(("", "", Text(f"-> {finding.remedy}", style="cyan")))
    return grid(rows, columns=3)
