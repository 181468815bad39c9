"""Check masked files: values that rules find, and masked values that stand elsewhere in clear."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile

from wxb.masking.files import Record, Source
from wxb.masking.masker import Masker
from wxb.masking.placeholders import Edit
from wxb.masking.rules import MASKED, WORD, Values, find_values

HIDDEN = "\ufdd0"  # instead of what was masked: a noncharacter of Unicode
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")  # of JSON


class Check:
    """What is left in clear. Masked files are kept in a temporary file until `report`."""

    def __init__(self, masker: Masker) -> None:
        self.masker, self.values, self.words = masker, Values(), set[str]()
        self._add([*masker.mapping.values.values(), *masker.mapping.fakes.values()])
        self.file = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def _add(self, values: Iterable[str]) -> None:
        for value in values:
            if len(value) > 2 or not value.isascii():  # else a word or a number
                self.values.add(value)
                self.words.update(w for w in WORD.findall(value) if len(w) > 2 and w[0].isupper())

    def add(self, source: Source, record: Record, rows: Sequence[Sequence[Edit]]) -> None:
        """Add a part of a file and the edits of its texts."""
        pairs = [*zip(record.texts, rows, strict=True)]
        self._add(text[edit.start : edit.end] for text, row in pairs for edit in row)
        clear = record.edited([edit._replace(new=HIDDEN) for edit in row] for row in rows)
        if source.format in ("json", "jsonl"):
            clear = _ESCAPES.sub(lambda e: json.loads(f'"{e[0]}"').replace("\n", " "), clear)
        self.file.write(json.dumps([source.name, clear]) + "\n")

    def report(self) -> Iterator[str]:
        """Yield what is left unmasked: a count, then lines by file and kind. Call once."""
        line: defaultdict[str, int] = defaultdict(lambda: 1)
        left: defaultdict[str, list[str]] = defaultdict(list)
        self.file.seek(0)
        for name, content in map(json.loads, self.file):
            parts = (m for m in WORD.finditer(content) if m[0] in self.words)
            masked = {*self.values.find(content), *((*part.span(), MASKED) for part in parts)}
            for start, end, kind in sorted([*find_values(content), *masked]):
                if content[start:end] not in self.masker.allowed:
                    number = line[name] + content.count("\n", 0, start)
                    left[f"{name}: {kind}"].append(str(number))
            line[name] += content.count("\n")
        self.file.close()
        if left:
            yield f"left in clear: {sum(map(len, left.values()))}"
        for place, numbers in sorted(left.items()):
            more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
            yield f"  {place}: line {', '.join(numbers[:20])}{more}"
