"""The files of a corpus that is new: what kind they are of, their encoding, published splits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.corpora.layout import SUFFIXES, decode, refuse_page
from wxb.tasks.values import SPLITS, Files

WESTERN = "cp1252"
# What files that are not UTF-8 are in nearly always; there are many more that fit by chance.
COMMON = [WESTERN, "gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1251", "koi8_r", "cp1250"]


def found(path: Path) -> Files:
    """The files at a path that a reader would read, sorted: tables if any, else all.

    Raises WxbError where there is none, or one that is not UTF-8, naming what it looks like.
    """
    if not path.exists():
        raise WxbError(f"{path}: no such file or folder; expected files with records")
    visible = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        visible = [f for f in files if "/." not in f"/{f.relative_to(path).as_posix()}"]
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


def split(folder: Path, files: Sequence[Path]) -> Mapping[str, list[str]] | None:
    """The published splits that names of files tell, as patterns; None where they tell none."""
    members: dict[str, list[str]] = {name: [] for name in SPLITS}
    for file in files:
        path = file.relative_to(folder).as_posix()
        # Its own name counts before those of the folders above it.
        for part in (file.name, path):
            names = [name for name, pattern in SPLITS.items() if pattern.search(part)]
            if names:
                break
        if len(names) != 1:
            return None
        members[names[0]].append(escape(path))
    return members if all(members.values()) else None


@contextmanager
def folder(path: Path) -> Iterator[Path]:
    """A folder with what `download` would bring from a path: the folder itself, or one file's."""
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as made:
        Path(made, path.name).symlink_to(path.resolve())
        yield Path(made)


def _check_encoding(file: Path) -> None:
    refuse_page(file)
    data = file.read_bytes()
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            decode(file)  # which raises, and knows what to do
        raise WxbError(_other_encoding(file, data)) from None
    decode(file)


def _other_encoding(file: Path, data: bytes) -> str:
    from charset_normalizer import from_bytes

    sample = data[:200_000]
    plausible = from_bytes(sample, cp_isolation=COMMON) or from_bytes(sample)
    names = [match.encoding for match in plausible]
    if not names or b"\0" in data:
        return f"{file}: found no text; expected UTF-8: {', '.join(SUFFIXES)}, or columns"
    # Where few letters tell them apart, Western Europe's is by far the most frequent.
    name = (WESTERN if WESTERN in names else names[0]).replace("_", "-").upper()
    return (
        f"{file}: found bytes that look like {name}; expected UTF-8: convert the file with"
        f" `iconv -f {name} -t UTF-8 {file.name} > new{file.suffix}`, check the letters in it, and"
        " look at that one"
    )
