"""Numbered placeholders, such as `<EMAIL_1>`, each of which stands for one value.

A text may already contain strings that look like one. If they are no placeholder yet, they are
reserved: they never stand for a value. If they are, for example in a text that was masked before,
a placeholder of type LITERAL replaces each. So unmasking restores every text.

Other brackets, case, width, blanks and escapes are understood, as language models change them.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from wxb import WxbError
from wxb.core.files import create_private
from wxb.masking.rules import Values

LITERAL = "LITERAL"
BRACKETS = ("<>", "[]", "{}")  # that masking can write
_FORBIDDEN = r"<>\[\]{}\\\r\n"  # in a label, so that neighbouring text never forms another one
PLACEHOLDER = re.compile(
    r"(\\)?(?:&lt;|&#60;|%3[Cc]|\\u003[Cc]|[<\[{〈《「【«⟨\u2039]) ?"
    rf"(?:((?:[^{_FORBIDDEN}]|\\_){{1,80}}?)\\?_|([^\W\d_]\w{{0,80}}?)[ -]?)"  # a label
    r"(?<!\d)([1-9][0-9]{0,8}) ?(?(1)\\)(?:&gt;|&#62;|%3[Ee]|\\u003[Ee]|[>\]}〉》」】»⟩\u203a])"
)
# Without brackets, with one of them, or with more changes: these are counted, not restored.
_BARE = re.compile(r"(?<![^\W_])([^\W\d_]\w*?)[\s\\]*[_#-]\s*0*([1-9][0-9]{0,8})(?![^\W_])")
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width ASCII
_NOT_IN_LABELS = re.compile(rf"""[{_FORBIDDEN},;|\t"&]""")  # most would need quotes in CSV


class Edit(NamedTuple):
    """A replacement of the code points `start:end` of a text; a text's are sorted and disjoint."""

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[Edit], brackets: str = BRACKETS[0]) -> str:
    """The text with its edits applied, with these brackets around types and placeholders."""
    parts, end = [], 0
    for edit in edits:
        is_type = edit.new[:1] + edit.new[-1:] == BRACKETS[0]
        new = brackets[0] + edit.new[1:-1] + brackets[1] if is_type else edit.new
        parts += [text[end : edit.start], new]
        end = edit.end
    return "".join([*parts, text[end:]])


class Content(BaseModel, extra="forbid"):
    """The content of a mapping file: values by placeholder, reserved strings, values by fake."""

    placeholders: dict[str, str] = {}
    reserved: set[str] = set()
    fakes: dict[str, str] = {}


class Placeholders:
    """Placeholders and fakes with their values. The placeholders of a type are numbered from 1.

    `path`: a file that keeps them; it need not exist. Raises WxbError if it is no mapping, without
    quoting it. `known` finds the values in texts. `restored`, `altered`: counts of `restore`.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path, content = path and path.resolve(), Content()
        try:
            if path and path.exists():
                content = Content.model_validate_json(path.read_bytes())
            is_mapping = all(map(PLACEHOLDER.fullmatch, content.placeholders))
        except ValidationError:
            is_mapping = False
        if not is_mapping:
            raise WxbError(f"{path}: expected a mapping that `wxb mask --mapping` wrote")
        self.values: dict[str, str] = {}
        self.reserved, self.fakes = content.reserved, content.fakes
        self.known, self.restored, self.altered = Values(), 0, 0
        self._by_value: dict[tuple[str, str], str] = {}
        self._by_name: dict[str, str] = {}  # placeholders; without case, if only one is so
        self._last: dict[str, int] = {}
        for placeholder, value in content.placeholders.items():
            label, _, number = placeholder[1:-1].rpartition("_")
            self._add(label, int(number), value)
        self._saved = len(self.values) + len(self.reserved) + len(self.fakes)

    def _add(self, label: str, number: int, value: str) -> str:
        placeholder = f"<{label}_{number}>"
        self._by_value[label, value], self.values[placeholder] = placeholder, value
        self._last[label] = max(number, self._last.get(label, 0))
        folded = placeholder.casefold()
        self._by_name[folded] = "" if folded in self._by_name else placeholder
        self.known.add(value)
        return placeholder

    def placeholder(self, type_: str, value: str) -> str:
        """The placeholder of a value; adds a new one if there is none."""
        label = _NOT_IN_LABELS.sub("", type_).strip()[:80] or LITERAL
        if (label, value) in self._by_value:
            return self._by_value[label, value]
        number = self._last.get(label, 0) + 1
        while f"<{label}_{number}>".casefold() in self.reserved:
            number += 1
        return self._add(label, number, value)

    def _find(
        self, text: str, gaps: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, int, str, str]]:
        """Start, end, name and placeholder of strings like placeholders; "" if it is none."""
        narrow = text if text.isascii() else text.translate(_NARROW)
        for gap in gaps:
            for match in PLACEHOLDER.finditer(narrow, *gap):
                name = f"<{(match[2] or match[3]).strip()}_{match[4]}>".replace(r"\_", "_")
                known = name if name in self.values else self._by_name.get(name.casefold(), "")
                yield *match.span(), name.casefold(), known

    def escape(self, text: str, spans: Iterable[tuple[int, int, str]]) -> list[Edit]:
        """Edits that escape placeholders between (start, end, type) spans.

        Reserves strings of their form. Call it before the values of this text get placeholders.
        """
        edges = [0, *(edge for span in spans for edge in span[:2]), len(text)]
        found = [*self._find(text, zip(edges[::2], edges[1::2], strict=True))]
        self.reserved.update(name for *_, name, placeholder in found if not placeholder)
        return [
            Edit(start, end, self.placeholder(LITERAL, text[start:end]))
            for start, end, _, placeholder in found
            if placeholder
        ]

    def restore(self, texts: Iterable[str | None]) -> Iterator[list[Edit]]:
        """Yield the edits of each text that replace placeholders by values; skips None."""
        for text in texts:
            if text is None:
                continue
            edits, last = [], 0
            found = [*self._find(text, [(0, len(text))])]
            for start, end, name, known in [*found, (len(text), 0, "", "")]:
                bare = (f"<{b[1]}_{b[2]}>".casefold() for b in _BARE.finditer(text, last, start))
                self.altered += sum(bool(self._by_name.get(b)) for b in bare)
                last = end
                if known:
                    edits.append(Edit(start, end, self.values[known]))
                else:
                    self.altered += bool(name) and name not in self.reserved
            self.restored += len(edits)
            yield edits

    def save(self) -> None:
        """Replace the file atomically if there is more to keep; only its owner may read it."""
        size = len(self.values) + len(self.reserved) + len(self.fakes)
        if self.path is None or self._saved == size:
            return
        content = {"placeholders": self.values, "reserved": sorted(self.reserved)}
        draft = self.path.with_name(f".{self.path.name}.partial")  # `publish` would lock again
        draft.unlink(missing_ok=True)
        with create_private(draft) as file:
            json_ = json.dumps({**content, "fakes": self.fakes}, ensure_ascii=False, indent=2)
            file.write(f"{json_}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        self._saved = size
