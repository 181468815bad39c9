"""Manifests: tables of recordings and their transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from wxb.corpora import formats
from wxb.corpora.formats import Raw
from wxb.corpora.layout import SUFFIXES
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.record import audio


def raw_records(file: Path, corpus: Corpus) -> Iterator[Raw]:
    """The rows of a manifest with the paths of their recordings; none of any other file.

    Rows get the columns of the further tables of `corpus.manifest` by id. Paths are relative to the
    folder of the manifest. If there is no such file, a file of that name is searched in all folders
    below; a row without a path uses its id as the name.
    """
    names = corpus.manifest or [file.name]
    if not fnmatchcase(file.name, names[0]):
        return
    further = [_by_id(file.parent / name, corpus) for name in names[1:]]
    column, folder = corpus.fields.input, _AudioFolder(file.parent)
    for raw in formats.raw_records(file):
        content = raw.content
        if isinstance(content, Mapping):
            id_ = content.get(corpus.fields.id)
            joined = {k: v for table in further for k, v in table.get(str(id_), {}).items()}
            content = {**joined, **content}
            name = content.get(column) or id_
            if isinstance(name, str):
                content[column] = folder.path(name)
        yield raw._replace(content=content)


def _by_id(file: Path, corpus: Corpus) -> dict[str, Mapping[str, Any]]:
    """The rows of a table that have an id, by it."""
    rows = [raw.content for raw in formats.raw_records(file) if isinstance(raw.content, Mapping)]
    return {str(row[corpus.fields.id]): row for row in rows if corpus.fields.id in row}


@dataclass
class _AudioFolder:
    """A folder of recordings; lists its files once, if a path does not exist."""

    folder: Path

    def path(self, name: str) -> str:
        """The path of a recording, whether it exists or not."""
        path = self.folder / name
        if not path.is_file():
            stem = path.stem if path.suffix.lower() in audio.SUFFIXES else name
            path = self._files.get(stem, path)
        return path.as_posix()

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        """The files that are no tables by name without suffix; of several the first by path."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {path.stem: path for path in reversed(files) if path.suffix.lower() not in SUFFIXES}
