"""Check masked files: values that rules find, and masked values that stand elsewhere in clear."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile

from wxb.masking.files import Block, Source
from wxb.masking.masker import DENIED, Masker
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

    def add(self, source: Source, block: Block, rows: Sequence[list[Edit]]) -> None:
        """Add a block of a file and the edits of its texts."""
        for (_, _, text), row in zip(block.texts, rows, strict=True):
            self._add(text[edit.start : edit.end] for edit in row)
        hidden = ([edit._replace(new=HIDDEN) for edit in row] for row in rows)
        clear = source.edited(block, hidden)
        if source.format in ("json", "jsonl"):
            clear = _ESCAPES.sub(lambda e: json.loads(f'"{e[0]}"').replace("\n", " "), clear)
        self.file.write(json.dumps([source.name, block.line, clear]) + "\n")

    def report(self) -> Iterator[str]:
        """Yield what is left unmasked: a count, then lines by file and kind. Call once."""
        left: defaultdict[str, list[str]] = defaultdict(list)
        self.file.seek(0)
        for name, line, content in map(json.loads, self.file):
            spans = {*find_values(content), *self.values.find(content)}
            spans |= {(*w.span(), MASKED) for w in WORD.finditer(content) if w[0] in self.words}
            spans |= {(*span, DENIED) for span in self.masker.denied.find(content)}
            for start, end, kind in sorted(spans):
                if content[start:end] not in self.masker.allowed:
                    number = line + content.count("\n", 0, start)
                    left[f"{name}: {kind}"].append(str(number))
        self.file.close()
        if left:
            yield f"left in clear: {sum(map(len, left.values()))}"
        for place, numbers in sorted(left.items()):
            more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
            yield f"  {place}: line {', '.join(numbers[:20])}{more}"
