"""Numbered placeholders such as `<GIVENNAME_1>`, and the mapping file that makes them reversible.

A placeholder stands for one value. A text may already contain strings of this form:

- Strings that are no placeholder yet are reserved. They never stand for a value, so unmasking keeps
  them.
- Strings that are placeholders, for example in a text that was masked before, are escaped: each is
  replaced by a placeholder of type LITERAL. Otherwise unmasking would replace them by their value.

The only `<` of a placeholder is at its start and the only `>` at its end, so neighbouring text can
never form another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from wxb import WxbError
from wxb.core.files import create_private

PLACEHOLDER = re.compile(r"<([^<>\r\n]+)_([1-9][0-9]*)>")
LITERAL = "LITERAL"

_NOT_IN_LABELS = re.compile(r"""[<>\r\n,;|\t"]""")  # most would need quotes in CSV


class Edit(NamedTuple):
    """A replacement of the code points `start:end` of a text by `new`.

    Edits of one text are sorted and disjoint.
    """

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with its edits applied."""
    parts, end = [], 0
    for edit in edits:
        parts += [text[end : edit.start], edit.new]
        end = edit.end
    return "".join([*parts, text[end:]])


class Placeholders:
    """Placeholders and fakes with their values. The placeholders of a type are numbered from 1."""

    def __init__(
        self,
        values: dict[str, str] | None = None,
        reserved: Iterable[str] = (),
        fakes: dict[str, str] | None = None,
    ) -> None:
        self.values, self.reserved, self.fakes = values or {}, {*reserved}, fakes or {}
        self._by_value: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        for placeholder, value in self.values.items():
            label, _, number = placeholder[1:-1].rpartition("_")
            self._by_value[label, value] = placeholder
            self._last[label] = max(int(number), self._last.get(label, 0))

    def placeholder(self, type_: str, value: str) -> str:
        """The placeholder of a value; adds a new one if there is none."""
        label = _NOT_IN_LABELS.sub("", type_) or LITERAL
        placeholder = self._by_value.get((label, value), "")
        while not placeholder or placeholder in self.reserved:
            self._last[label] = self._last.get(label, 0) + 1
            placeholder = f"<{label}_{self._last[label]}>"
        self._by_value[label, value] = placeholder
        self.values[placeholder] = value
        return placeholder

    def escape(self, text: str, spans: Iterable[tuple[int, int, str]]) -> list[Edit]:
        """Edits that escape placeholders between (start, end, type) spans.

        Reserves strings of their form. Call it before the values of this text get placeholders.
        """
        matches: list[re.Match[str]] = []
        last = 0
        for start, end, _ in [*spans, (len(text), len(text), "")]:
            matches += PLACEHOLDER.finditer(text, last, start)
            last = end
        known = [match for match in matches if match.group() in self.values]
        self.reserved.update(m.group() for m in matches if m.group() not in self.values)
        return [Edit(m.start(), m.end(), self.placeholder(LITERAL, m.group())) for m in known]

    def restore(self, text: str) -> str:
        """The text with its placeholders replaced by their values."""
        return PLACEHOLDER.sub(lambda match: self.values.get(match.group(), match.group()), text)

    def unknown(self, text: str) -> int:
        """The number of strings in a masked text that look like placeholders of another mapping."""
        strings = [match.group() for match in PLACEHOLDER.finditer(text)]
        return sum(s not in self.values and s not in self.reserved for s in strings)


class Content(BaseModel):
    """The content of a mapping file."""

    model_config = ConfigDict(extra="forbid")

    placeholders: dict[str, str] = {}
    reserved: list[str] = []
    fakes: dict[str, str] = {}


class Mapping(Placeholders):
    """Placeholders in a file, for many documents and runs.

    Reads the file if it exists. Raises WxbError if it is no mapping; the error never shows its
    content.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._saved = path.resolve(), path.read_bytes() if path.exists() else b""
        try:
            content = Content.model_validate_json(self._saved) if path.exists() else Content()
            is_mapping = all(map(PLACEHOLDER.fullmatch, content.placeholders))
        except ValidationError:
            is_mapping = False
        if not is_mapping:
            raise WxbError(f"{path}: expected a mapping that `wxb mask --mapping` wrote")
        super().__init__(content.placeholders, content.reserved, content.fakes)

    def save(self) -> None:
        """Replace the file atomically if there are changes; only its owner may read it."""
        content = Content(
            placeholders=self.values, reserved=sorted(self.reserved), fakes=self.fakes
        )
        new = f"{content.model_dump_json(indent=2)}\n".encode()
        if new == self._saved:
            return
        draft = self.path.with_name(f".{self.path.name}.partial")  # `publish` would lock again
        draft.unlink(missing_ok=True)
        try:
            with create_private(draft) as file:
                file.write(new)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)
        self._saved = new
