"""What a record is, and what became of one that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Record:
    """An input and its gold, whose type the task says; `gold` is None where nobody labelled it.

    The input is a text; of a task that reads files, such as audio, their path.

    Records of one `group` stay together where records are divided or resampled. The last three
    fields matter until the corpus is divided, and are not kept on disk: the split that the record
    was published in, its values of the fields by which further test sets are held out, and one
    entry for each thing in it that the reader repaired.
    """

    id: str
    input: str
    gold: Any
    language: str | None
    group: str
    split: str | None = None
    values: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()


class Reject(NamedTuple):
    """A record that is dropped: where it stood or its id, why, and what it held."""

    origin: str
    reason: str
    detail: str
    id: str | None


class RecordError(Exception):
    """Why a record is dropped: a reason to count by, and the particulars."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def required(raw: Mapping[str, Any], field: str) -> Any:
    """A field that a raw record must have; RecordError where it has not."""
    if field not in raw:
        raise RecordError("missing field", f"found {', '.join(map(repr, raw))}; expected {field!r}")
    return raw[field]


def encodable(*parts: str) -> None:
    """Raise RecordError where a text cannot be written as UTF-8."""
    try:
        "\n".join(parts).encode()
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise RecordError("lone surrogate", f"{found!a} cannot be written as UTF-8") from None
