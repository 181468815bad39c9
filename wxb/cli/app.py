"""The command `wxb`: everything around runs of `dvc repro` and `snakemake`."""

import inspect
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from wxb.cli import listing
from wxb.cli.chat import chat
from wxb.cli.mask import mask, unmask
from wxb.cli.new import command as new
from wxb.cli.options import AsJson, StudyOrAll, TextCommand, expand_all
from wxb.cli.predict import predict
from wxb.cli.search import absolute_folder, search
from wxb.cli.watch import watch
from wxb.core import compatibility, paths
from wxb.core.errors import WxbError, counted, require_output, storage_error
from wxb.core.files import read_json, remove
from wxb.core.params import load
from wxb.project import doctor, engines, inventory, profiles, sharing, status
from wxb.project.comparison import compare_command
from wxb.project.leftovers import find_leftovers
from wxb.project.root import at_root, require_own_code
from wxb.project.verify import verify_command
from wxb.reporting import costs, pairs, tables, terminal
from wxb.runtime import locks, signals
from wxb.tasks import exports

NO_REWRAP = "\b"  # as in Click: marks a paragraph that keeps its lines

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(is_requested: bool) -> None:
    """Print the installed version and exit, if it is requested."""
    if is_requested:
        print(f"wxb {metadata.version('wxb')}")
        raise typer.Exit


@app.callback()
def before_each_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="print the version and exit"
        ),
    ] = False,
) -> None:
    """Train and compare models reproducibly. Start with `make run`, then `wxb table`."""
    signals.restore_keyboard_interrupt()  # typer handles it from here on
    require_own_code()


def params(
    profile: Annotated[
        str | None, typer.Argument(help="a file of params/, such as demo or conll2003")
    ] = None,
) -> None:
    """Set the values of params/PROFILE.yaml in params.yaml; without PROFILE, check params.yaml.

    A profile can set sizes and add blocks. Blocks of other profiles are removed unless one was
    changed. While dvc or snakemake runs in the project, params.yaml is not changed.
    """
    if profile is None:
        _check_sources()
        print("params.yaml is valid")
        return
    switched = profiles.switch(profile)
    for what in ("added", "removed", "changed"):
        if blocks := getattr(switched, what):
            print(f"{what}: {', '.join(blocks)}")
    for other in switched.kept:
        print(f"kept: blocks of params/{other}.yaml; one of them was changed")
    print(f"params.yaml is {'now' if any(switched[:3]) else 'already'} {profile}")
    _check_sources()


def list_(as_json: AsJson = False) -> None:
    """List the blocks of params.yaml with their metrics, and whether they are stale.

    Example: wxb list --json | jq '.experiments | map_values(.metrics.f1)'
    """
    project = _project()
    blocks = project.overview()
    if as_json:
        terminal.show_json({**blocks, "unknown": project.staleness.why_unknown})
        return
    terminal.show(*listing.overview(blocks, project.staleness.why_unknown))


def show(
    name: Annotated[
        str, typer.Argument(help="an experiment, backbone, corpus, study or lesson of params.yaml")
    ],
    as_json: AsJson = False,
) -> None:
    """Show the blocks of params.yaml with a name, and why they are stale.

    Prints metrics, records, and settings with defaults.

    Example: wxb show ner-encoder
    """
    inventory.sections(load(), name)  # fails early: staleness takes a second
    project = _project()
    details = project.details(name)
    if as_json:
        terminal.show_json({**details, "unknown": project.staleness.why_unknown})
        return
    for section, facts in details.items():
        for part in listing.details(name, section, facts, project.staleness.why_unknown):
            terminal.show(part, "")


def examine(as_json: AsJson = False) -> None:
    """Check Python, the packages against the lock, torch and GPU, DVC's files and the disk.

    Repairs what a killed run left in DVC's files. Exit code 1 if there is a problem. Uses no
    network.

    Example: wxb doctor
    """
    findings = list(doctor.examine())
    problems = sum(finding.level == "problem" for finding in findings)
    if as_json:
        checks = map(doctor.Finding._asdict, findings)
        terminal.show_json({"healthy": not problems, "checks": [*checks]})
    else:
        count = counted(problems, "problems") if problems else "no problem"
        terminal.show(doctor.table(findings), f"{len(findings)} checks, {count}")
    if problems:
        raise typer.Exit(1)


def table(
    study: StudyOrAll = "all",
    everything: Annotated[
        bool, typer.Option("--all", help="print every table of studies as Markdown, and the leads")
    ] = False,
) -> None:
    """Print the table of a study or lesson, or of all: conclusion, and whether it is stale.

    The table has the tier and the main metric; --all prints every table, as Markdown. In a file or
    pipe, lines are not wrapped.
    """
    params = load()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000  # so that no line wraps
    shown = []
    for name in expand_all(params, study):
        is_lesson = name in params.lessons
        last = status.last_stage(name, params.lessons)
        path = paths.metrics(paths.LESSONS, name) if is_lesson else paths.study(name)
        if study == "all" and not path.exists():
            print(f"wxb: {path} does not exist; run `dvc repro {last}`", file=sys.stderr)
            continue
        require_output(path, last)
        content = read_json(path)
        if is_lesson:
            console.print(listing.metrics_table(params.lessons[name].title, content))
        elif everything:
            print(tables.markdown(content, costs.training_seconds(content)), end="")
        else:
            console.print(Text(content["title"], style="bold"))
            _, header, rows = tables.headline_table(content)
            console.print(terminal.table(header, rows, numeric=True))
            notes = [tables.reading_notes(content), pairs.conclusion(content)]
            console.print(Text("\n".join(filter(None, notes))))
        page = paths.page(name)
        missing = f"{page} does not exist; run `dvc repro {last}`"
        print(f"Page: {page.resolve() if page.exists() else missing}")
        shown.append(name)
    status.print_stale(shown, params.lessons)


def report() -> None:
    """Write reports/index.html, which links the pages of all studies and lessons."""
    from wxb.reporting.page import write_index

    print(f"Index: {write_index(load()).resolve()}")


def export(
    name: Annotated[
        str, typer.Argument(help="a corpus (its gold) or an experiment (its predictions on test)")
    ],
    split: Annotated[str, typer.Option(help="of a corpus: train, valid, test or another")] = "test",
    format_: Annotated[
        str | None,
        typer.Option("--format", help="default: from the suffix of --output, else jsonl"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="the file to write or replace; default: standard output")
    ] = None,
) -> None:
    """Write labelled records for other tools, as jsonl or csv; records with spans also as conll.

    conll: one token and its IOB2 tag per line, separated by a tab. Lines of an experiment have the
    gold tag, then the predicted one, as conlleval -d '\\t' expects.
    """
    exports.export(load(), name, split, format_, output)


def card(
    name: Annotated[str, typer.Argument(help="a trained experiment")],
    output: Annotated[
        Path | None, typer.Option(help="copy the model and its card to this new folder instead")
    ] = None,
) -> None:
    """Print the model card of an experiment: its data, scores, limits, and how to load it.

    Example: wxb card ner-encoder --output ner-encoder
    """
    if output:
        sharing.share(load(), name, output)
    print(f"Model and card: {output.resolve()}" if output else sharing.card(load(), name))


def merge(
    name: Annotated[
        str,
        typer.Argument(callback=absolute_folder, help="a trained experiment that is an adapter"),
    ],
    output: Annotated[Path, typer.Option(help="a new folder for the merged model")],
) -> None:
    """Merge an adapter into its backbone, for programs that load full models.

    Example: wxb merge chat-lora --output chat-merged
    """
    sharing.merge(name, output)
    print(f"Model: {output.resolve()}")


def clean(
    dry_run: Annotated[bool, typer.Option(help="only list what would be removed")] = False,
) -> None:
    """Remove outputs of blocks that are no longer in params.yaml, and of killed runs.

    Keeps outputs of blocks in params.yaml, the checkpoints that stopped runs would resume from, and
    files that git tracks. Removes nothing while a stage runs in the project, or if git reports an
    error, and no metrics, headlines and studies unless git tracks some.
    """
    removable = [*find_leftovers(load())]
    with nullcontext() if dry_run else engines.exclude_runs("nothing was removed"):
        for path in removable:
            print(path)
            if not dry_run:
                remove(path)
    print(f"{len(removable)} {'to remove' if dry_run else 'removed'}")


def _check_sources() -> None:
    """Check params.yaml and local checkpoints; print to stderr corpora without their `path`."""
    content = load()
    compatibility.require_checkpoints(content)
    for name, corpus in content.corpora.items():
        if not Path(corpus.path).exists():
            fault = f"{corpus.path} does not exist, so download@{name} fails"
            print(f"corpora.{name}.path: {fault}", file=sys.stderr)


def _project() -> inventory.Inventory:
    return inventory.Inventory(load(), status.staleness(), [*locks.running_stages()])


def _unwrapped_help(command: Callable[..., None]) -> str:
    """The docstring of a command, each paragraph on one line unless it begins with NO_REWRAP."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith(NO_REWRAP) else part.replace("\n", " ") for part in paragraphs
    )


def _add_commands(group: typer.Typer, panel: str, **commands: Callable[..., None]) -> None:
    """Add commands to a panel; all but predict, chat, mask and unmask run in the project root."""
    for name, command in commands.items():
        has_settings = command in (predict, chat)  # further options: of the experiment
        has_paths = has_settings or command in (mask, unmask)
        group.command(
            name,
            cls=TextCommand if has_settings else None,
            help=_unwrapped_help(command),
            rich_help_panel=panel,
            context_settings={"ignore_unknown_options": has_settings},
        )(command if has_paths else at_root(command))


_add_commands(app, "Your data", params=params, export=export)
app.add_typer(new.app, name="new", rich_help_panel="Your data")
_add_commands(new.app, "Use", corpus=new.corpus, experiment=new.experiment)
_add_commands(new.app, "Use", study=new.study, sweep=new.sweep)
_add_commands(app, "Look", list=list_, show=show, table=table, report=report)
_add_commands(app, "Look", compare=compare_command, watch=watch)
_add_commands(app, "Use", card=card, merge=merge, predict=predict, chat=chat)
_add_commands(app, "Use", mask=mask, unmask=unmask, search=search)
_add_commands(app, "Maintain", doctor=examine, verify=verify_command, clean=clean)


def main() -> None:
    """Run the command line without torch.compile. WxbError and an unusable disk exit with 1."""
    # As in stages: importing torch's compiler takes half as long as torch, and nothing uses it.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # also in other locales
    try:
        app(prog_name="wxb")
    except Exception as error:
        line = str(error) if isinstance(error, WxbError) else storage_error(error)
        if line is None:
            raise
        print(f"wxb: {line}", file=sys.stderr)
        sys.exit(1)
