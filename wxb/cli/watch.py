"""`wxb watch`: the run of the DAG as it goes on, drawn in a terminal or told in lines."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr, suppress
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import load
from wxb.project.completion import names
from wxb.project.watching import Running, State, Watch
from wxb.reporting.charts.formatting import duration, shortened, words

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_LINES = 15.0  # of one stage, where there is no terminal
SECONDS_IDLE = 30.0  # without any stage, until a run that was seen is taken to have ended
NAMED = 8  # waiting stages named one by one
LAST = 40  # lines of a run that failed


def watch(
    study: Annotated[
        str,
        typer.Argument(
            help="a study or lesson of params.yaml, or all",
            autocompletion=names("studies", "lessons", more=("all",)),
        ),
    ] = "all",
    command: Annotated[
        list[str] | None, typer.Argument(help="after --: the command of a run to start and watch")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="print the state once, and exit")] = False,
) -> None:
    """Show live progress of a run of `dvc repro` or `snakemake`, without changing it.

    Shows which stages run, wait and are done, with epoch, metrics and time left. A terminal shows
    a live table, a pipe gets lines. Ends with the run.

    With a command after --, starts that run. Its output goes to logs/run.log, or without a
    terminal to standard output. The exit code is that of the command.

    Example: wxb watch ner

    Example: wxb watch ner -- snakemake --cores 2 ner
    """
    params, console = load(), Console()
    pages = {**params.studies, **params.lessons}
    if study != "all" and study not in pages:
        raise WxbError(f"params.yaml has no study or lesson {study!r}{choices(study, pages)}")
    watched = Watch(params, None if study == "all" else study)
    if command:
        raise typer.Exit(_begun(command, watched, console))
    states = _states(watched)
    if once:
        console.print(drawn(next(states)))
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            for state in states:
                live.update(drawn(state), refresh=True)
        console.print(drawn(state))
    else:
        for line in lines(states):
            print(line, flush=True)


def _begun(command: list[str], watched: Watch, console: Console) -> int:
    """Run a command to its end, drawn in a terminal; its exit code.

    Ctrl-C reaches the command as it would alone, and is left to it: this waits until it has ended.
    """
    log = paths.log("run")
    log.parent.mkdir(exist_ok=True)
    try:
        if not console.is_terminal:
            os.execvp(command[0], command)
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    except OSError as error:
        raise WxbError(f"cannot run {shlex.join(command)}: {error.strerror}") from None
    with process:
        _draw_until_ended(process, watched, console)
    state = _look(watched)
    if state and (state.over or state.done or state.stopped):
        console.print(drawn(state))
    if process.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print(*said[-LAST:], sep="\n")
    print(f"All that the run said: {log}")
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _draw_until_ended(process: subprocess.Popen[bytes], watched: Watch, console: Console) -> None:
    stopping = False
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while process.poll() is None:
            try:
                if stopping:
                    process.wait()
                elif state := _look(watched):
                    live.update(drawn(state), refresh=True)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(SECONDS_BETWEEN_LOOKS)
            except KeyboardInterrupt:
                stopping = True
                live.update(Text("stopping; what is done is kept"), refresh=True)


def _look(watched: Watch) -> State | None:
    """How things stand; None where nobody can tell, as where params.yaml is just being written."""
    try:
        with redirect_stderr(io.StringIO()):  # bars of DVC, across what is drawn
            return watched.look()
    except WxbError:
        return None


def _states(watched: Watch) -> Iterator[State]:
    """The states of a run one after another, until it has ended or the user has."""
    active = None
    try:
        while True:
            with redirect_stderr(io.StringIO()):  # bars of DVC, across what is drawn
                state = watched.look()
            yield state
            now = time.monotonic()
            if state.running:
                active = now
            if state.over or (active is not None and now - active > SECONDS_IDLE):
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)
    except KeyboardInterrupt:
        return


def drawn(state: State) -> RenderableType:
    """A state, for a terminal of 80 columns or more."""
    parts: list[RenderableType] = [Text(headline(state), style="bold")]
    for one in state.running:
        row = Table.grid(padding=(0, 1), expand=False)
        row.add_column(width=34, overflow="ellipsis", no_wrap=True)
        row.add_column(width=18)
        row.add_column(width=5, justify="right")
        row.add_column(no_wrap=True)
        share = one.share
        bar = ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None)
        row.add_row(one.stage, bar, _percent(share), _left(one))
        parts.append(row)
        if told := figures(one):
            parts.append(Text(f"  {told}", style="dim"))
    for what, stages in (("stopped", state.stopped), ("waiting", state.waiting)):
        if stages:
            parts.append(
                Text(
                    f"{what}: {shortened(stages, NAMED)}", style="red" if what == "stopped" else ""
                )
            )
    if state.stopped:
        parts.append(Text(f"logs/{state.stopped[0]}.log says why it stopped", style="red"))
    return Group(*parts)


def lines(states: Iterable[State]) -> Iterator[str]:
    """What changes from state to state, and now and then how far each stage is."""
    told: dict[str, float] = {}  # when each running stage was last told of
    before: State | None = None
    for state in states:
        clock = datetime.now().astimezone().strftime("%H:%M:%S")
        if before is None or _counts(state) != _counts(before):
            yield f"{clock} {headline(state)}"
        for stage, what in _changed(before, state):
            yield f"{clock} {stage}: {what}"
        for one in state.running:
            now = time.monotonic()
            if (
                one.share is not None
                and now - told.get(one.stage, now - 60) > SECONDS_BETWEEN_LINES
            ):
                told[one.stage] = now
                rest = ", ".join(filter(None, [figures(one), _left(one)]))
                yield f"{clock} {one.stage}: {_percent(one.share)}, {rest}"
        before = state


def headline(state: State) -> str:
    """How many stages are where."""
    if state.over:
        if not state.done:
            return "every stage is up to date"
        return f"all done: {len(state.done)} stage{'s' if len(state.done) > 1 else ''}"
    total = sum(map(len, state))
    told = f"{len(state.done)} of {total} stages done, {len(state.running)} running"
    told += f", {len(state.waiting)} waiting"
    if state.stopped:
        told += f", {len(state.stopped)} stopped"
    return told if state.running or state.done else f"{told}; nothing runs yet"


def figures(one: Running) -> str:
    """What a running stage has told: epoch, units, metrics."""
    parts = []
    if one.label and one.label.partition(" (seed ")[0] != one.stage:
        parts.append(one.label.removeprefix(f"{one.stage}: "))
    if one.epoch:
        parts.append(f"epoch {one.epoch} of {one.epochs}")
    if one.unit:
        many = f"{one.done:,} of {one.total:,}" if one.total else f"{one.done:,}"
        parts.append(f"{one.unit} {many}")
    return ", ".join([*parts, *(f"{words(key)} {value}" for key, value in one.figures.items())])


def _changed(before: State | None, state: State) -> Iterator[tuple[str, str]]:
    was = _places(before) if before else {}
    for stage, place in _places(state).items():
        if before and was.get(stage) != place and place != "waiting":
            yield stage, {"running": "begins"}.get(place, place)


def _places(state: State) -> Mapping[str, str]:
    running = [one.stage for one in state.running]
    groups = {**state._asdict(), "running": running}
    return {stage: place for place, stages in groups.items() for stage in stages}


def _counts(state: State) -> tuple[int, ...]:
    return tuple(map(len, state))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _left(one: Running) -> str:
    return "" if one.left is None else f"{duration(one.left)} left"
