"""`wxb new`: write blocks for corpora, experiments, studies and sweeps into params.yaml."""

from __future__ import annotations

import sys
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
from wxb.project import params_file
from wxb.reporting.charts.formatting import shortened

if TYPE_CHECKING:
    from wxb.cli.new.corpus import Trial
    from wxb.cli.new.studies import Recipe, Size

app = typer.Typer(no_args_is_help=True)
MAX_COUNTS = 12  # of one row of the summary
DryRun = Annotated[bool, typer.Option("--dry-run", help="only show what would be written")]


@app.callback()
def new() -> None:
    """Add blocks to params.yaml: a corpus, an experiment, a study or a sweep.

    Never overwrites blocks. What it does not recognize it asks for by an option.

    Example: wxb new corpus letters.jsonl && wxb new study letters --corpus letters
    """


@app.command()
def corpus(
    path: Annotated[
        Path,
        typer.Argument(help="a file or folder: JSON, JSONL, CSV, TSV, Parquet, CoNLL, audio"),
    ],
    name: Annotated[
        str | None, typer.Option(help="name of the corpus; default: that of the file")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="task of the corpus; default: the one that fits", autocompletion=names),
    ] = None,
    input_: Annotated[
        str | None, typer.Option("--input", help="field of texts, questions, sources or audio")
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(help="field of spans, classes, answers, translations or transcripts"),
    ] = None,
    start: Annotated[str | None, typer.Option(help="key of spans: where they start")] = None,
    end: Annotated[str | None, typer.Option(help="key of spans: one past the last")] = None,
    tag: Annotated[
        str | None, typer.Option(help="key of spans: the type; or the column of tags, from 0")
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="field of speakers")] = None,
    group: Annotated[
        str | None,
        typer.Option(help="field of groups, each of which stays in one split; - for none"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="names of the columns of a table without a header: text,label"),
    ] = None,
    class_per_file: Annotated[
        bool, typer.Option("--class-per-file", help="each file has the records of a class")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="find spans with wrong offsets by their values")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Add a block to params.yaml that reads a file or folder.

    Recognizes field names such as text and label, and exports of annotation tools. Otherwise lists
    the fields and the options that name them, and exits with 2. Reads all records with the block.

    Example: wxb new corpus letters.jsonl --dry-run

    Example: wxb new corpus reviews.csv --input body --gold mood

    Example: wxb new corpus ../conll2003 --name news
    """
    from wxb.cli.new.corpus import corpus_name, new_corpus
    from wxb.tasks.recognition import FlagError

    load()
    text = params_file.read()
    params_file.check_name_is_free(
        text, "corpora", name or corpus_name(path), "give another by --name"
    )
    options = {"input": input_, "gold": gold, "start": start, "end": end, "tag": tag}
    options |= {"speaker": speaker, "group": group, "columns": columns}
    flags = {flag: value for flag, value in options.items() if value is not None}
    switches = {"class-per-file": class_per_file, "repair": repair}
    flags |= {flag: "" for flag, is_set in switches.items() if is_set}
    try:
        added = new_corpus(path, name, task, flags)
    except FlagError as question:
        print(question, file=sys.stderr)
        raise typer.Exit(2) from None
    changed = params_file.add_block(text, "corpora", added.block)
    if dry_run:
        params_file.check_text(changed)
    else:
        params_file.write(changed)
    print(added.block)
    console = Console(stderr=dry_run)  # a dry run prints only the block to standard output
    for note in added.notes:
        console.print(Text(note))
    console.print(_summary(added.trial))
    if not dry_run:
        print(f"params.yaml: added corpora.{added.name}; check it, then:")
        print(f"  dvc repro preprocess@{added.name}")
        print(f"  wxb new study {added.name} --corpus {added.name}")


@app.command()
def experiment(
    name: Annotated[str, typer.Argument(help="name of the new experiment")],
    study: Annotated[str, typer.Option(help="a study of params.yaml, which gets the experiment")],
    corpus: Annotated[
        str | None, typer.Option(help="a corpus of params.yaml; default: the study's")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="a backbone of params.yaml")] = None,
    like: Annotated[str | None, typer.Option(help="the experiment to copy")] = None,
    dry_run: DryRun = False,
) -> None:
    """Add an experiment to params.yaml and to its study.

    Without --like and --backbone, it fine-tunes a pretrained encoder if the task has one, it is
    installed and the corpus is English. Otherwise it is a copy of the study's first experiment.

    Example: wxb new experiment mine-large --study mine --backbone large

    Example: wxb new experiment ner-slow --study ner --like ner-encoder
    """
    from wxb.cli.new import studies

    text, params = params_file.read(), load()
    first, *_ = params.block("studies", study).experiments
    corpus = corpus or params.experiments[first].corpus
    task = params.block("corpora", corpus).task
    if backbone:
        params.block("backbones", backbone)
    reason = ""
    if not like and not backbone:
        pretrained, reason = studies.can_use_pretrained(
            params, corpus, f"wxb new experiment {name} --study {study} --corpus {corpus}"
        )
        if not pretrained:
            like, reason = first, f"{reason}; a copy of {first}"
    changed = studies.add_experiment(text, name, study, corpus, task, like=like, backbone=backbone)
    _finish(text, changed, study, reason, dry_run=dry_run)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="name of the new study")],
    corpus: Annotated[
        str | None, typer.Option(help="a corpus of params.yaml; default: an existing study's")
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="the question it answers, shown above its table")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Add a study of a corpus to params.yaml, with its experiments and backbones.

    The template of the task has experiments that start from the corpus alone, and for English
    corpora from a pretrained encoder, if it is installed. An existing study gets the experiments
    that it lacks. Prints what each is for, and about the minutes of its training here.

    Example: wxb new study mine --corpus mine --title "Who writes from where?"
    """
    from wxb.cli.new import studies

    text, params = params_file.read(), load()
    if corpus is None:
        if name not in params.studies:
            raise typer.BadParameter("missing; name a corpus of params.yaml", param_hint="--corpus")
        corpus = params.experiments[params.studies[name].experiments[0]].corpus
    block = params.block("corpora", corpus)
    if name not in params.studies:
        studies.recipe_of(block.task, name, corpus)  # before the records are read
    trial = studies.read_records(corpus, block)
    size = studies.measure(corpus, block, trial)
    pretrained, reason = studies.can_use_pretrained(
        params, corpus, f"wxb new study {name} --corpus {corpus}", trial
    )
    changed = studies.add_study(
        text, name, corpus, block.task, title, pretrained=pretrained, size=size
    )
    _finish(text, changed, name, reason, dry_run=dry_run)
    recipe = studies.recipe_of(block.task, name, corpus)
    Console(stderr=dry_run).print(_forecast(changed, name, recipe, size))
    for advice in recipe.advise(size, has_checkpoint=pretrained) if size else ():
        print(f"Note: {advice}", file=sys.stderr)


def _forecast(text: str, study: str, recipe: Recipe, size: Size | None) -> Table:
    """A table of the experiments of a study: the purpose of each, and the minutes of training."""
    from wxb.cli.new.studies import training_seconds

    params = params_file.check_text(text)
    table = Table("row", "training", "what it is for", box=None, padding=(0, 2, 0, 0))
    for name in params.studies[study].experiments:
        row = recipe.rows.get(name)
        seconds = training_seconds(params, name, row, size.records) if size else None
        minutes = "unknown" if seconds is None else f"{max(1, round(seconds / 60))} min"
        time = "< 1 min" if seconds is not None and seconds < 45 else minutes
        table.add_row(name, time, Text(row.purpose if row else ""))
    return table


@app.command()
def sweep(
    name: Annotated[str, typer.Argument(help="name of the new study")],
    like: Annotated[str, typer.Option(help="the experiment to copy")],
    set_: Annotated[
        list[str], typer.Option("--set", help="one of its keys with values: KEY=VALUE,VALUE")
    ],
    seeds: Annotated[str, typer.Option(help="seeds of training, such as 1,2,3")] = "1",
    title: Annotated[
        str | None, typer.Option(help="the question it answers, shown above its table")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Add a study of a grid of settings to params.yaml: one experiment per combination.

    The experiments share corpus, tokenizer and backbone. With several seeds, tables show means and
    standard deviations, and tests include the variation between seeds.

    Example: wxb new sweep rates --like ner-encoder --set training.learning_rate=0.001,0.002,0.004
    """
    from wxb.cli.new import sweeps

    load()
    text, grid = params_file.read(), sweeps.parse_grid(set_)
    title = title or f"Which {' and '.join(grid)} suit {like} best?"
    all_seeds = sweeps.parse_grid([f"seeds={seeds}"])["seeds"]
    changed = sweeps.add_sweep(text, name, like, grid, all_seeds, title)
    _finish(text, changed, name, dry_run=dry_run)


def _finish(text: str, changed: str, study: str, reason: str = "", *, dry_run: bool) -> None:
    """Write the changed params.yaml, or only check it; print the changes and the next command."""
    import difflib

    if dry_run:
        params_file.check_text(changed)
        lines = difflib.unified_diff(text.splitlines(), changed.splitlines(), n=0, lineterm="")
        print("\n".join(line[1:] for line in lines if line[0] == "+" and line[:3] != "+++"))
    else:
        params_file.write(changed)
        before = params_file.block_names(text)
        added = [name for name in params_file.block_names(changed) if name not in before]
        print(f"params.yaml: added {', '.join(added)}")
    if reason:
        print(reason)
    if not dry_run:
        print(f"Run it: snakemake --cores 2 {study}    (or: make run STUDY={study})")


def _summary(trial: Trial) -> Table:
    """A table of the records that the reader kept and rejected."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    total = trial.kept + trial.rejects.total()
    table.add_row("read", f"{trial.kept:,} of {total:,} records")
    for reason, count in trial.rejects.most_common():
        table.add_row("rejected", Text(f"{count:,}: {reason} ({trial.examples[reason]})"))
    counts = {"repaired": trial.repaired, **trial.counts, "languages": trial.languages}
    for label, count in counts.items():
        if count:
            table.add_row(label.replace("_", " "), Text(_format_count(count)))
    if trial.texts and not trial.languages:
        table.add_row(
            "language", "English, by its words" if trial.is_english else "not English, by its words"
        )
    if trial.unlabelled:
        table.add_row("unlabelled", f"{trial.unlabelled:,}, for pretraining only")
    if trial.repeated:
        table.add_row(
            "repeated", f"{trial.repeated:,} with the same text, kept only in published test splits"
        )
    table.add_row("groups", f"{trial.groups:,}, each in one split")
    return table


def _format_count(count: Any) -> str:
    """Format a number, or the most frequent names with their counts: "good 12, bad 3"."""
    if not isinstance(count, Mapping):
        return f"{count:,}"
    return shortened([f"{name} {n:,}" for name, n in Counter(count).most_common()], MAX_COUNTS)
