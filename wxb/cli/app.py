"""The command `wxb`: what the two engines don't do."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from wxb.cli import chat as conversation
from wxb.cli import listing, mask, reference, search
from wxb.cli import predict as prediction
from wxb.cli import watch as watching
from wxb.cli.helping import unwrapped
from wxb.cli.new import command as new
from wxb.cli.options import AsJson
from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import read_json
from wxb.core.params import Params, load, read_yaml
from wxb.project import (
    doctor,
    engines,
    inventory,
    leftovers,
    profiles,
    provenance,
    readme,
    revisions,
    staleness,
)
from wxb.project.completion import names, require_shell
from wxb.project.estimate import command as estimating
from wxb.project.reproduction import command as reproduction
from wxb.project.root import at_root
from wxb.reporting import terminal
from wxb.tasks import exports

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
UNWRAPPED = 10_000  # columns of a file or pipe

Study = Annotated[
    str,
    typer.Argument(
        help="a study or lesson of params.yaml, or all",
        autocompletion=names("studies", "lessons", more=("all",)),
    ),
]


def tell_version(asked: bool) -> None:
    """Print the installed version, and end."""
    if asked:
        from importlib.metadata import version

        print(f"wxb {version('wxb')}")
        raise typer.Exit


@app.callback()
def describe(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=tell_version, is_eager=True, help="show the version and exit"
        ),
    ] = False,
) -> None:
    """Train and compare models reproducibly. The work itself: `dvc repro` or `snakemake`."""


@app.command()
def params(
    profile: Annotated[
        str | None, typer.Argument(help="a file of params/, such as demo or conll2003")
    ] = None,
) -> None:
    """Set the values of params/PROFILE.yaml in params.yaml; without PROFILE, check params.yaml.

    A profile can set sizes and add blocks. Blocks of the previous profile are removed. params.yaml
    cannot be changed while a run of dvc or snakemake is at work in the project.
    """
    if profile is None:
        load()
        print("params.yaml is valid")
        return
    switched = profiles.switch(profile)
    if switched.changes:
        rows = ((each.key, str(each.before), str(each.after)) for each in switched.changes)
        title = f"params.yaml is now {profile}"
        terminal.show(terminal.table(["key", "before", "after"], rows, title=title))
    for what in ("added", "removed"):
        if blocks := getattr(switched, what):
            print(f"{what}: {', '.join(blocks)}")
    for other, why in switched.kept.items():
        print(f"kept: the blocks of {other}, as {why} is not of params/{other}.yaml")
    if not switched.size:
        print(f"params.yaml is {profile} already")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the blocks of params.yaml with their metrics, and whether they are stale.

    Example: wxb list --json | jq '.experiments | map_values(.metrics.f1)'
    """
    project = _project()
    there = project.overview()
    if as_json:
        terminal.show_json({**there, "unknown": project.stale.unknown})
        return
    terminal.show(*listing.overview(there, project.stale.unknown))


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="an experiment, backbone, corpus, study or lesson of params.yaml",
            autocompletion=names(*inventory.SECTIONS),
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show one block of params.yaml, and why it is stale.

    Prints metrics, training, cost, records, files, settings with defaults, and the commands
    that run it again.

    Example: wxb show ner-encoder
    """
    inventory.sections(load(), name)  # a slip is told before DVC is asked, which takes a second
    project = _project()
    found = project.details(name)
    if as_json:
        terminal.show_json({**found, "unknown": project.stale.unknown})
        return
    for section, facts in found.items():
        for part in listing.details(name, section, facts, project.stale.unknown):
            terminal.show(part, "")


@app.command("doctor")
def examine(as_json: AsJson = False) -> None:
    """Check that this machine and folder can run the project, and how to fix what cannot.

    Exit code 1 if there is a problem. Uses no network and changes nothing.

    Example: wxb doctor
    """
    findings = list(doctor.examine())
    healthy = all(finding.level != "problem" for finding in findings)
    if as_json:
        terminal.show_json(
            {"healthy": healthy, "checks": [finding._asdict() for finding in findings]}
        )
    else:
        terminal.show(doctor.table(findings))
    if not healthy:
        raise typer.Exit(1)


@app.command()
def table(
    study: Study = "all",
    everything: Annotated[
        bool, typer.Option("--all", help="every table, all tests, and the path of the page")
    ] = False,
) -> None:
    """Print the table of a study or lesson, and its conclusion.

    A terminal shows the columns that fit; --all prints every table. In a file or pipe, lines
    are not wrapped, and --all writes Markdown.
    """
    from wxb.cli.markdown import Terminal
    from wxb.reporting import costs, tables
    from wxb.reporting.charts import pairs

    params = load()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = UNWRAPPED
    for name in _pages(params, study):
        if name in params.lessons:
            metrics = read_json(_there(paths.metrics(paths.LESSONS, name), "lesson"))
            console.print(listing.measured(params.lessons[name].title, metrics))
        elif everything:
            comparison = read_json(_there(paths.study(name), "report"))
            text = tables.markdown(comparison, costs.read_training(comparison))
            console.print(Terminal(text)) if console.is_terminal else print(text, end="")
        else:
            comparison = read_json(_there(paths.study(name), "report"))
            console.print(Text(comparison["title"], style="bold"))
            console.print(listing.scores(*tables.columns(comparison), console.width))
            console.print(Text(pairs.claim(comparison)))
        if everything:
            print(f"\n{reproduction.page(name, params)}")


@app.command()
def report() -> None:
    """Join the pages of all studies and lessons into reports/index.html."""
    from wxb.reporting.index import write_index

    print(f"Index: {write_index(load()).resolve()}")


@app.command()
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
        Path | None,
        typer.Option(help="the file to write or replace; default: standard output"),
    ] = None,
) -> None:
    """Write labelled records for other tools: jsonl or csv of any task, and formats of its own.

    Where gold is spans in a text, there are three:

    conll: a token and its IOB2 tag a line, divided by a tab; an experiment's lines have the gold
    tag, then the predicted one, so that conlleval -d '\\t' scores them.

    jsonl: {"text", "spans": [{"start", "end", "label"}], "meta"} a line, as Prodigy reads it; an
    experiment's spans are the predicted ones with their score, and "gold" holds the gold ones.

    spacy: binary, for spacy train and spacy debug data; an experiment's doc.ents are the predicted
    spans, and doc.spans["gold"] the gold ones.
    """
    params = load()
    task = exports.task_of(params, name)
    chosen = exports.format_of(output, format_, task)
    content, _ = exports.formats(task)
    exports.write(content[chosen](exports.records(params, name, split)), output)


@app.command("card")
def card_(
    name: Annotated[
        str, typer.Argument(help="a trained experiment", autocompletion=names("experiments"))
    ],
    output: Annotated[
        Path | None, typer.Option(help="copy the model and its card to this new folder")
    ] = None,
) -> None:
    """Print the model card of an experiment: its data, scores, limits, and how to load it.

    Example: wxb card ner-encoder --output ner-encoder
    """
    from wxb.project.sharing import card

    if output:
        card.share(load(), name, output)
        print(f"Model and card: {output.resolve()}")
    else:
        print(card.card(load(), name))


@app.command("merge")
def merge_(
    name: Annotated[str, typer.Argument(help="a trained experiment that is an adapter")],
    output: Annotated[Path, typer.Option(help="a new folder for the merged model")],
) -> None:
    """Merge an adapter into its backbone, for programs that load full models.

    Example: wxb merge chat-lora --output chat-merged
    """
    from wxb.project.sharing import merging

    merging.merge(name, output)
    print(f"Model: {output.resolve()}")


app.add_typer(new.app, name="new")
app.command()(reproduction.compare)
app.command()(estimating.estimate)
# Which options an experiment has, its method says.
app.command(context_settings={"ignore_unknown_options": True})(prediction.predict)
app.command()(conversation.chat)
app.command()(mask.mask)
app.command()(mask.unmask)
app.command()(search.search)
app.command()(watching.watch)


@app.command()
def clean(
    dry_run: Annotated[bool, typer.Option(help="only say what would be removed")] = False,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished",
            help="also what stopped runs would go on from (the newest checkpoints of each stage"
            " in params.yaml, downloads that a corpus still lacks), and the vectors of searches",
        ),
    ] = False,
) -> None:
    """Remove what blocks no longer in params.yaml and killed runs left behind.

    What a stage that runs by itself works with is kept, and so is what params.yaml names. While a
    run of dvc or snakemake is at work in the project, nothing is removed.
    """
    every = list(leftovers.find(load(), staleness.running()))
    going = [left for left in every if not left.running and (unfinished or not left.use)]
    with nullcontext() if dry_run else engines.no_run("nothing was removed"):
        for left in going:
            print(left.path)
            if not dry_run:
                leftovers.remove(left.path)
    print(f"{len(going)} {'to remove' if dry_run else 'removed'}")
    kept = [left for left in every if left not in going]
    for left in kept:
        why = f"{left.running} is running" if left.running else left.use
        print(f"kept: {left.path} ({why})")
    if any(not left.running for left in kept):
        print("`wxb clean --unfinished` removes what no stage works with now, too")


@app.command("readme")
def refresh_readme() -> None:
    """Refresh the generated parts of the READMEs and docs/: results, stages and commands.

    Results are those in git's index. Records in reports/provenance.json which machines made them.
    """
    provenance.record(load(), revisions.index())
    for path in readme.PAGES:
        readme.refresh(path)
    reference.PATH.write_text(reference.page(app), encoding="utf-8")


# Those that take inputs of the folder they are called in find the project by themselves.
for _command in (*app.registered_commands, *new.app.registered_commands):
    if _command.callback not in (prediction.predict, mask.mask, mask.unmask, None):
        _command.callback = at_root(_command.callback)
    _command.help = unwrapped(_command.callback)


def _project() -> inventory.Project:
    """The project in this folder, as it is now."""
    params = load()
    dag = read_yaml(Path("dvc.yaml"))["stages"]
    return inventory.Project(params, dag, staleness.staleness(), staleness.running())


def _pages(params: Params, name: str) -> list[str]:
    """The studies and lessons of this name, or all."""
    names = {**params.studies, **params.lessons}
    if name == "all":
        return list(names)
    if name not in names:
        raise WxbError(f"params.yaml has no study or lesson {name!r}{choices(name, names)}")
    return [name]


def _there(path: Path, verb: str) -> Path:
    """A table that a stage has written."""
    if not path.exists():
        raise WxbError(f"{path}: not there yet; run `dvc repro {verb}@{path.stem}` first")
    return path


def main() -> None:
    """Run the command line; a WxbError is told without a traceback, exit code 1."""
    # As in stages: nothing is compiled, and loading torch's compiler takes half as long as torch.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    try:
        if {"--install-completion", "--show-completion"} & {*sys.argv[1:]}:
            require_shell()
        app(prog_name="wxb")
    except WxbError as error:
        print(f"wxb: {error}", file=sys.stderr)
        sys.exit(1)
