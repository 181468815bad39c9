"""The raw files of a corpus: which there are, which split each belongs to, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from wxb.errors import WxbError
from wxb.params.corpora import Corpus, SplitFiles

SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")


def data_files(folder: Path, corpus: Corpus) -> list[Path]:
    """The files of a raw folder that hold records, sorted by path.

    Column files may have any name; a hidden file is none. Raises WxbError when there is no file.
    """
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if corpus.conll:
        hidden = {path for path in found if "/." in f"/{path.relative_to(folder).as_posix()}"}
        files = [path for path in found if path not in hidden]
        expected = "column files"
    else:
        files = [path for path in found if path.suffix.lower() in SUFFIXES]
        expected = f"a file ending in {', '.join(SUFFIXES)}; or set `conll` to read column files"
    if not files:
        names = ", ".join(path.name for path in found) or "nothing"
        raise WxbError(f"{folder}: found {names}; expected {expected}")
    return files


def by_split(files: Sequence[Path], folder: Path, given: SplitFiles) -> dict[str, list[Path]]:
    """Divide files by the patterns that their paths inside `folder` match, the order kept.

    Raises WxbError for patterns that match no file, and files that do not match patterns of
    exactly one split.
    """
    patterns: dict[str, list[str]] = given.model_dump()
    paths = {file: file.relative_to(folder).as_posix() for file in files}
    splits = {
        name: [file for file in files if any(fnmatchcase(paths[file], p) for p in patterns[name])]
        for name in patterns
    }
    faults = [
        f"no file matches {', '.join(patterns[name])} ({name})"
        for name, members in splits.items()
        if not members
    ]
    for file, path in paths.items():
        names = [name for name, members in splits.items() if file in members]
        if len(names) != 1:
            faults.append(f"{path} is in {' and '.join(names) or 'no split'}")
    if faults:
        raise WxbError(
            f"{folder}: {'; '.join(faults)}; expected every file in one split:"
            " change `split.files` of the corpus"
        )
    return splits


def decode(file: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Raises WxbError when it is empty or in another encoding.
    """
    data = file.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
        raise WxbError(
            f"{file}: found UTF-16; expected UTF-8: convert it with"
            f" `iconv -f UTF-16 -t UTF-8 {file.name} > new{file.suffix}`"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WxbError(
            f"{file}: found byte {data[error.start]:#04x} at offset {error.start};"
            " expected UTF-8: convert the file with iconv"
        ) from None
    if not text.strip():
        raise WxbError(f"{file}: found an empty file; expected records")
    return text
