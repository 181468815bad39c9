"""List and decode the raw files of a corpus, and assign them to splits."""

import re
import shlex
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from wxb.core.errors import WxbError, shortened
from wxb.core.params.corpora import Corpus, Split

TABLES = (".csv", ".tsv")
SUFFIXES = (".json", ".jsonl", ".ndjson", *TABLES, ".parquet", ".arrow")
# Files of `datasets` without records: the first may name classes.
FEATURES = ("dataset_info.json", "dataset_infos.json", "features.json")
METADATA_FILES = (*FEATURES, "dataset_dict.json", "state.json")
# Files without fields that describe the others: README.md, LICENSE, _about.txt, ...
ABOUT = re.compile(
    r"_?(about|readme|licen[cs]e|copying|citation|metadata)(\.(txt|md|rst))?", re.IGNORECASE
)
DELIMITERS = ",;\t|"  # of tables
# Other encodings of spreadsheets: simplified Chinese, traditional Chinese, Western European.
LEGACY = ("gb18030", "big5", "cp1252")
# Other encodings that those also decode, and what letters of Turkish, Czech, ... are in cp1252.
RIVALS = ("utf_16", "euc_jp", "cp932", "cp949", "cp1251")
WRONG = re.compile(r"[^\W\d_][¤£§º¼½¾†¹¿¡]|[¤§º¼½¾†¹³][^\W\d_]|[ðþÐÞ]|[õÕ](?![eE])|è[aeiou]")
HTML = "an HTML page; fetch the file itself instead of the page that shows it"
# Formats that are refused, by suffix or beginning in lower case, with what to do.
REFUSED: dict[str | bytes, str] = {
    b"version https://git-lfs": "a pointer of Git LFS; fetch the file with `git lfs pull`",
    b"#format=webanno": "WebAnno TSV; export CoNLL 2002 or CoNLL 2003 instead",
    **dict.fromkeys((b"<!doctype html", b"<html"), HTML),
    ".spacy": "a DocBin; write the JSON of `doc.to_json()` of each document",
    **dict.fromkeys(
        (".ann", ".a1"), "standoff annotations; convert them with brat's anntoconll.py"
    ),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "a workbook; save each sheet as CSV"),
    **dict.fromkeys((".zip", ".gz", ".bz2", ".xz", ".7z", ".zst"), "an archive; unpack it"),
    **dict.fromkeys((".docx", ".pdf"), "a document; save its text as records"),
    **dict.fromkeys((".tmx", ".xlf", ".po"), "translation units; save pairs as TSV or two files"),
    **dict.fromkeys((".srt", ".vtt", ".textgrid"), "subtitles; save a table of times and texts"),
    b"pk\x03\x04": "an archive or workbook; unpack it, or save each sheet as CSV",
}


def data_files(folder: Path, corpus: Corpus) -> list[Path]:
    """The files with records in a raw folder and its subfolders, sorted by path.

    Skips hidden files and folders. If the format is `fields`, lists files by
    `has_record_suffix`, else of `corpus.reads`, without descriptions unless each file is a text.
    Raises WxbError without any.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in paths if "/." not in f"/{path.relative_to(folder).as_posix()}"]
    if corpus.format_key != "fields":
        files = [path for path in files if corpus.reads(path)]
        if not corpus.has_text_per_file:
            files = [path for path in files if not is_description(path)] or files
        expected = f"files that `{corpus.format_key}` reads"
    else:
        files = [path for path in files if has_record_suffix(path)]
        expected = f"a file ending in {', '.join(SUFFIXES)}{corpus.format_hint}"
    if not files:
        names = shortened([path.name for path in paths], most=5) or "nothing"
        raise WxbError(f"{folder}: found {names}; expected {expected}")
    return files


def has_record_suffix(file: Path) -> bool:
    """Whether the name of a file has one of SUFFIXES and is not that of metadata or a cache."""
    is_cache = file.name.startswith("cache-") and file.suffix == ".arrow"  # of `Dataset.map`
    return file.suffix.lower() in SUFFIXES and file.name not in METADATA_FILES and not is_cache


def is_description(file: Path) -> bool:
    """Whether the name of a file is that of a description, such as README.md."""
    return ABOUT.fullmatch(file.name) is not None


def unread_files(folder: Path, files: Sequence[Path]) -> list[str]:
    """Paths in a raw folder, relative to it, without `files`, hidden ones and METADATA_FILES."""
    others = sorted(path for path in {*folder.rglob("*")} - {*files} if path.is_file())
    names = [p.relative_to(folder).as_posix() for p in others if p.name not in METADATA_FILES]
    return [name for name in names if "/." not in f"/{name}"]


def files_by_split(
    files: Sequence[Path], folder: Path, split: Split
) -> dict[str | None, list[Path]]:
    """The files of each split, by the patterns that their paths inside `folder` match.

    If `split.files` is None, files that match no pattern have the key None. Raises WxbError if a
    split or this key has no files, and for any other file that is not in exactly one split.
    """
    patterns, splits = split.file_patterns, defaultdict[str | None, list[Path]](list)
    misplaced = []
    for file in files:
        path = file.relative_to(folder).as_posix()
        names = [n for n, globs in patterns.items() if any(fnmatchcase(path, g) for g in globs)]
        if len(names) > 1 or (split.files and not names):
            misplaced.append(f"{path} is in {' and '.join(names) or 'no split'}")
        for name in names or (None,):
            splits[name].append(file)
    absent = [name for name in patterns if name not in splits]
    errors = [f"no file matches {', '.join(patterns[name])} ({name})" for name in absent]
    if not split.files and None not in splits:
        errors.append("no file is left to divide")
    if errors or misplaced:
        raise WxbError(
            f"{folder}: {'; '.join([*errors, *misplaced])}; expected every file in one split:"
            " change the patterns in `split` of the corpus"
        )
    return dict(splits)


def refuse_unsupported(file: Path) -> None:
    """Raise WxbError for a suffix of REFUSED, such as .zip, or a beginning, such as `<html`."""
    with file.open("rb") as content:
        start = content.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for mark, kind in REFUSED.items():
        if start.startswith(mark) if isinstance(mark, bytes) else file.suffix.lower() == mark:
            raise WxbError(f"{file}: found {kind}")


def decode(file: Path) -> str:
    """The text of a UTF-8 file without its BOM. Raises WxbError if blank or not UTF-8."""
    return decode_legacy(file, legacy=())[0]


def decode_legacy(file: Path, legacy: Sequence[str] = LEGACY) -> tuple[str, str | None]:
    """The text of a file and its encoding, detected among `legacy`; None for UTF-8.

    Raises WxbError as `decode` does, also for other encodings, such as UTF-16, or an ambiguous one.
    """
    data, encoding = file.read_bytes(), None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        from charset_normalizer import from_bytes

        best = from_bytes(data, cp_isolation=[*LEGACY, *RIVALS]).best()
        is_wrong = best is not None and best.encoding == "cp1252" and WRONG.search(str(best))
        # So much UTF-8 is no coincidence: -c drops its damaged bytes.
        is_damaged = len(data[: error.start].decode(errors="ignore")) + 8 < error.start
        if best is None or best.encoding not in legacy or is_wrong or is_damaged:
            others = f" or unambiguous {' or '.join(legacy)}" if legacy else ""
            likeliest = best.encoding.replace("_", "-") if best and not is_wrong else "ENCODING"
            likeliest = "UTF-8 -c" if is_damaged else likeliest
            raise WxbError(
                f"{file}: found byte {data[error.start]:#04x} at offset {error.start}; expected"
                f" UTF-8{others}: unpack it, or convert it with"
                f" `iconv -f {likeliest} -t UTF-8 {shlex.quote(str(file))} > new{file.suffix}`"
            ) from None
        encoding = best.encoding
        text = data.decode(encoding)
    if not text.strip():
        raise WxbError(f"{file}: found an empty file; expected records")
    return text, encoding
