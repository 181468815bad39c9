"""Find values in texts: those of a fixed form or with a check digit, known and listed ones."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from wxb import WxbError


def has_card_checksum(text: str) -> bool:
    """Whether a number's Luhn check digit is valid (ISO/IEC 7812-1); False for 0. Needs a digit."""
    from faker.utils.checksums import luhn_checksum  # slow

    number = int("".join(filter(str.isdecimal, text)))
    return number > 0 and luhn_checksum(number) == 0


def has_iban_checksum(text: str) -> bool:
    """Whether the checksum of letters and digits in the form of an IBAN is valid (ISO 13616)."""
    characters = text.replace(" ", "")
    return int("".join(str(int(c, 36)) for c in characters[4:] + characters[:4])) % 97 == 1


INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # soft hyphens, characters without width
_MAIL = rf"[\w.+{INVISIBLE}-]"
# Patterns and checks by kind. Lookbehinds keep the search linear. Phone numbers begin with +.
RULES: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "e-mail address": (re.compile(rf"(?<!{_MAIL}){_MAIL}+@[\w-]+(?:\.[\w-]+)+"), bool),
    "card number": (re.compile(r"(?<!\w)\d(?:[ -]?\d){12,18}(?!\w)"), has_card_checksum),
    "IBAN": (re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z\d]){11,30}(?!\w)"), has_iban_checksum),
    "phone number": (re.compile(r"(?<!\w)\+\d(?:[ ().-]{0,2}\d){7,14}(?!\w)"), bool),
}
# Words; in scripts without spaces each character is one.
_LETTERS = r"[^\W_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
WORD = re.compile(rf"{_LETTERS}+(?:[\u0300-\u036f{INVISIBLE}]+{_LETTERS}*)*|\S")
_NOTHING = dict.fromkeys(map(ord, INVISIBLE))
MASKED = "value, or part of one, that is masked elsewhere"


class CaselessSet:
    """A set of values, which are found in any case and Unicode form, with any blanks."""

    def __init__(self) -> None:
        self._values: dict[str, dict[int, set[tuple[str, ...]]]] = {}  # by first word and length

    def add(self, value: str) -> None:
        """Add a value."""
        if words := (*map(folded, WORD.findall(value)),):
            self._values.setdefault(words[0], {}).setdefault(len(words), set()).add(words)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and MASKED for each value at whole words of a text; may overlap."""
        spans = [match.span() for match in WORD.finditer(text)] if self._values else []
        words = [folded(text[start:end]) for start, end in spans]
        for index, word in enumerate(words):
            for length, values in [*self._values.get(word, {}).items()]:  # threads may add values
                if (*words[index : index + length],) in values:
                    yield spans[index][0], spans[index + length - 1][1], MASKED


def folded(word: str) -> str:
    """A word without case and invisible characters, in NFC."""
    return unicodedata.normalize("NFC", word.translate(_NOTHING)).casefold()


def find_values(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end (code points) and kind of values, rule by rule; they may overlap."""
    for kind, (pattern, is_valid) in RULES.items():
        for match in pattern.finditer(text):
            start, end = match.span()
            # The match of an IBAN may include words that follow it.
            ends = range(end, start + 14, -1) if kind == "IBAN" else [end]
            for end in ends:
                if text[end - 1] != " " and is_valid(text[start:end]):
                    yield start, end, kind
                    break


class ValuePatterns:
    """Values, `/regular expressions/`, and files `@PATH` with one of them per line.

    Values match whole words of the same case. Raises WxbError for an unreadable file or expression.
    """

    def __init__(self, items: Iterable[str]) -> None:
        self.exact, self.values, self.patterns = set[str](), CaselessSet(), list[re.Pattern[str]]()
        for item in items:
            if not item.strip():
                raise WxbError("found an empty value to allow or deny; leave the option out")
            try:
                content = Path(item[1:]).read_text("utf-8-sig") if item.startswith("@") else item
                for line in filter(None, map(str.strip, content.splitlines())):
                    if len(line) > 2 and line[0] == line[-1] == "/":
                        self.patterns.append(re.compile(line[1:-1]))
                    else:
                        self.exact.add(unicodedata.normalize("NFC", line))
                        self.values.add(line)
            except (OSError, UnicodeDecodeError) as error:
                raise WxbError(f"{item}: expected a text file in UTF-8 ({error})") from None
            except re.error as error:
                fault = f"no regular expression: {error}"
                raise WxbError(f"{fault}; expected values or /.../") from None

    def __contains__(self, value: str) -> bool:
        known = unicodedata.normalize("NFC", value) in self.exact
        return known or any(pattern.fullmatch(value) for pattern in self.patterns)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each value and non-empty match of a pattern; they may overlap."""
        spans = [(start, end) for start, end, _ in self.values.find(text)]
        yield from (span for span in spans if text[slice(*span)] in self)
        for pattern in self.patterns:
            yield from (match.span() for match in pattern.finditer(text) if match[0])
