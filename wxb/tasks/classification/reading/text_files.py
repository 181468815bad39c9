"""Texts without fields: lines of fastText, or a file for each text in a folder for each class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.corpora.formats import Raw
from wxb.corpora.layout import decode, decode_table
from wxb.corpora.records import RecordError
from wxb.tasks.classification.params import Corpus

FASTTEXT = re.compile(r"\s*((?:__label__\S+\s+)+)(.*)")
CLASS = "label"  # the field for a class that is no field of the file


def raw_records(file: Path, corpus: Corpus) -> Iterator[Raw]:
    """Yield the texts of a file with their classes.

    A text that is empty, or neither UTF-8 nor in one of `layout.LEGACY`, is a RecordError. Raises
    WxbError for such a file with lines, which has to be UTF-8.
    """
    field = corpus.fields.input
    if corpus.format == "files":
        try:
            text, legacy = decode_table(file)
        except WxbError as error:
            yield Raw("text", RecordError("no text", str(error)))
            return
        repaired = (f"read as {legacy}",) if legacy else ()
        yield Raw("text", {field: text, CLASS: corpus.classes.get(file.parent.name)}, repaired)
        return
    label = corpus.fields.label or CLASS
    for number, line in enumerate(decode(file).split("\n"), start=1):
        if not line.strip():
            continue
        match = FASTTEXT.match(line)
        names = [name.removeprefix("__label__") for name in match[1].split()] if match else []
        text = match[2] if match else line
        several = RecordError("several classes", f"found {', '.join(names)}; expected one")
        content = {field: text.strip(), label: names[0] if names else None}
        yield Raw(f"line {number}", several if len(names) > 1 else content)
