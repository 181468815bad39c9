"""Numbered placeholders such as `<GIVENNAME_1>`, for masking that can be undone.

A placeholder stands for one value. A text may already contain strings of this form:

- Strings that are no placeholder yet are reserved. They never stand for a value, so unmasking keeps
  them.
- Strings that are placeholders, for example in a text that was masked before, are escaped: each is
  replaced by a placeholder of type LITERAL. Otherwise unmasking would replace them by their value.

The only `<` of a placeholder is at its start and the only `>` at its end, so neighbouring text can
never form another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wxb.masking.edits import Edit, gaps

PLACEHOLDER = re.compile(r"<([^<>\r\n]+)_([1-9][0-9]*)>")
LITERAL = "LITERAL"

_NOT_IN_LABELS = re.compile(r"""[<>\r\n,;|\t"]""")  # most would need quotes in CSV


class Placeholders:
    """Placeholders with their values; each type is numbered from 1."""

    def __init__(self, values: Mapping[str, str] | None = None, reserved: Iterable[str] = ()):
        self.values = dict(values or {})  # by placeholder
        self.reserved = set(reserved)
        self._by_value: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        for placeholder, value in self.values.items():
            label, number = _parts(placeholder)
            self._by_value[label, value] = placeholder
            self._last[label] = max(number, self._last.get(label, 0))

    @property
    def size(self) -> int:
        """The number of placeholders, reserved ones included."""
        return len(self.values) + len(self.reserved)

    def placeholder(self, type_: str, value: str) -> str:
        """The placeholder of a value; adds a new one if there is none."""
        label = _NOT_IN_LABELS.sub("", type_) or LITERAL
        known = self._by_value.get((label, value))
        if known:
            return known
        placeholder = ""
        while not placeholder or placeholder in self.reserved:
            self._last[label] = self._last.get(label, 0) + 1
            placeholder = f"<{label}_{self._last[label]}>"
        self.values[placeholder] = value
        self._by_value[label, value] = placeholder
        return placeholder

    def escape(self, text: str, edits: Iterable[Edit]) -> list[Edit]:
        """Edits that escape placeholders between other edits; reserves strings of their form.

        Call it before the values of this text get placeholders.
        """
        matches = [match for gap in gaps(text, edits) for match in PLACEHOLDER.finditer(text, *gap)]
        known = [match for match in matches if match.group() in self.values]
        self.reserved.update(m.group() for m in matches if m.group() not in self.values)
        return [Edit(*match.span(), self.placeholder(LITERAL, match.group())) for match in known]

    def restore(self, text: str) -> list[Edit]:
        """Edits that replace placeholders by their values."""
        return [
            Edit(*match.span(), self.values[match.group()], match.group(1))
            for match in PLACEHOLDER.finditer(text)
            if match.group() in self.values
        ]

    def unknown(self, text: str) -> list[str]:
        """Strings in a masked text that look like placeholders but are not known or reserved."""
        strings = (match.group() for match in PLACEHOLDER.finditer(text))
        return [s for s in strings if s not in self.values and s not in self.reserved]


def _parts(placeholder: str) -> tuple[str, int]:
    match = PLACEHOLDER.fullmatch(placeholder)
    if not match:
        raise ValueError("not a placeholder")
    return match[1], int(match[2])
