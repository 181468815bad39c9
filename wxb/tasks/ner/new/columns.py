"""Find the columns of tokens and tags in files with one token per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import regex

from wxb.core.errors import WxbError
from wxb.corpora.layout import decode
from wxb.tasks.guessing import Guess
from wxb.tasks.ner.reading.conll import DOCUMENT, PREFIXES, cells, numbered_lines
from wxb.tasks.ner.reading.tokens import join
from wxb.tasks.values import Files, split_settings

TAG = regex.compile(rf"O|[{''.join(sorted(PREFIXES))}]-.+")
NUMBERED = regex.compile(r".\d{1,2}")  # a character and its index in a word, as in Weibo
EVIDENCE = 2  # tokens and tags
MOST = 0.95  # share of lines with a tag; the reader rejects the others


def has_tags(files: Sequence[Path]) -> bool:
    """Whether all files are `.tsv`, with columns of tokens and of tags (95% of lines have both)."""
    is_tsv = all(file.suffix.lower() == ".tsv" for file in files)
    return is_tsv and all(_columns(_lines(decode(file))) for file in files)


def guess(files: Sequence[Path]) -> Guess | None:
    """The block for column files; None if fewer than half of the files are.

    Raises WxbError if some of the files lack such columns, for the first that does.
    """
    texts = {file: decode(file) for file in files}
    lines = {file: _lines(text) for file, text in texts.items()}
    columns_of = {file: _columns(table) for file, table in lines.items()}
    if 2 * sum(map(bool, columns_of.values())) < len(files) or not any(columns_of.values()):
        return None
    for file, columns in columns_of.items():
        if columns is None:
            raise WxbError(
                f"{file}: found {Files(file, [file]).summary()}; other files here have a token and"
                " its tag per line, such as B-NAME. A file without records has to leave the folder"
            )
    (token, tag), _ = Counter(filter(None, columns_of.values())).most_common(1)[0]
    rows = [line for table in lines.values() for line in table]
    tokens = [line[token] for line in rows if len(line) > token]
    numbered = _share(NUMBERED.fullmatch(t) is not None for t in tokens) > MOST
    separator = join(tokens)
    content: dict[str, Any] = {"token": token, "tag": tag, "join": separator}
    reasons = {
        "conll.token": f"guessed: {', '.join(list(dict.fromkeys(tokens))[:3])}",
        "conll.tag": "guessed; -1 is the last column",
        "conll.join": "guessed: words" if separator else "guessed: a script without spaces",
    }
    if numbered:
        content["characters"] = True
        reasons["conll.characters"] = (
            f"guessed: tokens such as {tokens[0]} are a character and its index in the word"
        )
    content["unit"] = "sentence"
    reasons["conll.unit"] = f"or document: lines {DOCUMENT} begin one"
    delimiter = "tabs" if any("\t" in text for text in texts.values()) else "spaces"
    notes = [f"{len(tokens):,} tokens with tags in columns separated by {delimiter}"]
    reasons |= {"split.by": "by document", "split.test": "share of all records"}
    return Guess({"conll": content, "split": split_settings(None)}, reasons, notes, EVIDENCE)


def _lines(text: str) -> list[list[str]]:
    """The cells of each line; none for a blank line. Skips comments and marks of documents."""
    lines = (line for _, line in numbered_lines(text))
    return [cells(line) if line else [] for line in lines if not line.startswith(DOCUMENT)]


def _columns(lines: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """The indices of tokens and tags: the first column without tags and numbers, the last of tags.

    None if no column has tags, or only one line has as many cells. A tag in the last column has the
    index -1.
    """
    full = [line for line in lines if len(line) > 1]
    if not full or 2 * len(full) < sum(map(bool, lines)):
        return None
    width = Counter(map(len, full)).most_common(1)[0][0]
    rows = [line for line in full if len(line) == width]
    if len(rows) < 2:  # a text on one line may have a word such as B-movie
        return None
    tags = [
        c for c in range(width) if _share(bool(TAG.fullmatch(r[c].strip())) for r in rows) >= MOST
    ]
    tags = [c for c in tags if any(row[c] != "O" for row in rows)] or tags
    if not tags:
        return None
    tag = tags[-1]
    others = [c for c in range(width) if c not in tags]
    tokens = [c for c in others if not all(row[c].isdigit() for row in rows)]
    return (tokens[0], tag - width if tag == width - 1 else tag) if tokens else None


def _share(tests: Any) -> float:
    outcomes = list(tests)
    return sum(outcomes) / len(outcomes) if outcomes else 0.0
