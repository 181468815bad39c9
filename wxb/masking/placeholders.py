"""Numbered placeholders, such as `<EMAIL_1>`, each of which stands for one value.

If a text already contains a string of this form, a placeholder of type LITERAL replaces it, so that
unmasking restores every text. It also reads other brackets, case, width, blanks and escapes.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from wxb import WxbError
from wxb.core.files import publish, write_json
from wxb.masking.rules import CaselessSet

LITERAL = "LITERAL"
BRACKETS = ("<>", "[]", "{}")  # that masking can write
_OPEN = r"(?:[<\[{〈《「【«⟨\u2039]|&lt;|&#60;|%3C|\\u003C)"
_CLOSE = r"(?:[>\]}〉》」】»⟩\u203a]|&gt;|&#62;|%3E|\\u003E)"
_NUMBER = r"0*([1-9][0-9]{0,8})"
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width ASCII
_NOT_IN_LABELS = re.compile(r"""[<>\[\]{}\\\r\n,;|\t"&]""")  # most would need quotes in CSV


class Edit(NamedTuple):
    """A replacement of the code points `start:end` of a text; a text's are sorted and disjoint."""

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[Edit], brackets: str = BRACKETS[0]) -> str:
    """The text with sorted, disjoint edits; `brackets` replace `<` and `>` around a new text."""
    parts, end = [], 0
    for edit in edits:
        is_type = edit.new[:1] + edit.new[-1:] == BRACKETS[0]
        new = brackets[0] + edit.new[1:-1] + brackets[1] if is_type else edit.new
        parts += [text[end : edit.start], new]
        end = edit.end
    return "".join([*parts, text[end:]])


class Content(BaseModel, extra="forbid"):
    """The content of a mapping file: values by placeholder, and values by fake."""

    placeholders: dict[Annotated[str, Field(pattern="^<.+_[1-9][0-9]*>$")], str] = {}
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
        except (ValidationError, IsADirectoryError):  # the first quotes values
            raise WxbError(f"{path}: expected a mapping that `wxb mask --mapping` wrote") from None
        self.values, self.fakes = dict[str, str](), content.fakes
        self.known, self.restored, self.altered = CaselessSet(), 0, 0
        self._by_value: dict[tuple[str, str], str] = {}
        self._by_name: dict[tuple[str, int], str] = {}  # values by label without case, and number
        self._last: dict[str, int] = {}  # numbers by label without case
        self._labels = {LITERAL}
        names = [name[1:-1].rpartition("_") for name in content.placeholders]
        self.add_types(label for label, _, _ in names)
        for (label, _, number), value in zip(names, content.placeholders.values(), strict=True):
            self._add(label, int(number), value)
        self._saved = len(self.values) + len(self.fakes) if path and path.exists() else -1

    def add_types(self, types: Iterable[str]) -> None:
        """Let `escape` and `restore` find placeholders of these types, too."""
        self._labels.update(map(_label, types))
        labels = map(re.escape, sorted(self._labels, key=len, reverse=True))
        label = f"({'|'.join(labels)})".replace("_", r"\\?[_ -]")
        name = rf"{label}(?:[ \\_#-]{{1,3}}|(?<!\d)){_NUMBER}"
        self._whole = re.compile(rf"(\\)?{_OPEN} ?{name} ?(?(1)\\){_CLOSE}", re.IGNORECASE)
        # Without brackets, with one of them, or with a line break: counted, not restored.
        bare = rf"(?<![^\W_]){label}[\s\\]*[_#-]\s*{_NUMBER}(?![^\W_])"
        self._bare = re.compile(bare, re.IGNORECASE)

    def _add(self, label: str, number: int, value: str) -> str:  # the placeholder
        placeholder, folded = f"<{label}_{number}>", _label_key(label)
        self._by_value[label, value], self.values[placeholder] = placeholder, value
        self._by_name[folded, number] = value
        self._last[folded] = max(number, self._last.get(folded, 0))
        self.known.add(value)
        return placeholder

    def placeholder(self, type_: str, value: str) -> str:
        """The placeholder of a value, such as `<NAME_1>`; adds a new one if there is none."""
        label = _label(type_)
        known = self._by_value.get((label, value))
        return known or self._add(label, self._last.get(_label_key(label), 0) + 1, value)

    def escape(self, text: str, spans: Iterable[tuple[int, int, str]]) -> Iterator[Edit]:
        """Yield edits of strings like placeholders outside sorted disjoint spans; adds LITERALs."""
        edges = [0, *(edge for span in spans for edge in span[:2]), len(text)]
        narrow = _narrow(text)
        for gap in zip(edges[::2], edges[1::2], strict=True):
            for match in self._whole.finditer(narrow, *gap):
                start, end = match.span()
                yield Edit(start, end, self.placeholder(LITERAL, text[start:end]))

    def restore(self, texts: Iterable[str]) -> Iterator[list[Edit]]:
        """Yield edits to restore placeholders, not fakes; counts unknown or broken as `altered`."""
        for text in texts:
            edits, narrow = [], _narrow(text)
            for match in self._whole.finditer(narrow):
                if value := self._value(match[2], match[3]):
                    edits.append(Edit(*match.span(), value))
                else:
                    self.altered += 1
            rest = self._whole.sub("\0", narrow)
            self.altered += sum(bool(self._value(*name)) for name in self._bare.findall(rest))
            self.restored += len(edits)
            yield edits

    def _value(self, label: str, number: str) -> str | None:
        return self._by_name.get((_label_key(label), int(number)))

    def save(self) -> None:
        """Write `path`, if any, atomically if it or a value is new; only its owner may read it."""
        size = len(self.values) + len(self.fakes)
        if self.path and self._saved != size:
            with publish(self.path) as (draft,):
                draft.touch(mode=0o600)
                write_json(draft, {"placeholders": self.values, "fakes": self.fakes})
            self._saved = size


def _label(type_: str) -> str:
    """A type without characters of placeholders and CSV, as a label; LITERAL if none is left."""
    return _NOT_IN_LABELS.sub("", _narrow(type_)).strip() or LITERAL


def _label_key(label: str) -> str:
    return re.sub("[_ -]", "_", label.replace("\\", "").casefold())


def _narrow(text: str) -> str:
    return text if text.isascii() else text.translate(_NARROW)
