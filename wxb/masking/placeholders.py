"""Numbered placeholders, `<GIVENNAME_1>`, and how a text that already holds such strings survives.

A placeholder stands for one value. What looks like a placeholder in a text, and is none yet, is
reserved: it will never stand for a value, so unmasking leaves it alone. What is one already (a text
that was masked before, say) cannot stay: unmasking would take it for its value. It gets a
placeholder of its own, of type LITERAL.

As a placeholder has its only `<` at its start and its only `>` at its end, none can arise from two
that stand side by side, or from one and the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wxb.masking.edits import Edit, gaps

PLACEHOLDER = re.compile(r"<([^<>\r\n]+)_([1-9][0-9]*)>")
LITERAL = "LITERAL"

_UNFIT = re.compile(r"""[<>\r\n,;|\t"]""")  # CSV would have the rest of them in quotes only


class Placeholders:
    """Which placeholder stands for which value; numbers of a type go up from 1."""

    def __init__(self, values: Mapping[str, str] | None = None, reserved: Iterable[str] = ()):
        self.values = dict(values or {})  # by placeholder
        self.reserved = set(reserved)
        self._known: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        for placeholder, value in self.values.items():
            label, number = _parts(placeholder)
            self._known[label, value] = placeholder
            self._last[label] = max(number, self._last.get(label, 0))

    @property
    def size(self) -> int:
        """How many there are, reserved ones included."""
        return len(self.values) + len(self.reserved)

    def of(self, type_: str, value: str) -> str:
        """The placeholder of a value, a new one if it has none yet."""
        label = _UNFIT.sub("", type_) or LITERAL
        known = self._known.get((label, value))
        if known:
            return known
        placeholder = ""
        while not placeholder or placeholder in self.reserved:
            self._last[label] = self._last.get(label, 0) + 1
            placeholder = f"<{label}_{self._last[label]}>"
        self.values[placeholder] = value
        self._known[label, value] = placeholder
        return placeholder

    def escaped(self, text: str, edits: Iterable[Edit]) -> list[Edit]:
        """Edits of the placeholders that stand in the rest of the text; reserves what looks so.

        To be called before this text's own values get placeholders.
        """
        matches = [match for gap in gaps(text, edits) for match in PLACEHOLDER.finditer(text, *gap)]
        known = [match for match in matches if match.group() in self.values]
        self.reserved.update(m.group() for m in matches if m.group() not in self.values)
        return [Edit(*match.span(), self.of(LITERAL, match.group())) for match in known]

    def undone(self, text: str) -> list[Edit]:
        """Edits that put values back in place of their placeholders."""
        return [
            Edit(*match.span(), self.values[match.group()], match.group(1))
            for match in PLACEHOLDER.finditer(text)
            if match.group() in self.values
        ]

    def strange(self, text: str) -> list[str]:
        """What looks like a placeholder in a masked text and is none of these, nor reserved."""
        found = (match.group() for match in PLACEHOLDER.finditer(text))
        return [one for one in found if one not in self.values and one not in self.reserved]


def _parts(placeholder: str) -> tuple[str, int]:
    match = PLACEHOLDER.fullmatch(placeholder)
    if not match:
        raise ValueError("not a placeholder")
    return match[1], int(match[2])
