"""The command `wxb verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from wxb.core.wording import counted
from wxb.project.integrity import verify as verification


def verify(
    repair: Annotated[
        bool,
        typer.Option("--repair", help="restore files from a copy; without one, make stages stale"),
    ] = False,
) -> None:
    """Hash all outputs, their sources and DVC's cache, and compare them with dvc.lock.

    Names each file that is altered, missing or unexpected. DVC itself does not read a file again
    whose time is unchanged. Exit code 1 if a file is not as it should be.

    Example: wxb verify --repair
    """
    report = verification.verify(repair)
    for fault in report.faults:
        print(f"{fault.kind}: {fault.path}" + (f" ({fault.remedy})" if fault.remedy else ""))
    print(f"{counted(report.files, 'files')} hashed, {counted(len(report.faults), 'faults')}")
    if not all(fault.is_restored for fault in report.faults):
        raise typer.Exit(1)
