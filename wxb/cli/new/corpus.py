"""The block of `corpora` for a file or folder, and the records that the reader keeps with it."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import escape
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from wxb import tasks
from wxb.cli.options import visible_files
from wxb.core.errors import WxbError, choices
from wxb.core.params.corpora import Corpus
from wxb.core.params.tasks import corpora
from wxb.corpora import reading
from wxb.corpora.layout import SUFFIXES, data_files, has_records, is_description, refuse_html
from wxb.corpora.records import Record, Reject
from wxb.project.params_file import to_yaml
from wxb.tasks import recognition
from wxb.tasks.recognition import SPLITS, Content, Files, FlagError, Flags, is_split

MAX_PATTERNS = 10  # of a split; more are given by folder
MIN_GROUPS = 10  # fewer cannot be divided into shares of a tenth
COMMENTS = {
    "": "added by `wxb new corpus`",
    ".split.by": "records with the same value stay in one split; null: by document",
    ".split.test": "share of all records",
    ".split.files": "from the names of the files",
    ".split.further": "from the names of the files",
}
# Formats that are refused, with what to do.
BRAT = "brat's annotations; convert them to columns by brat's tools/anntoconll.py"
WEBANNO = "WebAnno TSV; export CoNLL 2002 or CoNLL 2003 instead"

# These are 21 to 27% of the words in English news, tweets and letters, and 1 to 3% in French,
# German or Spanish.
ENGLISH = {
    *("the", "of", "and", "to", "in", "is", "for", "that", "with", "a", "it", "on", "was"),
    *("are", "be", "this", "at", "by", "from", "as", "or", "not", "you", "i", "have"),
}
MIN_SHARE = 0.12  # of these words in English
SAMPLE = 2_000  # records for the language


@dataclass
class Trial:
    """Counts of the records that the reader kept and rejected."""

    kept: int = 0
    unlabelled: int = 0
    repeated: int = 0  # records with the text of an earlier one
    rejects: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # the first reject by reason
    repaired: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    groups: int = 0
    splits: Counter[str | None] = field(default_factory=Counter)  # labelled, by published split
    counts: dict[str, Any] = field(default_factory=dict)  # of gold, as the task counts it
    texts: list[str] = field(default_factory=list)  # a sample, for the language

    @property
    def is_english(self) -> bool:
        """Whether all languages of records are English; without any, whether the texts are."""
        return are_english(self.languages) if self.languages else are_english_texts(self.texts)


class NewCorpus(NamedTuple):
    """The YAML of a block, notes for the user, and the records read with it."""

    name: str
    block: str
    notes: list[str]
    trial: Trial


def new_corpus(
    path: Path, name: str | None, task: str | None = None, flags: Flags | None = None
) -> NewCorpus:
    """The block of a file or folder; reads all its records.

    `task`: by default the only one that fits. `flags`: what the user named. Raises FlagError if a
    flag is lacking, and WxbError if nothing can be read, or the reader rejects all records.
    """
    flags = dict(flags or {})
    name = name or corpus_name(path)
    columns = tuple(flags.pop("columns", "").split(",")) if flags.get("columns") else ()
    repair = {"repair": "by-value"} if "repair" in flags else {}
    files = find_files(path, columns)
    task, found = _recognize(files, task, flags)
    content: Content = {"task": task, "path": _path_in_params(path), **found, **repair}
    if path.is_dir():
        files_read = data_files(path, corpora()[task].model_validate(content))
        content["split"] = _with_published_splits(found["split"], path, files_read)
    corpus = corpora()[task].model_validate(content)
    trial = count_records(path, corpus)
    notes = []
    if trial.rejects:
        notes.append(corpus.advice(trial.rejects.most_common(1)[0][0]))
    if not trial.kept:
        reason, example = next(iter(trial.examples.items()))
        raise WxbError(
            f"{path}: every record would be rejected, the first of {trial.rejects.total():,} for"
            f" {reason} ({example}). The block:\n{to_yaml({name: content})}"
            f"Change the file, name other fields, or {notes[0]}"
        )
    if not corpus.split.files and trial.groups < MIN_GROUPS:
        notes.append(
            f"few groups: found {trial.groups} to split into train, valid and test; expected"
            f" {MIN_GROUPS}: add records, or name another field with --group"
        )
    comments = {f"{name}{key}": comment for key, comment in COMMENTS.items()}
    return NewCorpus(name, to_yaml({name: content}, comments), notes, trial)


def _recognize(files: Files, task: str | None, flags: Flags) -> tuple[str, Content]:
    """The task of some files and their block. Raises FlagError if none or several fit."""
    known = recognition.tasks()
    if task is not None and task not in known:
        raise WxbError(f"--task: found {task!r}{choices(task, known)}")
    names = [task] if task else known
    fits: dict[str, Content | FlagError] = {}
    for name in names:
        try:
            content = recognition.recognize(name, files, flags)
        except FlagError as question:
            fits[name] = question
        else:
            fits |= {name: content} if content else {}
    if not fits:
        expected = "\n".join(f"  {name}: {recognition.records(name).expected}" for name in names)
        raise FlagError(
            f"{files.path}: found {files.summary()}\n"
            f"Expected{' one of' if len(names) > 1 else ''}\n{expected}\n"
            "Name the task and its fields: --task, --input, --gold (for spans also --start, --end"
            " and --tag); or the columns of a table without a header: --columns text,label"
        )
    if len(fits) > 1:
        raise FlagError(f"{files.path}: fits {' and '.join(fits)}; choose with --task")
    ((name, fit),) = fits.items()
    if isinstance(fit, FlagError):
        raise FlagError(f"{files.path}: {name}: {fit}")
    return name, fit


def find_files(path: Path, columns: Sequence[str] = ()) -> Files:
    """The files at a path that the reader would read, sorted: those with fields if any, else all.

    Descriptions such as README.md are left out. Raises WxbError if there are none, or if they are
    HTML or of a tool whose format is not read.
    """
    if not path.exists():
        raise WxbError(f"{path}: no such file or folder; expected files with records")
    visible = visible_files(path) if path.is_dir() else [path]
    files = [file for file in visible if has_records(file)]
    files = files or [file for file in visible if not is_description(file)] or visible
    if not files:
        raise WxbError(
            f"{path}: found no file; expected records ({', '.join(SUFFIXES)}), or text files with"
            " columns"
        )
    for file in files:
        refuse_html(file)
        with file.open("rb") as stream:
            is_webanno = stream.read(20).startswith(b"#FORMAT=WebAnno")
        if is_webanno or file.suffix == ".ann":
            raise WxbError(f"{file}: found {WEBANNO if is_webanno else BRAT}")
    return Files(path, tuple(files), tuple(columns))


def corpus_name(path: Path) -> str:
    """A corpus name from that of a file. Raises WxbError if it has no ASCII letter or digit."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().name.split(".")[0]).strip("-")
    if not name:
        raise WxbError(f"{path}: found no ASCII letter or digit to name it by; give --name")
    return name


def _path_in_params(path: Path) -> str:
    """A path for params.yaml: relative to the project if it is inside."""
    resolved, root = path.resolve(), Path.cwd()
    if resolved.is_relative_to(root):
        return resolved.relative_to(root).as_posix()
    return path.as_posix()


def _with_published_splits(split: Content, folder: Path, files: Sequence[Path]) -> Content:
    """`split` with the splits named by files instead of shares, if there are any."""
    splits = published_splits(folder, files)
    if splits and all(splits.values()):
        return {"files": splits}
    if splits.get("train") and splits["test"]:  # the others are divided
        return {**split, "further": {"published": {"files": splits["test"]}}}
    return split


def published_splits(folder: Path, files: Sequence[Path]) -> dict[str, list[str]]:
    """Patterns of files by split, empty for a split without; none if a file is of no split."""
    members: dict[str, list[str]] = {name: [] for name in SPLITS}
    for file in files:
        path = file.relative_to(folder).as_posix()
        # The name of the file has precedence over those of its folders.
        part = file.name if is_split(file.name) else path
        names = [name for name, pattern in SPLITS.items() if pattern.search(part)]
        if len(names) != 1:
            return {}
        members[names[0]].append(path)
    return {name: _patterns(paths, files, folder) for name, paths in members.items()}


def _patterns(paths: Sequence[str], files: Sequence[Path], folder: Path) -> list[str]:
    """The paths of a split as patterns: of its folders, if they have many files and no others."""
    folders = {path.partition("/")[0] for path in paths}
    inside = [file for file in files if file.relative_to(folder).parts[0] in folders]
    if len(paths) > MAX_PATTERNS and len(inside) == len(paths) and len(folders) < len(paths):
        return [f"{escape(name)}/*" for name in sorted(folders)]
    return [*map(escape, paths)]


@contextmanager
def as_folder(path: Path) -> Iterator[Path]:
    """A folder as `download` would make it: the path itself, or a temporary one with the file."""
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary, path.name).symlink_to(path.resolve())
        yield Path(temporary)


def count_records(path: Path, corpus: Corpus, *, limit: int | None = None) -> Trial:
    """Read and prepare the records at a path, and count those that are kept and rejected.

    `corpus` is the block that reads them. With `limit`, only the first records are read, rejected
    ones included. Prepared files go to a temporary folder; shows progress. Raises WxbError if the
    reader cannot read the path.
    """
    trial, task = Trial(), tasks.get(corpus.task).reading
    records: list[Record] = []
    with as_folder(path) as raw, tempfile.TemporaryDirectory() as temporary:
        items = islice(reading.read(raw, corpus, task), limit)
        out, label = Path(temporary), f"read {path.name}"
        for item in task.prepare(items, corpus, folder=raw, out=out, home=out, label=label):
            if isinstance(item, Reject):
                trial.rejects[item.reason] += 1
                trial.examples.setdefault(item.reason, f"{item.origin}: {item.detail}")
            else:
                records.append(item)
    labelled = [record for record in records if record.gold is not None]
    trial.kept, trial.unlabelled = len(records), len(records) - len(labelled)
    trial.repeated = len(records) - len({record.input for record in records})
    for record in records:
        trial.repaired.update(record.repaired)
    trial.languages.update(record.language for record in records if record.language)
    trial.splits.update(record.split for record in labelled)
    trial.groups = len({record.group for record in records})
    trial.counts = task.describe(labelled)
    trial.texts = [record.input for record in records[:SAMPLE] if task.wording(record)]
    return trial


def are_english(languages: Iterable[str]) -> bool:
    """Whether all names or codes of languages are English."""
    return all(re.fullmatch(r"english|en([-_].*)?", name.casefold()) for name in languages)


def are_english_texts(texts: Sequence[str]) -> bool:
    """Whether texts are in Latin letters and have enough frequent English words."""
    words = [word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())]
    letters = sum(map(len, words))
    latin = sum(len(word) for word in words if word.isascii())
    english = sum(word in ENGLISH for word in words)
    return latin > 0.9 * letters > 0 and english > MIN_SHARE * len(words)
