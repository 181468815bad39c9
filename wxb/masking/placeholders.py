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

import json
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

    Edits of one text are sorted and disjoint. `type` and `score` are those of a predicted span, if
    the edit is of one.
    """

    start: int
    end: int
    new: str
    type: str | None = None
    score: float | None = None


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

    @property
    def size(self) -> int:
        """The number of placeholders and fakes, reserved placeholders included."""
        return len(self.values) + len(self.reserved) + len(self.fakes)

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

    def escape(self, text: str, edits: Iterable[Edit]) -> list[Edit]:
        """Edits that escape placeholders between other edits; reserves strings of their form.

        Call it before the values of this text get placeholders.
        """
        matches: list[re.Match[str]] = []
        start = 0
        for edit in [*edits, Edit(len(text), len(text), "")]:
            matches += PLACEHOLDER.finditer(text, start, edit.start)
            start = edit.end
        known = [match for match in matches if match.group() in self.values]
        self.reserved.update(m.group() for m in matches if m.group() not in self.values)
        return [Edit(m.start(), m.end(), self.placeholder(LITERAL, m.group())) for m in known]

    def restore(self, text: str) -> str:
        """The text with its placeholders replaced by their values."""
        return PLACEHOLDER.sub(lambda match: self.values.get(match.group(), match.group()), text)

    def unknown(self, text: str) -> list[str]:
        """Strings in a masked text that look like placeholders but are not known or reserved."""
        strings = (match.group() for match in PLACEHOLDER.finditer(text))
        return [s for s in strings if s not in self.values and s not in self.reserved]


class Content(BaseModel):
    """The content of a mapping file."""

    model_config = ConfigDict(extra="forbid")

    placeholders: dict[str, str]
    reserved: list[str]
    fakes: dict[str, str] = {}


class Mapping(Placeholders):
    """Placeholders in a file, for many documents and runs.

    Reads the file if it exists. Raises WxbError if it is no mapping; the error never shows its
    content.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        content = _read(path) if path.exists() else Content(placeholders={}, reserved=[])
        super().__init__(content.placeholders, content.reserved, content.fakes)
        self._saved = self.size if path.exists() else -1

    def save(self) -> None:
        """Replace the file atomically if there are changes; only its owner may read it."""
        if self.size == self._saved:
            return
        content = Content(
            placeholders=self.values, reserved=sorted(self.reserved), fakes=self.fakes
        )
        text = json.dumps(content.model_dump(), ensure_ascii=False, indent=2) + "\n"
        draft = self.path.with_name(f".{self.path.name}.partial")
        try:
            draft.unlink(missing_ok=True)
            with create_private(draft) as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            raise WxbError(f"{self.path}: cannot be written ({error.strerror})") from None
        finally:
            draft.unlink(missing_ok=True)
        self._saved = self.size


def _read(path: Path) -> Content:
    try:
        content = Content.model_validate_json(path.read_bytes())
        if all(map(PLACEHOLDER.fullmatch, content.placeholders)):
            return content
    except OSError as error:
        raise WxbError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError:
        pass  # its message would show the content
    raise WxbError(f"{path}: expected a mapping that `wxb mask --mapping` wrote") from None
