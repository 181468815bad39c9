"""`wxb watch`: progress of a run of the DAG, live in a terminal."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from wxb.cli.options import StudyOrAll, expand_all
from wxb.core import paths
from wxb.core.errors import WxbError, shortened
from wxb.core.params import load
from wxb.project.watching import Running, State, Watch
from wxb.reporting.formatting import duration, words

REFRESH_SECONDS = 1.0
IDLE_SECONDS = 30.0  # without a running stage, after which a run is considered ended
MAX_NAMES = 8  # of waiting or failed stages
SILENT = "ended without a message; it may have been killed, such as for lack of memory"


def watch(
    study: StudyOrAll = "all",
    command: Annotated[
        list[str] | None, typer.Argument(help="after --: the command of a run to start and watch")
    ] = None,
) -> None:
    """Show live progress of a run of `dvc repro` or `snakemake`, without changing it.

    Shows which stages run, wait and are done, with epoch, metrics and time left. A terminal shows
    them until the run ends, a pipe gets them once.

    With a command after --, starts that run. Its output goes to logs/run.log, or without a
    terminal to standard output. The exit code is that of the command.

    Example: wxb watch ner

    Example: wxb watch ner -- snakemake --cores 2 ner
    """
    params, console = load(), Console()
    expand_all(params, study)
    watcher = Watch(params, None if study == "all" else study)
    if command:
        raise typer.Exit(_run(command, watcher, console))
    states = _states(watcher)
    last = next(states)
    if console.is_terminal:
        with _live(console) as live:
            for last in states:
                live.update(render_state(last), refresh=True)
    console.print(render_state(last))


def _run(command: list[str], watcher: Watch, console: Console) -> int:
    """Run a command with a live table and a log; return its exit code, or 128 plus its signal.

    Without a terminal, replaces this process by the command. Ctrl-C goes to the command; this waits
    until it has ended. Prints the end of the log if the command failed, but no stage did.
    """
    log = paths.log("run")
    log.parent.mkdir(exist_ok=True)
    try:
        if not console.is_terminal:
            os.execvp(command[0], command)
        # As an exception, Ctrl-C could leave modules of DVC half imported.
        is_stopping = Event()
        signal.signal(signal.SIGINT, lambda *_: is_stopping.set())
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    except OSError as error:
        raise WxbError(f"cannot run {shlex.join(command)}: {error.strerror}") from None
    with process, _live(console) as live:
        while process.poll() is None:
            if is_stopping.is_set():
                live.update(Text("stopping; finished stages are kept"), refresh=True)
            else:
                with suppress(WxbError):  # DVC cannot read the project
                    live.update(render_state(watcher.refresh()), refresh=True)
            with suppress(subprocess.TimeoutExpired):
                process.wait(REFRESH_SECONDS)
    state = None
    with suppress(WxbError):
        state = watcher.refresh(has_ended=True)
    if process.returncode and not (state and state.failed):
        output = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print(*output[-40:], sep="\n")
    print(f"Output of the run: {log}", flush=True)
    if state:
        console.print(render_state(state))
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _live(console: Console) -> Live:  # transient; the caller refreshes it
    # No redirects: colorama, which DVC imports, would print a reset at exit into Rich's stdout.
    return Live(
        Text("DVC finds out which stages are stale"),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _states(watcher: Watch) -> Iterator[State]:
    """Yield the state every second, until all are done, IDLE_SECONDS after one ran, or Ctrl-C."""
    last_active = None
    with suppress(KeyboardInterrupt):
        while True:
            state = watcher.refresh()
            yield state
            now = time.monotonic()
            last_active = now if state.running else last_active
            if state.is_complete or (last_active is not None and now - last_active > IDLE_SECONDS):
                return
            time.sleep(REFRESH_SECONDS)


def render_state(state: State) -> RenderableType:
    """A state for 80 columns or more: counts of stages and the time since the watch began first.

    Failed stages are last, each with its log's last line.
    """
    by_state = zip(State._fields, state[:4], strict=False)
    counts = ", ".join(f"{len(stages)} {name}" for name, stages in by_state if stages)
    title = f"{counts or 'every stage is up to date'}; {duration(state.elapsed)}"
    parts: list[RenderableType] = [Text(title, style="bold")]
    for stage in state.running:
        share = stage.done / stage.total if stage.total else None
        row = Table.grid(padding=(0, 1))
        row.add_column(width=34, overflow="ellipsis", no_wrap=True)
        row.add_column(width=18)
        row.add_column(no_wrap=True)
        bar = ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None)
        seconds = stage.seconds_left
        left = "" if seconds is None else f", {duration(seconds)} left"
        row.add_row(stage.stage, bar, "" if share is None else f"{share:.0%}{left}")
        parts += [row, Text(f"  {describe_progress(stage)}", style="dim")]
    if state.waiting:
        parts.append(Text(f"waiting: {shortened(state.waiting, MAX_NAMES)}"))
    parts += [Text(f"failed: {_cause(stage)}", style="red") for stage in state.failed[:MAX_NAMES]]
    return Group(*parts)


def _cause(stage: str) -> str:
    """A failed stage, the last line of its log or else SILENT, and the path of the log."""
    log = paths.log(stage)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    last = [SILENT, *(line.strip() for line in text.splitlines() if line.strip())][-1]
    return f"{stage}: {last.removeprefix(f'{stage}: ')} ({log})"


def describe_progress(stage: Running) -> str:
    """The epoch or the name of a step, units done, and metrics of a running stage, as text."""
    if not stage.caption:
        return "no progress reported yet"
    parts = []
    if stage.caption.partition(" (seed ")[0] != stage.stage:
        parts.append(stage.caption.removeprefix(f"{stage.stage}: "))
    elif stage.epochs and stage.total:
        epoch = min(stage.epochs, 1 + stage.done * stage.epochs // stage.total)
        parts.append(f"epoch {epoch} of {stage.epochs}")
    parts.append(f"{stage.unit} {stage.done:,}" + (f" of {stage.total:,}" if stage.total else ""))
    return ", ".join([*parts, *(f"{words(key)} {value}" for key, value in stage.metrics.items())])
