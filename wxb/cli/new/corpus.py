"""The block of `corpora` for a file or folder, and the records that it reads."""

import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from unicodedata import normalize

from pydantic import ValidationError
from rich.console import RenderableType

from wxb import tasks
from wxb.cli.options import visible_files
from wxb.core.errors import WxbError, choices, shortened
from wxb.core.params.corpora import Corpus
from wxb.core.params.tasks import corpus_class
from wxb.corpora.division import CONFLICT, divide, drop_duplicates, require_labelled
from wxb.corpora.layout import data_files, has_record_suffix, is_description, refuse_unsupported
from wxb.corpora.near import units
from wxb.corpora.reading import Contents, read_prepared, summarize_rejects
from wxb.reporting.terminal import table
from wxb.tasks import recognition
from wxb.tasks.recognition import NO_GROUP, SPLITS, Block, Files, FlagError, Flags, escaped

EXAMPLES = 3  # records in the summary
MISSING = ("nan", "none", "null", "n/a", "#n/a", "na", "<na>", "-")  # how programs write it
OWN_FLAGS = dict.fromkeys(("tag", "offsets", "repair"), "ner") | {  # the only tasks that use a flag
    **dict.fromkeys(("start", "end"), "ner speech"),
    **{"speaker": "speech", "class-per-file": "classification"},
    "columns": "classification speech translation",
}


def new_corpus(
    path: Path, task: str | None = None, flags: Flags | None = None
) -> tuple[Block, Contents]:
    """The block of a file or folder, and the records that it reads.

    `task`: by default the only one that fits. `flags`: what the user named. Files named by split
    set `split`. Raises FlagError for missing or unfit flags, and WxbError if no record is kept.
    """
    flags = dict(flags or {})
    columns, annotator = flags.get("columns"), flags.pop("annotator", None)
    options = {"repair": "by-value"} if "repair" in flags else {}
    options |= {"annotator": annotator} if annotator else {}
    files = find_files(path, columns.split(",") if columns else (), annotator)
    if files.has_fields and path.is_dir():  # before it asks for the fields of tables to move
        _with_published_splits({}, path, files.members)
    task, block = _recognize(files, task, flags)
    if useless := [flag for flag in flags if task not in OWN_FLAGS.get(flag, task).split()]:
        raise FlagError(f"--{useless[0]} is for {OWN_FLAGS[useless[0]]}; found records of {task}")
    resolved, root = path.resolve(), Path.cwd()
    inside = resolved.relative_to(root) if resolved.is_relative_to(root) else path
    content: Block = {"task": task, "path": inside.as_posix(), **block, **options}
    try:
        if path.is_dir():
            files_read = data_files(path, corpus_class(task).model_validate(content))
            # The files of class folders are texts, whose names say nothing.
            entries = [f.parent if block.get("format") == "files" else f for f in files_read]
            content["split"] = _with_published_splits(block["split"], path, entries)
        if flags.get("group", NO_GROUP) not in (NO_GROUP, content["split"].get("by")):
            raise FlagError(f"--group: {path} cannot be split by {flags['group']!r}; leave it out")
        corpus = corpus_class(task).model_validate(content)
    except ValidationError as error:  # flags that the fields do not go with
        raise FlagError(f"{path}: {error.errors()[0]['msg']}") from None
    trial = read_records(path, corpus)
    if not trial.records:
        summary = summarize_rejects(trial.rejects, corpus)
        raise WxbError(f"{path}: every record would be rejected: {summary}, or name other fields")
    return content, trial


def _recognize(files: Files, task: str | None, flags: Flags) -> tuple[str, Block]:
    """The task that alone fits files, or alone has all flags, and the block; else FlagError."""
    known = recognition.supported_tasks()
    if task is not None and task not in known:
        raise WxbError(f"--task: found {task!r}{choices(task, known)}")
    try:
        fields = recognition.fields_of(files.rows)
    except FlagError as question:
        raise FlagError(f"{files.path}: {question}") from None
    except WxbError:  # raised below unless a task reads the files, such as a table without header
        fields = []
    for flag, name in flags.items() if fields else ():
        if flag in ("input", "gold") and name not in fields:
            raise FlagError(f"--{flag}: {files.path} has no field {name!r}{choices(name, fields)}")
    names = [task] if task else known
    fits: dict[str, Block | FlagError] = {}
    unreadable = []
    for name in names:
        try:
            content = recognition.recognize(name, files, flags)
        except FlagError as question:
            fits[name] = question
        except WxbError as error:  # another task may read the files
            unreadable.append(error)
        else:
            fits |= {name: content} if content else {}
    if unreadable and not fits:
        raise unreadable[0]
    if not fits:
        expected = "\n".join(f"  {n}: {recognition.field_names(n).expected}" for n in names)
        raise FlagError(
            f"{files.path}: found {files.summary()}\nExpected one of\n{expected}\n"
            "Name the task and its fields: --task, --input, --gold (for spans also --start, --end"
            " and --tag); or the columns of a table without a header: --columns text,label\n"
            "If no field has such values, convert the file to .jsonl or .csv with such fields"
        )
    with_flags = [n for n in fits if all(n in OWN_FLAGS.get(f, n).split() for f in flags)]
    name, *others = with_flags if len(with_flags) == 1 else [*fits]
    if others:
        raise FlagError(f"{files.path}: fits {' and '.join(fits)}; choose with --task")
    fit = fits[name]
    if isinstance(fit, FlagError):
        raise FlagError(f"{files.path}: {name}: {fit}")
    return name, fit


def find_files(path: Path, columns: Sequence[str], annotator: str | None) -> Files:
    """The files at a path that the reader would read, sorted: JSON and tables if any, else all.

    Descriptions such as README.md are left out if there are others. Raises WxbError if there is no
    file or only recordings, or if one is HTML or of a tool whose format is not read.
    """
    if not path.exists():
        raise WxbError(f"{path}: no such file or folder; expected files with records")
    visible = visible_files(path) if path.is_dir() else [path]
    files = [file for file in visible if has_record_suffix(file)]
    named = {s for n in recognition.supported_tasks() for s in tasks.get(n).reading.NAMED_FILES}
    others = [file for file in visible if file.suffix.lower() not in named]
    if not files and not others:
        raise WxbError(
            f"{path}: found recordings without transcripts; add a table transcripts.csv with a"
            " header such as path,sentence to their folder"
        )
    files = files or [file for file in others if not is_description(file)] or others or visible
    for file in files:
        refuse_unsupported(file)
    return Files(path, tuple(files), tuple(columns), annotator)


def corpus_name(path: Path) -> str:
    """A file's name up to its first dot, with - for invalid characters. WxbError if all are."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().name.split(".")[0]).strip("-")
    if not name:
        raise WxbError(f"{path}: found no ASCII letter or digit to name it by; give --name")
    return name


def _with_published_splits(split: Block, folder: Path, files: Sequence[Path]) -> Block:
    """`split`, changed if files or folders are named by split, such as train.csv and test.csv.

    All three give {"files": patterns}, train and test add `further`, one alone changes nothing.
    Raises FlagError for valid with one other, and for a split beside files of none.
    """
    patterns: dict[str, list[str]] = {}
    others = []
    for file in files:
        path = file.relative_to(folder)
        named = [*filter(lambda p: recognition.is_named_as_split(p.name), path.parents)]
        name = named[-1].name if named else path.name
        splits = [split for split, pattern in SPLITS.items() if pattern.search(name)]
        if len(splits) != 1:
            others.append(path.as_posix())
            continue
        pattern = f"{escape(named[-1].as_posix())}/*" if named else escape(path.as_posix())
        patterns[splits[0]] = [*dict.fromkeys([*patterns.get(splits[0], []), pattern])]
    is_partial = len(patterns) == 2 and patterns.keys() != {"train", "test"}
    if is_partial or (patterns and others):
        raise FlagError(
            f"{folder}: found the splits {' and '.join(patterns)}"
            f"{', and beside them ' if others else ''}{shortened(others, most=5)}; expected"
            " train, test and perhaps valid alone: move or rename files; without names of splits,"
            " all records are divided"
        )
    if len(patterns) == len(SPLITS):
        return {"files": {name: patterns[name] for name in SPLITS}}
    if {"train", "test"} == patterns.keys():  # training files are divided
        return {**split, "further": {"published": {"files": patterns["test"]}}}
    return split


def read_records(path: Path, corpus: Corpus) -> Contents:
    """Read and prepare the records at a path by `corpus`, with progress; WxbError if unreadable."""
    task, caption = tasks.get(corpus.task).reading, f"read {path.name}"
    with tempfile.TemporaryDirectory() as raw, tempfile.TemporaryDirectory() as temporary:
        # As `download` copies it: no other files beside it.
        folder, out = Path(raw, "folder" if path.is_dir() else ""), Path(temporary)
        (folder if path.is_dir() else folder / path.name).symlink_to(path.resolve())
        names = str(folder), str(path if path.is_dir() else path.parent)  # for messages
        try:
            trial = read_prepared(folder, corpus, task, out=out, home=out, caption=caption)
        except WxbError as error:
            raise WxbError(str(error).replace(*names)) from None
    rejects = [reject._replace(detail=reject.detail.replace(*names)) for reject in trial.rejects]
    return trial._replace(rejects=rejects)


def summary_table(trial: Contents, corpus: Corpus, seed: int) -> RenderableType:
    """A table of records kept and rejected, gold, doubtful names, split faults, first records."""
    records, rejects, unread_fields, unread_files = trial
    reading = tasks.get(corpus.task).reading
    rows = [("read", f"{len(records):,} of {len(records) + len(rejects):,} records")]
    unique, duplicates = drop_duplicates(records)  # rejected by preprocess, counted apart
    conflicts = [reject for reject in duplicates if reject.reason == CONFLICT]
    for reason, count in Counter(reject.reason for reject in rejects).most_common():
        example = next(f"{r.origin}: {r.detail}" for r in rejects if r.reason == reason)
        advice = f"; {corpus.advice(reason)}" if 20 * count > len(records) else ""
        rows.append(("rejected", f"{count:,}: {reason} ({escaped(example)}){advice}"))
    if conflicts:
        examples = [escaped(f"{r.origin}: {r.detail}") for r in conflicts[:EXAMPLES]]
        rows.append(("in conflict", f"{len(conflicts):,}: {CONFLICT} ({'; '.join(examples)})"))
    labelled = [record for record in records if record.gold is not None]
    counts = {
        "repaired": Counter(repair for record in records for repair in record.repaired),
        **reading.statistics(labelled),
        "languages": Counter(record.language for record in records if record.language),
        "unlabelled": len(records) - len(labelled),
        "repeated texts": len(records) - len(unique),
        "groups": len({record.group for record in records}),
        "parts to divide": 0 if corpus.split.files else len({*units(unique, lambda r: r.group)}),
        "fields not read": unread_fields,
        "files not read": len(unread_files),
    }
    for label, count in counts.items():
        title = label.replace("_", " ")
        if isinstance(count, Mapping) and count:
            totals = [f"{name or repr(name)} {n:,}" for name, n in Counter(count).most_common()]
            rows.append((title, escaped(shortened(totals, most=12))))
            doubts = _doubtful_names([*map(str, count)])
            rows += [(doubt, escaped(", ".join(names))) for doubt, names in doubts.items() if names]
        elif count:
            rows.append((title, f"{count:,}"))
    try:
        parts = divide(records, corpus.split, max_records=corpus.max_records, seed=seed)
        require_labelled(*parts, corpus.split)
        reading.check_labels(parts[0], corpus.split)
    except WxbError as error:
        rows.append(("not divided", escaped(str(error), 400)))
    for record in (labelled or records)[:EXAMPLES]:
        rows.append(("as read", escaped(reading.preview(record))))
    return table((), rows)


def _doubtful_names(names: Sequence[str]) -> dict[str, list[str]]:
    """Doubtful names: `nearly equal` (up to case), `like missing` ones, `several names` in one."""
    plain = {n: " ".join(normalize("NFKC", n).casefold().removesuffix(".0").split()) for n in names}
    occurrences = Counter(plain.values())
    return {
        "nearly equal": [n for n in names if occurrences[plain[n]] > 1],
        "like missing": [n for n in names if plain[n] in MISSING],
        "several names": [n for n in names if {*re.split("[,;|#] ?", n)} & {*names} - {n}],
    }
