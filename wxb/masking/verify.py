"""Check masked files: values that rules find, and masked values that stand elsewhere in clear."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryFile

from wxb.masking.files import Batch, rendered
from wxb.masking.masker import Masker
from wxb.masking.placeholders import Edit, apply_edits
from wxb.masking.rules import RULES, Values

# Noncharacters of Unicode: instead of a masked value, and before values of KINDS.
_MASKED, _FIRST, KINDS = "\ufdd0", 0xFDD1, [*RULES]
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + len(KINDS) - 1)}]")
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # of JSON


class Check:
    """What is left in clear. Masked files are kept in a temporary file until `report`."""

    def __init__(self, masker: Masker) -> None:
        self.masker, self.values = masker, Values()
        self.file = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def add(self, batch: Batch, texts: Sequence[str], rows: Iterable[Sequence[Edit]]) -> None:
        """Add parts of files, and the edits of their texts."""
        for (source, _), content in zip(
            batch, rendered(batch, map(self._marked, texts, rows)), strict=True
        ):
            clear = _ESCAPE.sub("  ", content) if source.format in ("json", "jsonl") else content
            self.file.write(json.dumps([source.name, clear]) + "\n")

    def _marked(self, text: str, edits: Sequence[Edit]) -> str:
        """A text without its masked values, and with marks; it has as many lines."""
        for start, end, _ in edits:
            if end - start > 2 or not text[start:end].isascii():  # else a word or a number
                self.values.add(text[start:end])
        marks = [Edit(s, s, chr(_FIRST + KINDS.index(k))) for s, k in self.masker.left(text, edits)]
        return apply_edits(text, sorted([*marks, *(e._replace(new=_MASKED) for e in edits)]))

    def report(self) -> Iterator[str]:
        """Yield a summary, and a line for each file and kind of value, with line numbers."""
        line: Counter[str] = Counter()
        left: defaultdict[str, list[str]] = defaultdict(list)
        self.file.seek(0)
        for name, content in map(json.loads, self.file):
            clear = [(m.start(), KINDS[ord(m[0]) - _FIRST]) for m in _MARK.finditer(content)]
            for start, end in self.values.find(content):
                if not self.masker.is_allowed(content[start:end]):
                    clear.append((start, "value that is masked elsewhere"))
            for index, kind in sorted(clear):
                number = line[name] + content.count("\n", 0, index) + 1
                left[f"{name}: {kind}"].append(str(number))
            line[name] += content.count("\n")
        self.file.close()
        if left:
            yield f"left in clear: {sum(map(len, left.values()))}"
        for place, numbers in sorted(left.items()):
            more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
            yield f"  {place}: line {', '.join(numbers[:20])}{more}"
