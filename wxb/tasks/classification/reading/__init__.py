"""Reads and cleans texts with one class each, and counts the classes."""

import html as entities
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import regex

from wxb.core.errors import WxbError
from wxb.core.params.corpora import Split
from wxb.core.params.section import JOINERS
from wxb.corpora import formats, reading
from wxb.corpora.adapters import CLASS
from wxb.corpora.formats import Raw
from wxb.corpora.layout import decode, decode_legacy
from wxb.corpora.records import Record, RecordError, required_field, required_text
from wxb.tasks.classification.params import Corpus

FASTTEXT = re.compile(r"\s*((?:__label__\S+(?:\s+|$))+)(.*)")
_NAMES = (
    "a|abbr|b|big|blockquote|br|center|cite|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|q|s|small"
    "|span|strike|strong|sub|sup|table|tbody|td|th|thead|tr|tt|u|ul"
)
# Only known HTML names: "<3" and "a < b" are text.
_TAG = re.compile(rf"</?({_NAMES})(?=[\s/>])[^<>]*>", re.IGNORECASE)
_LINES = re.compile(r"(br|hr|p|div|li|tr|h[1-6]|blockquote)$", re.IGNORECASE)
_BLANKS = re.compile(r"(?<![ \t\xa0])[ \t\xa0]*\n\s*")
_C1 = re.compile("[\x80-\x9f]")
_MARKS = regex.compile(r"(?:[^\w\p{M}\p{No}]|_)+")
_DIGITS = re.compile(r"\d+")


class Reading(reading.Reading):
    """How texts with one class each are read."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """Yield the records of a file; if `format` is set, texts without fields (`_text_records`).

        Others get the class of their file if `classes` is set. Raises WxbError if its name matches
        no pattern of `classes`, or if the file cannot be read.
        """
        if corpus.format:
            yield from _text_records(file, corpus)
            return
        file_class = {CLASS: _class_of(file, corpus)} if corpus.classes else {}
        for raw in formats.raw_records(file, None, corpus.columns, corpus.annotator):
            is_record = isinstance(raw.content, Mapping)
            yield raw._replace(content={**raw.content, **file_class}) if is_record else raw

    def input_of(self, raw: Mapping[str, Any], corpus: Corpus) -> str:
        """A raw record's text after `clean`. Raises RecordError if missing, no text or blank."""
        field = corpus.fields.input
        text, _ = clean(required_text(raw, field), html=corpus.html == "removed")
        return required_text({field: text}, field)

    def gold_and_repairs(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[Any, tuple[str, ...]]:
        """The class of a raw record, None for a blank, null, [] or NaN label; repairs by `clean`.

        A label is a string, a whole number (5.0 is "5") or a truth value ("true"). Ignoring case,
        `labels` maps it to a class, or it is itself a class there; others are their own class.
        Raises RecordError if the field is missing, the label has another type or is mapped to null,
        or the class is not printable.
        """
        _, repairs = clean(raw[corpus.fields.input], html=corpus.html == "removed")
        field = corpus.fields.label or CLASS
        label = required_field(raw, field)
        if label in (None, []) or label != label or (isinstance(label, str) and not label.strip()):
            return None, repairs  # also for NaN, which is not equal to itself
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # tables with empty cells have such ratings
        if isinstance(label, bool):
            label = str(label).lower()  # as in JSON
        if not isinstance(label, str | int):
            raise RecordError("wrong type", f"{field!r} is {label!r}, expected the name of a class")
        name = str(label).strip()
        known = [class_ for class_ in corpus.labels.values() if class_]
        classes: dict[str, str | None] = {class_.casefold(): class_ for class_ in known}
        classes |= {raw_label.casefold(): class_ for raw_label, class_ in corpus.labels.items()}
        if (class_ := classes.get(name.casefold(), name)) is None:
            raise RecordError("left out", f"`labels` has no class for {name!r}")
        if not class_.translate(JOINERS).isprintable():  # nor is a lone surrogate
            raise RecordError("wrong type", f"{field!r} is {class_!r}, expected a printable name")
        return class_, repairs

    def wording(self, record: Record) -> str:
        """The words of a text in lower case, 0 for each number; empty if they have no letter."""
        text = record.input.casefold()
        if not any(map(str.isalpha, text)):
            return ""
        return _DIGITS.sub("0", _MARKS.sub(" ", text)).strip()

    def sentence_text(self, record: Record) -> str:
        """As `wording`, with the marks, which separate sentences."""
        return super().wording(record)

    def check_labels(self, splits: Mapping[str, Sequence[Record]], split: Split) -> None:
        """As by default; also raises WxbError if training records have a single class."""
        super().check_labels(splits, split)
        if len(classes := self.labels(splits["train"])) == 1:
            raise WxbError(
                f"all training records have the class {classes[0]!r}; add records of another"
                " (`max_records` takes the first records of published training files)"
            )

    def statistics(self, records: Sequence[Record]) -> dict[str, Any]:
        """Counts of `classes`, sorted by name, and `largest_to_smallest`, their rounded ratio."""
        counts = Counter(record.gold for record in records)
        ratio = round(max(counts.values()) / min(counts.values()), 2) if counts else 0.0
        return {"classes": dict(sorted(counts.items())), "largest_to_smallest": ratio}


def _class_of(file: Path, corpus: Corpus) -> str | None:
    """The class (None: unlabelled) of the first pattern that fits a file's name, else WxbError."""
    for pattern, class_ in corpus.classes.items():
        if fnmatchcase(file.name, pattern):
            return class_
    raise WxbError(
        f"{file}: matches no pattern of `classes` ({', '.join(corpus.classes)}); add one, or"
        " remove the file"
    )


def clean(text: str, *, html: bool) -> tuple[str, tuple[str, ...]]:
    """A text without what web pages left in it, and the kinds of repairs made.

    With `html`, known tags are removed, those of lines and paragraphs become single line breaks,
    and entities become characters. C1 control characters become those of Windows-1252 or vanish.
    """
    repaired = []
    if html:
        bare = _TAG.sub(lambda match: "\n" if _LINES.match(match[1]) else "", text)
        if bare != text:
            bare = _BLANKS.sub("\n", bare).strip()
            repaired.append("HTML removed")
        decoded = entities.unescape(bare)
        if decoded != bare:
            repaired.append("entities decoded")
        text = decoded
    shown = _C1.sub(lambda match: match[0].encode("latin-1").decode("cp1252", "ignore"), text)
    if shown != text:
        repaired.append("control characters read as Windows-1252")
    return shown, tuple(repaired)


def _text_records(file: Path, corpus: Corpus) -> Iterator[Raw]:
    """Yield the text of a file with its folder's class, or each line with its `__label__`, if any.

    A text that is empty, or neither UTF-8 nor in one of `layout.LEGACY`, is a RecordError. Lines
    must be UTF-8, else WxbError; blank ones are skipped, one with several classes is a RecordError.
    """
    field = corpus.fields.input
    if corpus.format == "files":
        try:
            text, legacy = decode_legacy(file)
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
