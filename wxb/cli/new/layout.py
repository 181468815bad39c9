"""The files of a new corpus: their kind, encoding and published splits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from wxb.cli.options import visible_files
from wxb.core.errors import WxbError
from wxb.corpora.layout import SUFFIXES, decode, refuse_html
from wxb.tasks.values import SPLITS, Files

WESTERN = "cp1252"
# The encodings of nearly all files that are not UTF-8; many others fit by chance.
COMMON = [WESTERN, "gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1251", "koi8_r", "cp1250"]


def find_files(path: Path) -> Files:
    """The files at a path that the reader would read, sorted: tables if any, else all.

    Raises WxbError if there are none, or if one is not UTF-8, with its likely encoding.
    """
    if not path.exists():
        raise WxbError(f"{path}: no such file or folder; expected files with records")
    visible = visible_files(path) if path.is_dir() else [path]
    files = [file for file in visible if file.suffix.lower() in SUFFIXES] or visible
    if not files:
        raise WxbError(
            f"{path}: found no file; expected records ({', '.join(SUFFIXES)}), or text files with"
            " columns"
        )
    for file in files:
        if file.suffix.lower() != ".parquet":
            _check_encoding(file)
    return Files(path, files)


def published_splits(folder: Path, files: Sequence[Path]) -> Mapping[str, list[str]] | None:
    """Patterns of files by split, if each file's name is of one split; else None."""
    members: dict[str, list[str]] = {name: [] for name in SPLITS}
    for file in files:
        path = file.relative_to(folder).as_posix()
        # The name of the file has precedence over those of its folders.
        for part in (file.name, path):
            names = [name for name, pattern in SPLITS.items() if pattern.search(part)]
            if names:
                break
        if len(names) != 1:
            return None
        members[names[0]].append(escape(path))
    return members if all(members.values()) else None


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
        raise WxbError(_encoding_error(file, data)) from None
    decode(file)


def _encoding_error(file: Path, data: bytes) -> str:
    """An error message with the likely encoding of a file that is not UTF-8."""
    from charset_normalizer import from_bytes

    sample = data[:200_000]
    plausible = from_bytes(sample, cp_isolation=COMMON) or from_bytes(sample)
    names = [match.encoding for match in plausible]
    if not names or b"\0" in data:
        return f"{file}: found no text; expected UTF-8: {', '.join(SUFFIXES)}, or columns"
    # If few letters differ between encodings, Western European is by far the most frequent.
    name = (WESTERN if WESTERN in names else names[0]).replace("_", "-").upper()
    return (
        f"{file}: found bytes that look like {name}; expected UTF-8: convert the file with"
        f" `iconv -f {name} -t UTF-8 {file.name} > new{file.suffix}`, check the letters in it, and"
        " use the new file"
    )
