"""Check masked files: values that rules find, and masked values that stand elsewhere in clear."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from tempfile import TemporaryFile

from wxb.masking.files import Source
from wxb.masking.masker import Masker
from wxb.masking.rules import Values, find_values

_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")  # of JSON


class Check:
    """What is left in clear. Masked files are kept in a temporary file until `report`."""

    def __init__(self, masker: Masker) -> None:
        self.masker, self.values = masker, Values()
        self._add(chain(masker.mapping.values.values(), masker.mapping.fakes.values()))
        self.file = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def _add(self, values: Iterable[str]) -> None:
        for value in values:
            if len(value) > 2 or not value.isascii():  # else a word or a number
                self.values.add(value)

    def add(self, source: Source, content: str, values: Iterable[str]) -> None:
        """Add a part of a file without its masked values, and these values."""
        self._add(values)
        clear = _ESCAPE.sub("  ", content) if source.format in ("json", "jsonl") else content
        self.file.write(json.dumps([source.name, clear]) + "\n")

    def report(self) -> Iterator[str]:
        """Yield a summary, and a line for each file and kind of value, with line numbers."""
        line: defaultdict[str, int] = defaultdict(lambda: 1)
        left: defaultdict[str, list[str]] = defaultdict(list)
        self.file.seek(0)
        for name, content in map(json.loads, self.file):
            others = (
                (*span, "value that is masked elsewhere") for span in self.values.find(content)
            )
            for start, end, kind in sorted([*find_values(content), *others]):
                if not self.masker.is_allowed(content[start:end]):
                    number = line[name] + content.count("\n", 0, start)
                    left[f"{name}: {kind}"].append(str(number))
            line[name] += content.count("\n")
        self.file.close()
        if left:
            yield f"left in clear: {sum(map(len, left.values()))}"
        for place, numbers in sorted(left.items()):
            more = f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
            yield f"  {place}: line {', '.join(numbers[:20])}{more}"
