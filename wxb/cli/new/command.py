"""`wxb new`: from a file to a running study without reading the schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wxb.core.params import load
from wxb.core.params.tasks import names
from wxb.reporting.charts.formatting import shortened

if TYPE_CHECKING:
    from wxb.cli.new.trial import Trial

app = typer.Typer(no_args_is_help=True)
SHOWN = 12  # counts by name
DryRun = Annotated[bool, typer.Option("--dry-run", help="only show what would be written")]


@app.callback()
def new() -> None:
    """Write blocks into params.yaml: a corpus, an experiment, a whole study.

    Nothing that is there is overwritten, and what was guessed is said.

    Example: wxb new corpus letters.jsonl && wxb new study letters --corpus letters
    """


@app.command()
def corpus(
    path: Annotated[
        Path,
        typer.Argument(help="a file or folder: JSON, JSONL, CSV, TSV, Parquet, columns, audio"),
    ],
    name: Annotated[
        str | None, typer.Option(help="of the corpus; default: the file's, up to the first dot")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="what is to be learnt of it; default: what its fields speak for",
            autocompletion=names,
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Look at a file or folder, and write the block of params.yaml that reads it.

    It finds out the task, the format, the fields or columns, whether offsets fit, which field
    groups records and which files are published splits; then the project's reader reads all records
    by it. Lines that were guessed say so.

    Example: wxb new corpus letters.jsonl --dry-run

    Example: wxb new corpus reviews.csv --task classification

    Example: wxb new corpus ../conll2003 --name news
    """
    from wxb.cli.new import corpus as looking
    from wxb.project import params_file

    load()
    text = params_file.read()
    params_file.check_new(text, "corpora", name or looking.name_of(path), "give another by --name")
    found = looking.find_out(path, name, task)
    changed = params_file.with_block(text, "corpora", found.block)
    if dry_run:
        params_file.check_text(changed)
    else:
        params_file.write(changed)
    print(found.block)
    told = Console(stderr=dry_run)  # what is written alone on standard output
    for note in found.notes:
        told.print(Text(note))
    told.print(_seen(found.trial))
    if not dry_run:
        print(f"params.yaml: added corpora.{found.name}; check the lines that say `guessed`, then:")
        print(f"  dvc repro preprocess@{found.name}")
        print(f"  wxb new study {found.name} --corpus {found.name}")


@app.command()
def experiment(
    name: Annotated[str, typer.Argument(help="of the new experiment")],
    study: Annotated[str, typer.Option(help="a study of params.yaml, whose list it joins")],
    corpus: Annotated[
        str | None, typer.Option(help="a corpus of params.yaml; default: the study's")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="a backbone of params.yaml")] = None,
    like: Annotated[str | None, typer.Option(help="the experiment to copy")] = None,
    dry_run: DryRun = False,
) -> None:
    """Write an experiment, and add it to its study's list.

    Without --like and --backbone it fine-tunes a pretrained encoder if its task has one, the corpus
    is English and the encoder installed, else it is a copy of the study's first.

    Example: wxb new experiment mine-large --study mine --backbone large

    Example: wxb new experiment ner-slow --study ner --like ner-encoder
    """
    from wxb.cli.new import studies
    from wxb.project import params_file

    text, params = params_file.read(), load()
    first, *_ = params.named("studies", study).experiments
    chosen = corpus or params.experiments[first].corpus
    task = params.named("corpora", chosen).task
    if backbone:
        params.named("backbones", backbone)
    why = None
    if not like and not backbone:
        pretrained, why = studies.pretrained(params, chosen)
        like = None if pretrained else first
        why += f"; a copy of {like}" if like else ""
    changed = studies.experiment(text, name, study, chosen, task, like=like, backbone=backbone)
    _finish(text, changed, why, study, dry_run=dry_run)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="of the new study")],
    corpus: Annotated[str, typer.Option(help="a corpus of params.yaml")],
    title: Annotated[
        str | None, typer.Option(help="the question that it answers, above its table")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Write a study of a corpus: its backbones, its experiments, and the study itself.

    Which, the task says: they begin with what the corpus itself has, and where its task can use a
    really pretrained encoder, which is English and installed, with that one, too.

    Example: wxb new study mine --corpus mine --title "Who writes from where?"
    """
    from wxb.cli.new import studies
    from wxb.project import params_file

    text, params = params_file.read(), load()
    pretrained, why = studies.pretrained(params, corpus)
    task = params.named("corpora", corpus).task
    changed = studies.study(text, name, corpus, task, title, pretrained=pretrained)
    _finish(text, changed, why, name, dry_run=dry_run)


@app.command()
def sweep(
    name: Annotated[str, typer.Argument(help="of the new study")],
    like: Annotated[str, typer.Option(help="the experiment to copy")],
    set_: Annotated[
        list[str], typer.Option("--set", help="a key of it and its values: KEY=VALUE,VALUE")
    ],
    seeds: Annotated[
        str, typer.Option(help="of training: each combination is trained once with each")
    ] = "1",
    title: Annotated[
        str | None, typer.Option(help="the question that it answers, above its table")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Write a study that tries every combination of values of an experiment's settings.

    All of them share what lies before the experiment: corpus, tokenizer and backbone. With several
    seeds the table has means with their deviation, and tests compare over seeds.

    Example: wxb new sweep rates --like ner-encoder --set training.learning_rate=0.001,0.002,0.004
    """
    from wxb.cli.new import sweeps
    from wxb.project import params_file

    load()
    text, values = params_file.read(), sweeps.grid(set_)
    title = title or f"Which {' and '.join(values)} suit {like} best?"
    numbers = sweeps.grid([f"seeds={seeds}"])["seeds"]
    _finish(
        text, sweeps.sweep(text, name, like, values, numbers, title), None, name, dry_run=dry_run
    )


def _finish(text: str, changed: str, why: str | None, study: str, *, dry_run: bool) -> None:
    """Write params.yaml, or only check it, and tell what is new and which command runs it."""
    import difflib

    from wxb.project import params_file

    if dry_run:
        params_file.check_text(changed)
        lines = difflib.unified_diff(text.splitlines(), changed.splitlines(), n=0, lineterm="")
        print("\n".join(line[1:] for line in lines if line[0] == "+" and line[:3] != "+++"))
    else:
        params_file.write(changed)
        before = params_file.names(text)
        added = [name for name in params_file.names(changed) if name not in before]
        print(f"params.yaml: added {', '.join(added)}")
    if why:
        print(why)
    if not dry_run:
        print(f"Run it: snakemake --cores 2 {study}    (or: make run STUDY={study})")


def _seen(trial: Trial) -> Table:
    """What the reader made of the records."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    kept = f"{trial.kept:,} of {trial.kept + trial.rejects.total():,} records"
    table.add_row("read", Text(kept))
    for reason, count in trial.rejects.most_common():
        table.add_row("rejected", Text(f"{count:,}: {reason} ({trial.examples[reason]})"))
    counts = {"repaired": trial.repaired, **trial.counts, "languages": trial.languages}
    for label, found in counts.items():
        if found:
            table.add_row(label.replace("_", " "), Text(_told(found)))
    if trial.texts and not trial.languages:
        table.add_row(
            "language", "English, by its words" if trial.english else "not English, by its words"
        )
    if trial.unlabelled:
        table.add_row("unlabelled", f"{trial.unlabelled:,}, for pretraining only")
    if trial.repeated:
        table.add_row(
            "repeated", f"{trial.repeated:,} by their text; published test splits keep theirs"
        )
    table.add_row("groups", f"{trial.groups:,}, each in one split")
    return table


def _told(found: Any) -> str:
    """A count, or the largest of several by name."""
    if not isinstance(found, Mapping):
        return f"{found:,}"
    several = [f"{value} {count:,}" for value, count in Counter(found).most_common()]
    return shortened(several, SHOWN)
