"""From predicted spans to edits: which spans are masked, their replacements, and what is left."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from wxb import WxbError, progress_callback
from wxb.core.errors import choices, shortened
from wxb.masking.files import Block, Source
from wxb.masking.operators import DEFAULT, read_operators
from wxb.masking.placeholders import BRACKETS, Edit, Placeholders, apply_edits
from wxb.masking.rules import MASKED, WORD, CaselessSet, ValuePatterns, find_values, folded

TEXTS = 256  # of a batch
DENIED = "DENIED"  # the type of values that --deny finds
HIDDEN = "\ufdd0"  # instead of what was masked: a noncharacter of Unicode
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")  # of JSON
_LINE = re.compile(r"\S(?:[^\r\n]*\S)?")  # without blanks at its ends
Range = tuple[int, int, str]  # of code points, with a type
_numbering = Lock()  # threads may share placeholders


class Masker:
    """Finds spans in texts and replaces them.

    `recognizer`: what `wxb.load` returns for an experiment that predicts spans. `operators`: as in
    `read_operators`. `mapping`: numbers the placeholders. `threshold`: the lowest score of a masked
    span. `only`: types to mask; by default all. `allow` and `deny`: values that are never or always
    masked, as in `ValuePatterns`. `brackets`: one of BRACKETS. Raises WxbError for invalid values.
    """

    def __init__(
        self,
        recognizer: Any,
        operators: str | Mapping[str, Any] = "replace",
        mapping: Placeholders | None = None,
        *,
        threshold: float | None = None,
        only: Iterable[str] | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
        brackets: str | None = None,
    ) -> None:
        self.recognizer, own = recognizer, read_operators(operators)
        self.mapping = Placeholders() if mapping is None else mapping
        for name, values in (("only", only), ("allow", allow), ("deny", deny)):
            if isinstance(values, str):
                raise TypeError(f"{name}: found one text; expected a list of them: [{values!r}]")
        if threshold is not None and not 0 <= threshold <= 1:
            raise WxbError(f"threshold: found {threshold}; expected 0 to 1")
        self.threshold = recognizer.threshold if threshold is None else threshold
        if threshold is not None and not recognizer.has_scores:
            raise WxbError("threshold: the spans of this experiment have no scores")
        self.brackets, self.only = brackets or BRACKETS[0], {*(only or recognizer.types)}
        if self.brackets not in BRACKETS:
            raise WxbError(f"brackets: found {brackets!r}; expected {' or '.join(BRACKETS)}")
        self.allowed, self.denied = ValuePatterns(allow or ()), ValuePatterns(deny or ())
        types = [*recognizer.types, DENIED]
        for names, known in ((self.only, recognizer.types), (own, [*types, DEFAULT])):
            for name in sorted({*names} - {*known}):
                raise WxbError(f"the experiment has no type {name!r}{choices(name, known)}")
        self.operators = {type_: own.get(type_, own[DEFAULT]) for type_ in types}
        self.only -= {t for t in self.only if self.operators[t].operator == "keep"}
        self.uses_mapping = any(o.operator in ("number", "fake") for o in self.operators.values())
        if self.uses_mapping:
            self.mapping.add_types(types)

    def mask(self, texts: Iterable[Any]) -> list[Any]:
        """Mask texts in order; keeps other values. TypeError for one text or a DataFrame.

        Does not save `mapping`.
        """
        if isinstance(texts, str) or hasattr(texts, "columns"):
            raise TypeError(f"mask: found one {type(texts).__name__}; expected a list or column")
        values = [*texts]
        rows = self.edits(value for value in values if isinstance(value, str))
        return [
            apply_edits(value, next(rows), self.brackets) if isinstance(value, str) else value
            for value in values
        ]

    def edits(self, texts: Iterable[str]) -> Iterator[list[Edit]]:
        """Yield the edits of each text, in batches of TEXTS; adds values to `mapping`, unsaved."""
        rest = iter(texts)
        for batch in iter(lambda: [*islice(rest, TEXTS)], []):
            inputs = [text.encode("utf-8", "replace").decode() for text in batch]  # as in `predict`
            with progress_callback(lambda done, total: None):
                rows = self.recognizer.scored_spans(inputs, caption="mask")
            for text, row in zip(batch, rows, strict=True):
                spans = [(*span,) for span, score in row if score >= self.threshold]
                yield self._edits(text, [span for span in spans if span[2] in self.only])

    def _edits(self, text: str, spans: Iterable[Range]) -> list[Edit]:
        """Sorted edits of spans, denied values and, if `uses_mapping`, strings like placeholders.

        Allowed spans are skipped, others grow to whole values. Each line of a range is an edit.
        """
        ranges = [span for span in spans if text[slice(*span[:2])] not in self.allowed]
        ranges += [(*span, DENIED) for span in self.denied.find(text)]
        masked = [  # each line of a range by itself
            (*line.span(), type_)
            for start, end, type_ in (self._cover_whole_values(text, ranges) if ranges else ())
            for line in _LINE.finditer(text, start, end)
        ]
        with _numbering:
            edits = [*self.mapping.escape(text, masked)] if self.uses_mapping else []
            edits += [
                Edit(start, end, self.operators[type_](text[start:end], type_, self.mapping))
                for start, end, type_ in masked
            ]
        return sorted(edits)

    def _cover_whole_values(self, text: str, spans: Iterable[Range]) -> Iterator[Range]:
        """Yield disjoint ranges of spans grown to whole values, except allowed texts unless DENIED.

        Ranges that overlap, or are adjacent and of one type, are merged; the first type stays.
        """
        values = (*find_values(text), *self.mapping.known.find(text))
        parts = [(start, -end, "") for start, end, _ in values]
        merged: list[Range] = []
        for start, end, type_ in sorted([*parts, *((start, -end, t) for start, end, t in spans)]):
            last = merged[-1] if merged else (-1, -1, "")
            if start < last[1] or (type_ and (start, type_) == last[1:]):
                start, end, type_ = merged.pop()[0], min(end, -last[1]), last[2] or type_
            merged.append((start, -end, type_))
        for start, end, type_ in merged:
            if type_ == DENIED or (type_ and text[start:end] not in self.allowed):
                yield start, end, type_


class LeakCheck:
    """Finds values in clear: those of rules, denied ones, and values masked elsewhere."""

    def __init__(self, masker: Masker) -> None:
        self.masker, self.values, self.words = masker, CaselessSet(), set[str]()
        self._add_values([*masker.mapping.values.values(), *masker.mapping.fakes.values()])
        self.file = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def _add_values(self, values: Iterable[str]) -> None:
        """Add values, unless short ASCII, to `values`, and their capitalized words to `words`."""
        for value in (v for v in values if len(v) > 2 or not v.isascii()):
            self.values.add(value)
            words = (w for w in WORD.findall(value) if len(w) > 2 and w[0].isupper())
            self.words.update(map(folded, words))

    def add(self, source: Source, block: Block, rows: Sequence[list[Edit]]) -> None:
        """Keep a masked block in a file until `report`, which also searches for what it masks."""
        for (_, _, text), row in zip(block.texts, rows, strict=True):
            self._add_values(text[edit.start : edit.end] for edit in row)
        hidden = ([edit._replace(new=HIDDEN) for edit in row] for row in rows)
        clear = source.edited(block, hidden)
        if source.format in ("json", "jsonl"):
            clear = _ESCAPES.sub(lambda e: json.loads(f'"{e[0]}"').replace("\n", " "), clear)
        self.file.write(json.dumps([source.name, block.line, clear]) + "\n")

    def report(self) -> Iterator[str]:
        """Yield the number and lines of values in clear, if any; skips allowed ones. Call once."""
        left: defaultdict[str, list[str]] = defaultdict(list)
        self.file.seek(0)
        for name, line, content in map(json.loads, self.file):
            spans = {*find_values(content), *self.values.find(content)}
            words = (w for w in WORD.finditer(content) if w[0][0].isupper())
            spans |= {(*w.span(), MASKED) for w in words if folded(w[0]) in self.words}
            spans |= {(*span, DENIED) for span in self.masker.denied.find(content)}
            for start, end, kind in sorted(spans):
                if content[start:end] not in self.masker.allowed:
                    number = line + content.count("\n", 0, start)
                    left[f"{name}: {kind}"].append(str(number))
        self.file.close()
        if left:
            yield f"left in clear: {sum(map(len, left.values()))}"
        for place, numbers in sorted(left.items()):
            yield f"  {place}: line {shortened(numbers, 20)}"
