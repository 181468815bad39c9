"""`wxb watch`: live progress of a run of the DAG, as a table in a terminal, else as lines."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, suppress
from datetime import datetime
from threading import Event
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from wxb.cli.options import Study, page_names
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import load
from wxb.core.wording import counted
from wxb.project.inventory import headlines
from wxb.project.watching import Running, State, Watch
from wxb.reporting.charts.formatting import duration, shortened, words
from wxb.runtime import run_note

REFRESH_SECONDS = 1.0
IDLE_SECONDS = 30.0  # without a running stage, after which a run is considered ended
PLANNING = "DVC finds out which stages are stale"  # shown until the first state is known
MAX_NAMES = 8  # of waiting or stopped stages
SILENT = "ended without a message; it may have been killed, such as for lack of memory"
LOG_LINES = 40  # printed of a run that failed without a failed stage


class AllStudies(TyperCommand):
    """The command line of `wxb watch`: without a study before --, all studies."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # noqa: D102
        if "--" in args and all(arg.startswith("-") for arg in args[: args.index("--")]):
            args = ["all", *args]
        return super().parse_args(ctx, args)


def watch(
    study: Study = "all",
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
    page_names(params, study)
    watcher = Watch(params, None if study == "all" else study)
    if command:
        raise typer.Exit(_run(command, watcher, console))
    states = _states(watcher)
    if once:
        console.print(render_state(next(states)))
    elif console.is_terminal:
        with _live(console) as live:
            for state in states:
                live.update(render_state(state), refresh=True)
        console.print(render_state(state))
    else:
        for line in progress_lines(states):
            print(line, flush=True)


def _run(command: list[str], watcher: Watch, console: Console) -> int:
    """Run a command with a live table, and return its exit code.

    Without a terminal, replaces this process by the command. Ctrl-C goes to the command; this waits
    until it has ended.
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
    with process:
        _show_until_ended(process, watcher, console, is_stopping)
    state = _refresh(watcher, has_ended=True)
    if process.returncode and not (state and state.stopped):
        output = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print(*output[-LOG_LINES:], sep="\n")
    print(f"Output of the run: {log}", flush=True)
    if state and (state.is_over or state.done or state.stopped):
        console.print(render_state(state))
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _show_until_ended(
    process: subprocess.Popen[bytes], watcher: Watch, console: Console, is_stopping: Event
) -> None:
    with _live(console) as live:
        while process.poll() is None:
            if is_stopping.is_set():
                live.update(Text("stopping; finished stages are kept"), refresh=True)
            elif state := _refresh(watcher):
                watcher.share()
                live.update(render_state(state), refresh=True)
            with suppress(subprocess.TimeoutExpired):
                process.wait(REFRESH_SECONDS)


def _live(console: Console) -> Live:
    # DVC imports colorama, which would write a reset at exit into Rich's stdout, as visible text.
    return Live(
        Text(PLANNING),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _refresh(watcher: Watch, *, has_ended: bool = False) -> State | None:
    """The current state; None if it cannot be read, such as while params.yaml is written."""
    try:
        with redirect_stderr(io.StringIO()):  # hides DVC's progress bars
            return watcher.refresh(has_ended=has_ended)
    except WxbError:
        return None


def _states(watcher: Watch) -> Iterator[State]:
    """The state every second, until the run ends or Ctrl-C."""
    last_active = None
    has_note = run_note.read() is not None
    try:
        while True:
            has_ended = has_note and run_note.read() is None
            with redirect_stderr(io.StringIO()):  # hides DVC's progress bars
                state = watcher.refresh(has_ended=has_ended)
            yield state
            now = time.monotonic()
            if state.running:
                last_active = now
            if (
                has_ended
                or state.is_over
                or (last_active is not None and now - last_active > IDLE_SECONDS)
            ):
                return
            time.sleep(REFRESH_SECONDS)
    except KeyboardInterrupt:
        return


def render_state(state: State) -> RenderableType:
    """A state for a terminal of 80 columns or more."""
    parts: list[RenderableType] = [Text(headline(state), style="bold")]
    if not state.is_over and (line := times(state)):
        parts.append(Text(line))
    for stage in state.running:
        row = Table.grid(padding=(0, 1), expand=False)
        row.add_column(width=34, overflow="ellipsis", no_wrap=True)
        row.add_column(width=18)
        row.add_column(width=5, justify="right")
        row.add_column(no_wrap=True)
        share = stage.share
        bar = ProgressBar(total=1.0, completed=share or 0.0, pulse=share is None)
        row.add_row(stage.stage, bar, _percent(share), _time_left(stage))
        parts.append(row)
        if text := describe_progress(stage):
            parts.append(Text(f"  {text}", style="dim"))
    parts += [
        Text(f"{words(metric)}: {shortened(scores, MAX_NAMES)}")
        for metric, scores in _scores(state).items()
    ]
    if state.saving:
        parts.append(Text(f"saving outputs: {shortened(state.saving, MAX_NAMES)}"))
    if state.waiting:
        parts.append(Text(f"waiting: {shortened(state.waiting, MAX_NAMES)}"))
    parts += [Text(f"failed: {_cause(stage)}", style="red") for stage in state.stopped[:MAX_NAMES]]
    return Group(*parts)


def _scores(state: State) -> dict[str, list[str]]:
    """The headline scores of the experiments that have been evaluated, by metric."""
    experiments = load().experiments
    scores: dict[str, list[str]] = {}
    for stage in state.done:
        verb, _, name = stage.partition("@")
        metrics = paths.metrics(experiments[name].study, name) if name in experiments else None
        if verb == "evaluate" and metrics and metrics.exists():
            content = read_json(metrics)
            for metric in headlines(content)[:1]:
                scores.setdefault(metric, []).append(f"{name} {content[metric]:.3f}")
    return scores


def _cause(stage: str) -> str:
    """A failed stage with the last line of its log, which has the reason."""
    log = paths.log(stage)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    last = [SILENT, *(line.strip() for line in text.splitlines() if line.strip())][-1]
    return f"{stage}: {last.removeprefix(f'{stage}: ')} ({log})"


def progress_lines(states: Iterable[State]) -> Iterator[str]:
    """A line with the time, the counts, and the running and failed stages, if these change."""
    before = ""
    for state in states:
        stages = [stage.stage for stage in state.running]
        stages += [f"{stage} failed" for stage in state.stopped]
        line = ": ".join(filter(None, [headline(state), ", ".join(stages)]))
        if line != before:
            yield f"{datetime.now().astimezone():%H:%M:%S} {line}"
        before = line


def headline(state: State) -> str:
    """The number of stages by state, in a line."""
    if state.is_over:
        if not state.done:
            return "every stage is up to date"
        return f"all done: {counted(len(state.done), 'stages')}"
    counts = f"{len(state.done)} of {state.total} stages done, {len(state.running)} running"
    counts += f", {len(state.waiting)} waiting"
    if state.saving:
        counts += f", {len(state.saving)} saving"
    if state.stopped:
        counts += f", {len(state.stopped)} failed"
    has_begun = state.running or state.done or state.stopped
    return counts if has_begun else f"{counts}; nothing runs yet"


def times(state: State) -> str:
    """The time since the run began and the time left, as far as known."""
    known = {"elapsed": state.elapsed, "left": state.seconds_left}
    return ", ".join(f"{duration(s)} {name}" for name, s in known.items() if s)


def describe_progress(stage: Running) -> str:
    """The step, epoch, units and metrics of a running stage, in a line."""
    parts = [] if stage.label else ["no progress reported yet"]
    if stage.label and stage.label.partition(" (seed ")[0] != stage.stage:
        parts.append(stage.label.removeprefix(f"{stage.stage}: "))
    if stage.epoch:
        parts.append(f"epoch {stage.epoch} of {stage.epochs}")
    if stage.unit:
        count = f"{stage.done:,} of {stage.total:,}" if stage.total else f"{stage.done:,}"
        parts.append(f"{stage.unit} {count}")
    return ", ".join([*parts, *(f"{words(key)} {value}" for key, value in stage.metrics.items())])


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _time_left(stage: Running) -> str:
    return "" if stage.seconds_left is None else f"{duration(stage.seconds_left)} left"
