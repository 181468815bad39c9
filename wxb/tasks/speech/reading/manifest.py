"""Manifests: tables that say which recordings there are, and what was said in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from wxb.corpora import formats
from wxb.corpora.formats import Raw
from wxb.corpora.layout import SUFFIXES
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.record.audio import reading


def raw_records(file: Path, corpus: Corpus) -> Iterator[Raw]:
    """The rows of a manifest with the paths of their recordings; of other files nothing.

    Paths in a manifest are relative to its folder. Where there is no such file, it is the one of
    that name anywhere below; a row without a path is of the file that has its id for a name.
    """
    names = corpus.manifest or [file.name]
    if not fnmatchcase(file.name, names[0]):
        return
    further = [_by_id(file.parent / name, corpus) for name in names[1:]]
    column, audio = corpus.fields.input, _Audio(file.parent)
    for raw in formats.raw_records(file):
        content = raw.content
        if isinstance(content, Mapping):
            known = content.get(corpus.fields.id)
            joined = {k: v for table in further for k, v in table.get(str(known), {}).items()}
            content = {**joined, **content}
            given = content.get(column) or known
            if isinstance(given, str):
                content[column] = audio.found(given)
        yield raw._replace(content=content)


def _by_id(file: Path, corpus: Corpus) -> dict[str, Mapping[str, Any]]:
    rows = [raw.content for raw in formats.raw_records(file) if isinstance(raw.content, Mapping)]
    return {str(row[corpus.fields.id]): row for row in rows if corpus.fields.id in row}


@dataclass
class _Audio:
    """The files of a folder and of those in it, by their names without suffix."""

    folder: Path
    files: Mapping[str, str] | None = None

    def found(self, given: str) -> str:
        """The path of the file that is meant, whether there is one or not."""
        path = self.folder / given
        return path.as_posix() if path.is_file() else (self.folder / self._named(given)).as_posix()

    def _named(self, given: str) -> str:
        if self.files is None:
            found = sorted(path for path in self.folder.rglob("*") if path.is_file())
            audio = [path for path in found if path.suffix.lower() not in SUFFIXES]
            self.files = {
                path.stem: path.relative_to(self.folder).as_posix() for path in reversed(audio)
            }
        stem = Path(given).stem if Path(given).suffix.lower() in reading.SUFFIXES else given
        return self.files.get(stem, given)
