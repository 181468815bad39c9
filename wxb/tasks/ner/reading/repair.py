"""Convert offsets of spans to characters, check them, and repair wrong ones by their values."""

import unicodedata
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import regex

from wxb.corpora.records import RecordError
from wxb.tasks.ner.params import Offsets

TAKEN = "\0"  # replaces characters of spans; texts never contain it

# Scripts without spaces between words, or, as Korean, with endings that spans leave out.
UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
KINDS = (UNSPACED, regex.compile(r"[\p{L}\p{M}]"), regex.compile(r"\p{N}"))
# No span begins with the first, or ends with the second.
BEFORE = regex.compile(r"[\s,.;:!?、。！，\uff0e：；？]")
AFTER = regex.compile(r"[\s、。！，：；？]")


def to_characters(
    text: str, offsets: Sequence[tuple[int, int]], unit: Offsets
) -> list[tuple[int, int]]:  # "characters" and "end-included": not checked
    """Offsets in characters, end exclusive; -1 for those inside one or outside the text."""
    match unit:
        case "characters":
            return [*offsets]
        case "end-included":
            return [(start, end + 1) for start, end in offsets]
        case "crlf-as-one":
            widths = [int(pair != ("\r", "\n")) for pair in pairwise(f" {text}")]
        case _:
            coding = "utf-16-le" if unit == "utf-16" else "utf-8"
            size = 2 if unit == "utf-16" else 1
            widths = [len(character.encode(coding, "surrogatepass")) // size for character in text]
    # Of a line end that counts as one, the offset behind is that of the next line.
    index = {offset: n for n, offset in enumerate(accumulate(widths, initial=0))}
    return [(index.get(start, -1), index.get(end, -1)) for start, end in offsets]


def folded(value: Any) -> Any:
    """A text without case, Unicode forms, white space and `\\n`; other values unchanged."""
    if not isinstance(value, str):
        return value
    text = unicodedata.normalize("NFKC", value.replace("\\n", " ")).casefold()
    return "".join(text.split())


def count_word_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """How many ends of a span are at edges of words, and how many are not; (0, 2) if out of range.

    An end at an unlikely character, such as a space, is not. An end between two characters of a
    script without spaces is neither. A word has only letters or only digits.
    """
    if not 0 <= start < end <= len(text):
        return 0, 2
    right = wrong = 0
    for index, inner, unlikely in ((start, text[start], BEFORE), (end, text[end - 1], AFTER)):
        around = text[max(0, index - 1) : index + 1]
        kinds = {next((k for k, known in enumerate(KINDS) if known.match(c)), None) for c in around}
        if unlikely.match(inner) or (kinds in ({1}, {2}) and 0 < index < len(text)):
            wrong += 1
        elif kinds != {0} or index in (0, len(text)):
            right += 1
    return right, wrong


def repair_offsets(
    text: str, offsets: Sequence[tuple[int, int]], values: Sequence[Any]
) -> tuple[list[tuple[int, int]], int]:
    """Offsets that select the values in a text, and how many of them are repaired.

    Correct offsets are kept. Any other value gets its occurrence nearest to the wrong start that is
    in no other span; longer values choose first, as they may contain shorter ones.

    Raises RecordError if a value is no text, or does not occur often enough.
    """
    repaired, free, wrong = list(offsets), text, []
    for index, ((start, end), value) in enumerate(zip(offsets, values, strict=True)):
        if 0 <= start < end <= len(text) and text[start:end] == value:
            free = free[:start] + TAKEN * (end - start) + free[end:]
        elif isinstance(value, str) and value.strip() and TAKEN not in value:
            wrong.append((-len(value), start, index))
        else:
            raise RecordError("value not found", f"{value!r} is no text to look for")
    for length, start, index in sorted(wrong):
        value, begin = values[index], max(start, 0)
        occurrences = free.rfind(value, 0, begin - length - 1), free.find(value, begin)
        nearest = min(
            (first for first in occurrences if first >= 0),
            key=lambda first: abs(first - begin),
            default=None,
        )
        if nearest is None:
            raise RecordError("value not found", f"{value!r}, stated to start at {start}")
        repaired[index] = nearest, nearest - length
        free = free[:nearest] + TAKEN * -length + free[nearest - length :]
    return repaired, len(wrong)
