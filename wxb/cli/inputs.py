"""The inputs of `wxb predict`, which are texts or files, and their predictions.

Files with texts may have the format of a corpus, or of the experiment's task.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from wxb import tasks
from wxb.cli.options import visible_files
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.corpora import Corpus
from wxb.core.params.tasks import corpus_class
from wxb.corpora import formats, layout
from wxb.corpora.formats import Raw
from wxb.corpora.records import RecordError, check_characters, required_text
from wxb.project import trained
from wxb.tasks import recognition
from wxb.tasks.recognition import Files, FlagError

FIELDS = ("input", "text")
Sources = Sequence[tuple[str, Path | None]]  # arguments; with the path that one names


class Item(NamedTuple):
    """An input, with its file, and its id or line; or the reason why it cannot be read."""

    place: dict[str, Any]  # such as file, line and id; empty for files that a model reads
    input: str | bytes | None  # a text, the path or bytes of a file; None: unreadable
    error: str = ""


def standard_input() -> Iterator[Item]:
    """Yield the lines of standard input, also blank ones; those not in UTF-8 are errors."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield Item({"line": number}, text.rstrip("\r\n"))
        except UnicodeDecodeError as error:
            fault = f"standard input: line {number}: expected UTF-8; {error}"
            yield Item({"line": number}, None, fault)


@dataclass(frozen=True)
class TextReader:
    """Reads the texts of files for a trained experiment: a name in params.yaml, or a folder.

    Records have the field `field`; by default that of the experiment's corpus, or one of FIELDS.
    """

    experiment: str
    field: str | None = None

    def read(self, file: Path) -> Iterator[Item]:
        """Yield the texts of a file: of records, of columns that its task reads, or of lines."""
        layout.refuse_unsupported(file)
        corpus = (layout.has_record_suffix(file) and self.corpus) or self._corpus_settings(file)
        columns = getattr(corpus, "columns", None)
        if layout.has_record_suffix(file) or columns:
            fields = corpus.fields if corpus and not self.field else None
            messages = getattr(fields, "messages", None)
            yield from self._items(file, formats.raw_records(file, messages, columns), corpus)
        elif corpus:
            raws = tasks.get(self.task).reading.raw_records(file, corpus)
            yield from self._items(file, raws, corpus)
        else:
            # Only line feeds separate lines: texts may have other separators of Unicode.
            lines = layout.decode(file).removesuffix("\n").split("\n")
            for number, line in enumerate(lines, start=1):
                yield Item({"file": str(file), "line": number}, line.rstrip("\r"))

    @cached_property
    def task(self) -> str:
        """The task of the experiment."""
        settings = read_json(trained.find(self.experiment) / paths.SETTINGS)
        return str(settings["task"])

    @cached_property
    def corpus(self) -> Corpus | None:
        """The corpus of the experiment; None for a folder, and a name that params.yaml lacks."""
        return trained.corpus_in_params(self.experiment)

    def _corpus_settings(self, file: Path) -> Corpus | None:
        """The settings to read a file that is no JSON or table, or without corpus; None if unknown.

        They are the corpus's if it has a text per file, or columns and line one a tab. Otherwise
        they are recognized; if the format is ambiguous, lines are texts.
        """
        columns = getattr(self.corpus, "columns", None)
        is_table = columns and "\t" in layout.decode(file).partition("\n")[0]
        if self.corpus and (self.corpus.has_text_per_file or is_table):
            return self.corpus
        content = None
        with suppress(FlagError):  # fields must be named
            content = recognition.recognize(self.task, Files(file, (file,)), {})
        if content is None:
            return None
        block = {"task": self.task, "path": str(file), **content}
        return corpus_class(self.task).model_validate(block)

    def _items(self, file: Path, raws: Iterator[Raw], corpus: Corpus | None) -> Iterator[Item]:
        """Yield an item per raw record: its text, or the reason why it cannot be read."""
        for place, content, *_ in raws:
            kind, _, number = place.rpartition(" ")
            where = {"file": str(file), kind or "place": int(number) if kind else place}
            if isinstance(content, Mapping) and isinstance(content.get("id"), str | int):
                where["id"] = content["id"]
            try:
                if isinstance(content, RecordError):
                    raise content
                text = self._text(content, corpus)
                check_characters(text)
                yield Item(where, text)
            except RecordError as error:
                yield Item(where, None, f"{file}: {place}: {error.reason}: {error.detail}")

    def _text(self, content: Any, corpus: Corpus | None) -> str:
        """A text itself, or that of `field`, the corpus's fields or FIELDS; else RecordError."""
        if isinstance(content, str):
            return content
        fields = content if isinstance(content, Mapping) else {}
        read = tasks.get(self.task).reading.input_of
        if corpus and fields and not self.field:
            try:
                return read(fields, corpus)
            except RecordError as error:
                if error.reason != "missing field":  # else it may be in one of FIELDS
                    raise
        own = corpus.fields.input if corpus else FIELDS[0]
        names = [self.field] if self.field else dict.fromkeys([own, *FIELDS])
        for name in names:
            if isinstance(fields.get(name), str):
                return read({own: fields[name]}, corpus) if corpus else required_text(fields, name)
        types = {key: type(value).__name__ for key, value in fields.items()}
        raise RecordError(
            "no text",
            f"found {types or type(content).__name__}; expected a text in"
            f" {' or '.join(map(repr, names))}: name its field with --field",
        )


def read_files(sources: Sources, suffixes: Sequence[str]) -> Iterator[Item]:
    """Yield paths (in folders only of `suffixes`) or stdin's bytes. Raises WxbError for texts."""
    for source, path in sources:
        if source == "-":
            yield Item({}, sys.stdin.buffer.read())
        elif path is None:
            raise WxbError(f"{source}: no such file or folder; this model reads files, not texts")
        elif path.is_file():
            yield Item({}, str(path))
        else:
            files = [file for file in visible_files(path) if file.suffix.lower() in suffixes]
            if not files:
                raise WxbError(f"{path}: found no file in it that ends in {', '.join(suffixes)}")
            yield from (Item({}, str(file)) for file in files)


def read_texts(sources: Sources, reader: TextReader) -> Iterator[Item]:
    """Yield items of texts (path None), of files and folders, or of standard input (source "-").

    Unreadable files are items with an error. Raises WxbError for a sole one, or an empty folder.
    """
    for number, (source, path) in enumerate(sources, start=1):
        if source == "-":
            yield from standard_input()
        elif path is None:
            yield Item({"argument": number}, source)
        else:
            for file in _text_files(path):
                try:
                    yield from reader.read(file)
                except WxbError as error:
                    if file == path and len(sources) == 1:
                        raise
                    yield Item({"file": str(file)}, None, str(error))


def _text_files(path: Path) -> list[Path]:
    """A path, or a folder's files except hidden, metadata and descriptions; WxbError if none."""
    if not path.is_dir():
        return [path]
    files = [file for file in visible_files(path) if file.name not in layout.METADATA_FILES]
    if not (texts := [file for file in files if not layout.is_description(file)]):
        raise WxbError(f"{path}: found no file in it; expected files of texts or records")
    return texts


def predictions(predictor: Any, items: list[Item]) -> Iterator[tuple[Item, Any]]:
    """Yield items with predictions, None for errors. Inputs that a model rejects get an error."""
    try:
        inputs = [item.input for item in items if not item.error]
        outputs = iter(predictor.predict(inputs, caption="predict"))
        yield from ((item, None if item.error else next(outputs)) for item in items)
    except WxbError as error:
        if not (predictor.file_suffixes or isinstance(error.__cause__, RecordError)):
            raise
        if len(items) == 1:
            yield items[0]._replace(error=str(error)), None
            return
        for item in items:
            yield from predictions(predictor, [item])
