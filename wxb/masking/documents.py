"""A text that stands in a file, and how it is written there with another in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wxb.masking.edits import Edit, applied


@dataclass(frozen=True)
class Document:
    """A text, and what stands before and after it in its file.

    `units` say how the file spells each code point, `spell` how it would spell others. `seal` gives
    the spelled text its final form when it was changed, or (its second argument) restored.
    """

    text: str
    before: str = ""
    after: str = ""
    units: Sequence[str] | None = None  # None: as they are
    spell: Callable[[str], str] = str
    seal: Callable[[str, bool], str] = lambda spelled, restored: spelled

    def written(self, edits: Sequence[Edit], *, restored: bool = False) -> bytes:
        """Its part of the file, in UTF-8, with the edits in the text.

        `restored` says that they bring back what stood there before.
        """
        units = self.text if self.units is None else self.units
        spelled = applied(units, edits, self.spell)
        sealed = self.seal(spelled, restored) if edits else spelled
        return (self.before + sealed + self.after).encode()
