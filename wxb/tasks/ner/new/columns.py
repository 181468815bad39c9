"""Which columns of files with one token a line hold tokens and tags, and how tokens are joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from wxb.core.errors import WxbError
from wxb.corpora.layout import decode
from wxb.tasks.guessing import Guess
from wxb.tasks.ner.reading.conll import BEGINNING, DOCUMENT, PREFIXES, cells
from wxb.tasks.values import divided

TAG = regex.compile(rf"O|[{''.join(sorted(PREFIXES))}]-.+")
# Scripts that are written without spaces between words.
UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
NUMBERED = regex.compile(r".\d{1,2}")  # a character with its place in a word, as in Weibo's files
EVIDENCE = 2  # tokens and tags
MOST = 0.95  # of lines: the rest are faults, which the reader rejects one by one


def hold_tags(files: Sequence[Path]) -> bool:
    """Whether files whose suffix says that they are tables have a token and its tag a line."""
    tables = all(file.suffix.lower() == ".tsv" for file in files)
    return tables and all(_columns([*_lines(decode(file))]) for file in files)


def guess(files: Sequence[Path]) -> Guess | None:
    """What a block of `corpora` should say of files with columns, `path` aside; None of others.

    Raises WxbError where some of the files alone have such columns, for the first that has none.
    """
    texts = {file: decode(file) for file in files}
    lines = {file: [*_lines(text)] for file, text in texts.items()}
    found = {file: _columns(table) for file, table in lines.items()}
    if not any(found.values()):
        return None
    for file, columns in found.items():
        if columns is None:
            raise WxbError(_unlike_columns(file, texts[file]))
    (token, tag), _ = Counter(filter(None, found.values())).most_common(1)[0]
    rows = [line for table in lines.values() for line in table]
    tokens = [line[token] for line in rows if len(line) > token]
    numbered = _share(NUMBERED.fullmatch(t) is not None for t in tokens) > MOST
    unspaced = _share(UNSPACED.match(t) is not None for t in tokens if t[:1].isalpha()) > 0.5
    content: dict[str, Any] = {"token": token, "tag": tag, "join": "" if unspaced else " "}
    scheme = _scheme([line[tag] if line else "" for table in lines.values() for line in table])
    why = {
        "conll.token": f"guessed: {', '.join(_some(tokens))}",
        "conll.tag": f"guessed: {scheme}; -1 is the last column",
        "conll.join": "guessed: a script without spaces" if unspaced else "guessed: words",
    }
    if numbered:
        content["characters"] = True
        why["conll.characters"] = (
            f"guessed: tokens such as {tokens[0]} are a character and its place"
        )
    documents = sum(
        text.count(f"\n{DOCUMENT}") + text.startswith(DOCUMENT) for text in texts.values()
    )
    content["unit"] = "sentence"
    why["conll.unit"] = "or document: " + (
        f"{documents:,} lines {DOCUMENT} begin one"
        if documents
        else f"lines {DOCUMENT} would begin one"
    )
    between = "tabs" if any("\t" in text for text in texts.values()) else "spaces"
    notes = [f"{len(tokens):,} tokens with {scheme} tags in columns divided by {between}"]
    split = divided(None)
    why |= {"split.by": "by document", "split.test": "share of records, of all"}
    return Guess({"conll": content, "split": split}, why, notes, EVIDENCE)


def _lines(text: str) -> list[list[str]]:
    """The columns of each line with a token; of a blank line, none."""
    stripped = (line.rstrip("\r\t ") for line in text.split("\n"))
    return [cells(line) if line else [] for line in stripped if not line.startswith(DOCUMENT)]


def _columns(lines: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """The columns of tokens and tags: the last that holds tags, the first that holds no numbers."""
    full = [line for line in lines if len(line) > 1]
    if 2 * len(full) < sum(map(bool, lines)):
        return None
    width = Counter(map(len, full)).most_common(1)[0][0]
    rows = [line for line in full if len(line) == width]
    tags = [c for c in range(width) if _share(_is_tag(row[c]) for row in rows) >= MOST]
    tags = [c for c in tags if any(row[c] != "O" for row in rows)] or tags
    if not tags:
        return None
    tag = tags[-1]
    others = [c for c in range(width) if c not in tags]
    counted = [c for c in others if all(row[c].isdigit() for row in rows)]
    tokens = [c for c in others if c not in counted]
    return (tokens[0], tag - width if tag == width - 1 else tag) if tokens else None


def _is_tag(cell: str) -> bool:
    return TAG.fullmatch(cell.strip()) is not None


def _scheme(tags: Sequence[str]) -> str:
    """The name of the scheme that tags follow; the reader finds its rules out by itself."""
    prefixes = {tag[0] for tag in tags if "-" in tag}
    for name, own in (("BMEWO", {*"MW"}), ("BILOU", {*"LU"}), ("BIOES", {*"ES"})):
        if prefixes & own:
            return name
    begins = any(b[:1] in BEGINNING and a[2:] != b[2:] for a, b in pairwise(["O", *tags]) if b)
    return "BIO" if begins else "IOB1"


def _unlike_columns(file: Path, text: str) -> str:
    shown = "; ".join(repr(line[:60]) for line in text.split("\n")[:3] if line.strip())
    return (
        f"{file}: found lines such as {shown}; other files here have a token and its tag a line,"
        " such as B-NAME. A file that holds no records has to leave the folder"
    )


def _share(tests: Any) -> float:
    outcomes = list(tests)
    return sum(outcomes) / len(outcomes) if outcomes else 0.0


def _some(values: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(values))[:3]
