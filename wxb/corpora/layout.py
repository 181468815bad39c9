"""The raw files of a corpus: which there are, which split each belongs to, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.core.params.corpora import Corpus, Split

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".parquet")
DELIMITERS = ",;\t|"  # of tables
# What spreadsheets save tables in, where not in UTF-8: Chinese (simplified, traditional), Western.
LEGACY = ("gb18030", "big5", "cp1252")


def data_files(folder: Path, corpus: Corpus) -> list[Path]:
    """The files of a raw folder that hold records, sorted by path.

    What other than `fields` says how to read may have any name; a hidden file is none. Raises
    WxbError when there is no file.
    """
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if corpus.read_by != "fields":
        hidden = {path for path in found if "/." in f"/{path.relative_to(folder).as_posix()}"}
        files = [path for path in found if path not in hidden]
        expected = f"files that `{corpus.read_by}` reads"
    else:
        files = [path for path in found if path.suffix.lower() in SUFFIXES]
        expected = f"a file ending in {', '.join(SUFFIXES)}{corpus.other_files}"
    if not files:
        names = ", ".join(path.name for path in found) or "nothing"
        raise WxbError(f"{folder}: found {names}; expected {expected}")
    return files


def by_split(files: Sequence[Path], folder: Path, split: Split) -> dict[str | None, list[Path]]:
    """Divide files by the patterns that their paths inside `folder` match, the order kept.

    Where patterns make further test sets only, None has the files that match none of them. Raises
    WxbError for a split without files, and files that do not match patterns of exactly one.
    """
    paths = {file: file.relative_to(folder).as_posix() for file in files}
    splits: dict[str | None, list[Path]] = {
        name: [file for file in files if any(fnmatchcase(paths[file], p) for p in patterns)]
        for name, patterns in split.patterns.items()
    }
    faults = [
        f"no file matches {', '.join(split.patterns[name])} ({name})"
        for name in split.patterns
        if not splits[name]
    ]
    if not split.files:
        matched = {file for members in splits.values() for file in members}
        splits[None] = [file for file in files if file not in matched]
        if not splits[None]:
            faults.append("no file is left to divide")
    for file, path in paths.items():
        names = [str(name) for name, members in splits.items() if file in members]
        if len(names) != 1:
            faults.append(f"{path} is in {' and '.join(names) or 'no split'}")
    if faults:
        raise WxbError(
            f"{folder}: {'; '.join(faults)}; expected every file in one split:"
            " change the patterns in `split` of the corpus"
        )
    return splits


def refuse_page(file: Path) -> None:
    """Raise WxbError for a page of HTML: what a browser saves of an address that shows a file."""
    with file.open("rb") as opened:
        head = opened.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        raise WxbError(
            f"{file}: found an HTML page; expected records: fetch the file itself, in place of the"
            " page that shows it"
        )


def decode(file: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Raises WxbError when it is empty or in another encoding.
    """
    text, _ = _decode(file, legacy=())
    return text


def decode_table(file: Path) -> tuple[str, str | None]:
    """The text of a file, and which of LEGACY it was found to be in, None for UTF-8.

    The encoding is told by how the characters follow each other; where none makes sense it is an
    error, as in `decode`.
    """
    return _decode(file, LEGACY)


def _decode(file: Path, legacy: Sequence[str]) -> tuple[str, str | None]:
    data, encoding = file.read_bytes(), None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
        raise WxbError(
            f"{file}: found UTF-16; expected UTF-8: convert it with"
            f" `iconv -f UTF-16 -t UTF-8 {file.name} > new{file.suffix}`"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = _likeliest(data, legacy)
        if encoding is None:
            others = f", or {' or '.join(legacy)} that can be told from it" if legacy else ""
            raise WxbError(
                f"{file}: found byte {data[error.start]:#04x} at offset {error.start};"
                f" expected UTF-8{others}: convert the file with iconv"
            ) from None
        text = data.decode(encoding)
    if not text.strip():
        raise WxbError(f"{file}: found an empty file; expected records")
    return text, encoding


def _likeliest(data: bytes, encodings: Sequence[str]) -> str | None:
    """Which of some encodings bytes are in; None where no text in them looks like one."""
    if not encodings:
        return None
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_isolation=[*encodings]).best()
    return best.encoding if best else None
