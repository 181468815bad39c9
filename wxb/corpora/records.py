"""Records, rejected records, checks of raw fields, and the base class for storing gold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Record:
    """An input with its gold, whose type depends on the task; None if unlabelled.

    The input is a text, or the path of a file in tasks that read files, such as audio. Records of
    one `group` stay together when records are divided; test records then get the group of their
    intervals. The last four fields are used until then and are not saved: the published split, the
    values of the fields of further test sets, one entry per repair by the reader, and the digest of
    the wording (16 bytes; near duplicates share it; empty without one).
    """

    id: str
    input: str
    gold: Any
    language: str | None
    group: str
    split: str | None = None
    values: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    wording: bytes = field(default=b"", compare=False)


class Reject(NamedTuple):
    """A rejected record: its file and line (or its id), the reason, details, and its id if any."""

    origin: str
    reason: str
    detail: str
    id: str | None


# Reasons of rejects that are no sign of a wrong setting.
USUAL = DUPLICATE, NEAR_DUPLICATE, SURPLUS = "duplicate text", "near duplicate", "over max_records"


class RecordError(Exception):
    """Raised if a record cannot be used: a reason that is counted, and details."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def required_field(raw: Mapping[str, Any], field: str) -> Any:
    """The value of a field of a raw record, even if None. Raises RecordError if it is missing."""
    if field not in raw:
        raise RecordError("missing field", f"found {', '.join(map(repr, raw))}; expected {field!r}")
    return raw[field]


def required_text(raw: Mapping[str, Any], field: str) -> str:
    """The text of a field of a raw record; RecordError if it is no text or only white space."""
    text = required_field(raw, field)
    if not isinstance(text, str):
        raise RecordError("wrong type", f"{field!r} is {type(text).__name__}, expected text")
    if not text.strip():
        raise RecordError("blank text", f"{field!r} has no visible character")
    return text


def check_characters(*parts: str) -> None:
    """Raise RecordError if a text has a NUL, or cannot be encoded as UTF-8."""
    for text in parts:
        if "\0" in text:
            raise RecordError("NUL character", f"at offset {text.index(chr(0))} of {text!r:.60}")
    try:
        "\n".join(parts).encode()
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        raise RecordError("lone surrogate", f"{character!a} cannot be written as UTF-8") from None


class Labelling(NamedTuple):
    """The type of gold, in Parquet and in Python."""

    stored: pa.DataType  # named tuples are stored as structs
    type: Any = Any  # parses what Parquet returns, and the JSON of predictions

    def parse(self, values: Sequence[Any]) -> list[Any]:
        """Gold from values of Parquet; None stays None."""
        gold: TypeAdapter[Any] = TypeAdapter(self.type)
        return [None if value is None else gold.validate_python(value) for value in values]
