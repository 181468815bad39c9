"""Texts with one class each: read, cleaned and counted."""

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
from wxb.corpora.records import Record, RecordError, encodable, required
from wxb.tasks.classification.params import Corpus
from wxb.tasks.classification.reading.cleaning import cleaned
from wxb.tasks.classification.record.giveaways import giveaways

CLASS = "label"  # of records whose file tells it


_MARKS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")


class Reading(reading.Reading):
    """Texts with one class each."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The records of a file, their texts without HTML, with the class of the file if any."""
        told = {CLASS: _class_of(file, corpus)} if corpus.classes else {}
        for raw in formats.raw_records(file):
            content, repaired = raw.content, raw.repaired
            if isinstance(content, Mapping):
                content = {**content, **told}
                text = content.get(corpus.fields.input)
                if isinstance(text, str):
                    content[corpus.fields.input], more = cleaned(
                        text, html=corpus.html == "removed"
                    )
                    repaired += more
            yield raw._replace(content=content, repaired=repaired)

    def gold(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[str | None, tuple[str, ...]]:
        """The class of a raw record, None where nobody gave one, in the words of params.

        A class is a word or a whole number; `labels` maps it whatever its capitals.
        """
        field = corpus.fields.label or CLASS
        found = required(raw, field)
        if found is None or (isinstance(found, str) and not found.strip()):
            return None, ()
        if not isinstance(found, str | int) or isinstance(found, bool):
            raise RecordError("wrong type", f"{field!r} is {found!r}, expected the name of a class")
        name = str(found).strip()
        same = {class_.casefold(): class_ for class_ in corpus.labels.values() if class_}
        renamed = same | {word.casefold(): class_ for word, class_ in corpus.labels.items()}
        class_ = renamed.get(name.casefold(), name)
        if class_ is None:
            raise RecordError("left out", f"`labels` has no class for {name!r}")
        encodable(class_)
        return class_, ()

    def wording(self, record: Record) -> str:
        """The words of a text in lower case, each number 0, without what names its publisher."""
        text, parts, reached = record.input, [], 0
        for start, end in giveaways(text):
            parts.append(text[reached:start])
            reached = end
        said = " ".join([*parts, text[reached:]]).casefold()
        if not any(map(str.isalpha, said)):
            return ""
        return _DIGITS.sub("0", _MARKS.sub(" ", said)).strip()

    def labels(self, records: Sequence[Record]) -> list[str]:
        """The classes that occur, sorted."""
        return sorted({record.gold for record in records if record.gold is not None})

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """How many records each class has, and how many times the smallest the largest is."""
        counts = Counter(record.gold for record in records)
        ratio = round(max(counts.values()) / min(counts.values()), 2) if counts else 0.0
        return {"classes": dict(sorted(counts.items())), "largest_to_smallest": ratio}


def _class_of(file: Path, corpus: Corpus) -> str:
    for pattern, class_ in corpus.classes.items():
        if fnmatchcase(file.name, pattern):
            return class_
    raise WxbError(
        f"{file}: matches no pattern of `classes` ({', '.join(corpus.classes)}); name its class"
        " there, or take the file away"
    )
