"""Rules for values with a fixed form or a check digit: a second recognizer, for `--verify`."""

from __future__ import annotations

import re
from collections.abc import Iterator

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
CARD = re.compile(r"(?<!\w)\d(?:[ -]?\d){12,18}(?!\w)")
IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z\d]){11,30}(?!\w)")
PHONE = re.compile(r"(?<!\w)\+\d(?:[ ().-]{0,2}\d){7,14}(?!\w)")  # with a country code


def find_values(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end (code points) and kind of the values in a text that rules find.

    They are e-mail addresses, card numbers with a valid check digit (ISO/IEC 7812-1), IBANs with a
    valid checksum (ISO 13616) and international phone numbers.
    """
    for match in EMAIL.finditer(text):
        yield *match.span(), "e-mail address"
    for match in CARD.finditer(text):
        if is_card_number(match[0]):
            yield *match.span(), "card number"
    for match in IBAN.finditer(text):
        # A match may include words that follow the number.
        for end in range(match.end(), match.start() + 14, -1):
            if text[end - 1] != " " and is_iban(text[match.start() : end]):
                yield match.start(), end, "IBAN"
                break
    for match in PHONE.finditer(text):
        yield *match.span(), "phone number"


def is_card_number(text: str) -> bool:
    """Whether the check digit of a number is valid (Luhn); spaces and hyphens do not count."""
    digits = [int(character) for character in reversed(text) if character.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0 and any(digits)


def is_iban(text: str) -> bool:
    """Whether the checksum of an IBAN is valid; spaces do not count."""
    characters = text.replace(" ", "")
    moved = characters[4:] + characters[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1
