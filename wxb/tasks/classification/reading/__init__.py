"""Reads and cleans texts with one class each, and counts the classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError
from wxb.corpora import formats, reading
from wxb.corpora.formats import Raw
from wxb.corpora.records import Record, RecordError, check_encodable, required_field
from wxb.tasks.classification.params import Corpus
from wxb.tasks.classification.reading import text_files
from wxb.tasks.classification.reading.cleaning import clean
from wxb.tasks.classification.reading.text_files import CLASS

_MARKS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")


class Reading(reading.Reading):
    """How texts with one class each are read."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The records of a file with cleaned texts, and with the class of the file, if any."""
        if corpus.format:
            file_class, rows = {}, text_files.raw_records(file, corpus)
        else:
            file_class = {CLASS: _class_of(file, corpus)} if corpus.classes else {}
            rows = formats.raw_records(file, columns=corpus.columns)
        for raw in rows:
            content, repaired = raw.content, raw.repaired
            if isinstance(content, Mapping):
                content = {**content, **file_class}
                text = content.get(corpus.fields.input)
                if isinstance(text, str):
                    content[corpus.fields.input], repairs = clean(
                        text, html=corpus.html == "removed"
                    )
                    repaired += repairs
            yield raw._replace(content=content, repaired=repaired)

    def gold(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[str | None, tuple[str, ...]]:
        """The class of a raw record, None if it has no label; nothing is repaired.

        `labels` maps a label, a string or a whole number, to its class, ignoring case; 5.0 is "5".
        Raises RecordError for a label of another type, and for one that `labels` maps to null.
        """
        field = corpus.fields.label or CLASS
        label = required_field(raw, field)
        if label in (None, []) or label != label or (isinstance(label, str) and not label.strip()):
            return None, ()  # also for NaN, which is not equal to itself
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # tables with empty cells have such ratings
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise RecordError("wrong type", f"{field!r} is {label!r}, expected the name of a class")
        name = str(label).strip()
        classes: dict[str, str | None] = {
            class_.casefold(): class_ for class_ in corpus.labels.values() if class_
        }
        classes |= {raw_label.casefold(): class_ for raw_label, class_ in corpus.labels.items()}
        class_ = classes.get(name.casefold(), name)
        if class_ is None:
            raise RecordError("left out", f"`labels` has no class for {name!r}")
        check_encodable(class_)
        return class_, ()

    def wording(self, record: Record) -> str:
        """The words of a text in lower case, with 0 for each number.

        Empty if they have no letter.
        """
        text = record.input.casefold()
        if not any(map(str.isalpha, text)):
            return ""
        return _DIGITS.sub("0", _MARKS.sub(" ", text)).strip()

    def labels(self, records: Sequence[Record]) -> list[str]:
        """The classes that occur, sorted."""
        return sorted({record.gold for record in records if record.gold is not None})

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """The count of records by class, and the ratio of the largest count to the smallest."""
        counts = Counter(record.gold for record in records)
        ratio = round(max(counts.values()) / min(counts.values()), 2) if counts else 0.0
        return {"classes": dict(sorted(counts.items())), "largest_to_smallest": ratio}


def _class_of(file: Path, corpus: Corpus) -> str | None:
    """The class of a file by its name, None if unlabelled.

    Raises WxbError if no pattern matches.
    """
    for pattern, class_ in corpus.classes.items():
        if fnmatchcase(file.name, pattern):
            return class_
    raise WxbError(
        f"{file}: matches no pattern of `classes` ({', '.join(corpus.classes)}); add one, or"
        " remove the file"
    )
