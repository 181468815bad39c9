"""A text in a file, and how its replacement is written to the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wxb.masking.edits import Edit, apply_edits


@dataclass(frozen=True)
class Document:
    """A text, and the characters before and after it in its file.

    `units` are the spellings of its code points in the file, such as JSON escapes; `escape` spells
    new text. `quote` finishes the edited text; its second argument is whether it is restored.
    """

    text: str
    before: str = ""
    after: str = ""
    units: Sequence[str] | None = None  # None: the text itself
    escape: Callable[[str], str] = str
    quote: Callable[[str, bool], str] = lambda edited, is_restored: edited

    def to_bytes(self, edits: Sequence[Edit], *, is_restored: bool = False) -> bytes:
        """Its part of the file with the edits applied, in UTF-8.

        `is_restored`: whether the edits undo earlier ones.
        """
        units = self.text if self.units is None else self.units
        edited = apply_edits(units, edits, self.escape)
        if edits:
            edited = self.quote(edited, is_restored)
        return (self.before + edited + self.after).encode()
