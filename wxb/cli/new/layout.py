"""The files of a new corpus: their kind, encoding and published splits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import escape
from mimetypes import guess_type
from pathlib import Path

from wxb.cli.options import visible_files
from wxb.core.errors import WxbError
from wxb.corpora.layout import (
    BINARY,
    SUFFIXES,
    TABLES,
    decode,
    decode_table,
    has_records,
    is_description,
    refuse_html,
)
from wxb.tasks.values import SPLITS, Files

WESTERN = "cp1252"
# The encodings of nearly all files that are not UTF-8; many others fit by chance.
COMMON = [WESTERN, "gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1251", "koi8_r", "cp1250"]

MAX_PATTERNS = 10  # of a split; more are given by folder


def find_files(path: Path) -> Files:
    """The files at a path that the reader would read, sorted: those with fields if any, else all.

    Descriptions such as README.md are left out.

    Raises WxbError if there are none, or if one is not UTF-8, with its likely encoding.
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
        if file.suffix.lower() not in BINARY:
            _check_encoding(file)
    return Files(path, files)


def published_splits(folder: Path, files: Sequence[Path]) -> dict[str, list[str]]:
    """Patterns of files by split, empty for a split without; none if a file is of no split."""
    members: dict[str, list[str]] = {name: [] for name in SPLITS}
    for file in files:
        path = file.relative_to(folder).as_posix()
        # The name of the file has precedence over those of its folders.
        for part in (file.name, path):
            names = [name for name, pattern in SPLITS.items() if pattern.search(part)]
            if names:
                break
        if len(names) != 1:
            return {name: [] for name in SPLITS}
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


def _check_encoding(file: Path) -> None:
    refuse_html(file)
    data = file.read_bytes()
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            decode(file)  # raises an error for UTF-16
        if file.suffix.lower() in TABLES:
            decode_table(file)  # the reader detects some encodings, too
            return
        raise WxbError(_encoding_error(file, data)) from None
    decode(file)


def _encoding_error(file: Path, data: bytes) -> str:
    """An error message with the likely encoding of a file that is not UTF-8."""
    from charset_normalizer import from_bytes

    sample = data[:200_000]
    plausible = from_bytes(sample, cp_isolation=COMMON) or from_bytes(sample)
    names = [name for match in plausible for name in match.could_be_from_charset]
    if not names or b"\0" in data:
        kind = ", ".join(["no text", *filter(None, guess_type(file.name))])
        return (
            f"{file}: found {kind}; expected UTF-8 ({', '.join(SUFFIXES)}, or columns): unpack it,"
            " or export it as CSV. Recordings need a table of their transcripts in the same folder"
        )
    # If few letters differ between encodings, Western European is by far the most frequent.
    name = (WESTERN if WESTERN in names else names[0]).replace("_", "-").upper()
    return (
        f"{file}: found bytes that look like {name}; expected UTF-8: convert the file with"
        f" `iconv -f {name} -t UTF-8 {file.name} > new{file.suffix}`, check the letters in it, and"
        " use the new file"
    )
