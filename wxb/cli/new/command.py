"""`wxb new`: write blocks for corpora, experiments, studies and sweeps into params.yaml."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from wxb.core import paths
from wxb.core.params import PARAMS, Params, check, load, read_yaml
from wxb.core.params.tasks import corpus_class
from wxb.project import params_file
from wxb.project.profiles import blocks_by_key
from wxb.reporting.terminal import table

app = typer.Typer(no_args_is_help=True)
DryRun = Annotated[bool, typer.Option("--dry-run", help="only show what would be written")]
NewStudy = Annotated[str, typer.Argument(help="name of the new study")]
Title = Annotated[str | None, typer.Option(help="the question it answers, shown above its table")]


@app.callback()
def new() -> None:
    """Add blocks to params.yaml: a corpus, an experiment, a study or a sweep.

    Never overwrites blocks. Names the option for what it does not recognize.

    Example: wxb new corpus letters.jsonl && wxb new study letters --corpus letters
    """


def corpus(
    path: Annotated[
        Path, typer.Argument(help="a file or folder: JSON, JSONL, CSV, TSV, Parquet, CoNLL, audio")
    ],
    name: Annotated[str | None, typer.Option(help="its name; default: that of the file")] = None,
    task: Annotated[str | None, typer.Option(help="its task; default: the one that fits")] = None,
    input_: Annotated[
        str | None,
        typer.Option("--input", "--audio", help="field of texts, questions, sources or audio"),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(help="field of spans, classes, answers, translations or transcripts"),
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="key of spans: where they start; field of seconds in audio")
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="key of spans: one past the last; field of seconds in audio")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="key of types, or column of tags, from 0")] = None,
    speaker: Annotated[str | None, typer.Option(help="field of speakers")] = None,
    group: Annotated[
        str | None, typer.Option(help="field of groups, kept together; -: none")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="names, if no header: text,label")] = None,
    annotator: Annotated[str | None, typer.Option(help="whose labels count, if several")] = None,
    offsets: Annotated[
        str | None,
        typer.Option(help="characters, crlf-as-one, utf-16, utf-8 or end-included; not checked"),
    ] = None,
    class_per_file: Annotated[
        bool, typer.Option("--class-per-file", help="each file has the records of a class")
    ] = False,
    repair: Annotated[bool, typer.Option("--repair", help="find spans by their values")] = False,
    dry_run: DryRun = False,
) -> None:
    """Add a block to params.yaml that reads a file or folder.

    Recognizes field names such as text and label, and exports of annotation tools. Otherwise lists
    the fields and the options that name them, and exits with 2. Reads all records with the block.

    Example: wxb new corpus letters.jsonl --dry-run

    Example: wxb new corpus reviews.csv --task classification --input body --gold mood

    Example: wxb new corpus ../conll2003 --name news --tag 3
    """
    from wxb.cli.new.corpus import corpus_name, new_corpus, summary_table
    from wxb.cli.new.studies import add_block
    from wxb.tasks.recognition import FlagError

    seed = load().seed
    options = {"input": input_, "gold": gold, "start": start, "end": end, "tag": tag}
    options |= {"speaker": speaker, "group": group, "columns": columns}
    options |= {"annotator": annotator, "offsets": offsets}
    options |= {"class-per-file": "" if class_per_file else None, "repair": "" if repair else None}
    flags = {flag: value for flag, value in options.items() if value is not None}
    name = name or corpus_name(path)
    try:
        block, trial = new_corpus(path, task, flags)
    except FlagError as question:
        print(question, file=sys.stderr)
        raise typer.Exit(2) from None
    _edit_params(lambda content: add_block(content, "corpora", name, block), dry_run)
    # A dry run prints only the block to standard output.
    settings = corpus_class(block["task"]).model_validate(block)
    Console(stderr=dry_run).print(summary_table(trial, settings, seed))
    if not dry_run:
        print(f"Check corpora.{name}, then:\n  dvc repro preprocess@{name}")
        study = f"my-{name}" if paths.study(name).exists() else name  # has committed scores
        print(f"  wxb new study {study} --corpus {name}")


def experiment(
    name: Annotated[str, typer.Argument(help="name of the new experiment")],
    study: Annotated[str, typer.Option(help="a study of params.yaml, which gets the experiment")],
    backbone: Annotated[str | None, typer.Option(help="a backbone of params.yaml")] = None,
    method: Annotated[str | None, typer.Option(help="a method, with its default `model`")] = None,
    like: Annotated[
        str | None,
        typer.Option(help="the experiment to copy; default: one for --backbone, or the first"),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Add a copy of an experiment to params.yaml and its study; backbone and method can change.

    Example: wxb new experiment mine-large --study mine --backbone large

    Example: wxb new experiment ner-slow --study ner --like ner-encoder
    """
    from wxb.cli.new.studies import add_experiment

    params = load()
    params.block("studies", study)
    for section, value in (("experiments", like), ("backbones", backbone)):
        if value:
            params.block(section, value)
    changes: dict[str, Any] = {"backbone": backbone} if backbone else {}
    changes |= {"method": method, "model": {}} if method else {}
    _edit_params(lambda content: add_experiment(content, name, study, like, changes), dry_run)
    _print_run_command(study, dry_run=dry_run)


def study(
    name: NewStudy,
    corpus: Annotated[
        str | None, typer.Option(help="a corpus of params.yaml; default: an existing study's")
    ] = None,
    title: Title = None,
    language: Annotated[
        str | None,
        typer.Option(help="language of the corpus, such as en; default: that of its records"),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Add a study of a corpus to params.yaml, with its experiments and backbones.

    The template of the task has experiments that start from the corpus alone, and from a pretrained
    model that reads its language, if one is installed. An existing study gets the experiments that
    it lacks. Prints what each is for, and about the minutes of its training on one CPU thread.

    Example: wxb new study mine --corpus mine --title "Who writes from where?" --language en
    """
    from wxb.cli.new import studies

    params = load()
    if corpus is None:
        if name not in params.studies:
            raise typer.BadParameter("missing; name a corpus of params.yaml", param_hint="--corpus")
        corpus = params.experiments[params.studies[name].experiments[0]].corpus
    block = params.block("corpora", corpus)
    trial = studies.read_corpus(corpus, block)
    window = studies.window_seconds(block, trial)
    first = studies.first_study(block.task, name, corpus, window=window)
    records = studies.count_training_records(corpus, block, trial)
    known, reason = studies.pretrained_language(corpus, block, language, trial)
    options: Any = {"language": known, "window": window, "records": records}
    changed = _edit_params(
        lambda content: studies.add_or_extend_study(content, name, corpus, title, **options),
        dry_run,
    )
    rows = []
    for key in changed.studies[name].experiments:
        if row := first["rows"].get(key):
            minutes = "unknown"
            if records:
                epochs = getattr(changed.experiments[key].training, "epochs", 1)
                seconds = row["seconds"] * records * epochs / 1000 * window / studies.WINDOW
                minutes = f"{round(seconds / 60)} min" if seconds >= 45 else "< 1 min"
            rows.append((key, minutes, row["purpose"]))
    Console(stderr=dry_run).print(table(["row", "training", "what it is for"], rows))
    left_out = [key for key in first["experiments"] if key not in changed.experiments]
    if left_out and reason:
        print(f"Left out: {', '.join(left_out)}: {reason}", file=sys.stderr)
    if advice := first.get("advice"):
        print(f"Note: {advice}", file=sys.stderr)
    _print_run_command(name, dry_run=dry_run)


def sweep(
    name: NewStudy,
    like: Annotated[str, typer.Option(help="the experiment to copy")],
    set_: Annotated[
        list[str], typer.Option("--set", help="one of its keys with values: KEY=VALUE,VALUE")
    ],
    seeds: Annotated[str, typer.Option(help="seeds of training, such as 1,2,3")] = "1",
    title: Title = None,
    dry_run: DryRun = False,
) -> None:
    """Add a study of a grid of settings to params.yaml: one experiment per combination.

    The experiments share corpus, tokenizer and backbone. With several seeds, tables show means and
    standard deviations, and tests include the variation between seeds.

    Example: wxb new sweep rates --like ner-encoder --set training.learning_rate=0.001,0.002,0.004
    """
    from wxb.cli.new.studies import add_sweep, parse_grid

    load().block("experiments", like)
    grid = parse_grid(set_)
    title = title or f"Which {' and '.join(grid)} suit {like} best?"
    all_seeds = parse_grid([f"seeds={seeds}"])["seeds"]
    _edit_params(lambda content: add_sweep(content, name, like, grid, all_seeds, title), dry_run)
    _print_run_command(name, dry_run=dry_run)


def _edit_params(edit: Callable[[dict[str, Any]], Any], dry_run: bool) -> Params:
    """Edit params.yaml, or only check. Prints the added block, of several the names, if written."""
    before, content = read_yaml(PARAMS), read_yaml(PARAMS)
    edit(content)
    if not dry_run:
        params_file.write(content)
    params = check(content)
    old, new = blocks_by_key(before), blocks_by_key(content)
    added = {".".join(k): params_file.to_yaml({k[-1]: new[k]}) for k in new if k not in old}
    if dry_run or len(added) == 1:
        print("\n".join(added.values()))
    if not dry_run:
        print(f"params.yaml: added {', '.join(sorted(added))}")
    return params


def _print_run_command(study: str, *, dry_run: bool) -> None:
    if not dry_run:
        print(f"Run it: snakemake --cores 2 {study}    (or: make run STUDY={study})")
