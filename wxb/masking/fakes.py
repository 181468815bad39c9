"""Made-up values in place of real ones: the same for the same value, in every run."""

from __future__ import annotations

import hashlib
import string
from functools import cache

from faker import Faker

from wxb import WxbError

# Faker's methods for the types that corpora of personal data commonly have. Any other value keeps
# its shape: digits for digits, letters for letters.
METHODS = {
    "ADDRESS": "street_address",
    "CITY": "city",
    "COMPANY": "company",
    "COUNTRY": "country",
    "EMAIL": "email",
    "FIRSTNAME": "first_name",
    "GIVENNAME": "first_name",
    "JOBTITLE": "job",
    "LASTNAME": "last_name",
    "LOC": "city",
    "LOCATION": "city",
    "NAME": "name",
    "ORG": "company",
    "ORGANIZATION": "company",
    "PER": "name",
    "PERSON": "name",
    "STATE": "state",
    "STREET": "street_name",
    "STREETADDRESS": "street_address",
    "SURNAME": "last_name",
    "TITLE": "prefix",
    "URL": "url",
    "USERNAME": "user_name",
}
_ATTEMPTS = 20


def fake(value: str, type_: str, *, method: str | None, locale: str, seed: str) -> str:
    """A value that differs from `value`, chosen by it, its type and the seed.

    Raises WxbError where Faker has no such method or locale.
    """
    faker = _faker(locale)
    method = method or METHODS.get("".join(filter(str.isalnum, type_)).upper())
    check(method, locale)
    for attempt in range(_ATTEMPTS):
        digest = hashlib.sha256("\0".join([seed, type_, value, str(attempt)]).encode()).digest()
        faker.seed_instance(int.from_bytes(digest))
        made = str(getattr(faker, method)()) if method else _shaped(value, faker)
        one_line = " ".join(made.split())  # an address has several lines, a CSV cell perhaps not
        if one_line and one_line.casefold() != value.casefold():
            return one_line
    return f"<{type_}>"


def check(method: str | None, locale: str) -> None:
    """Raise WxbError where Faker has no such method or locale."""
    faker = _faker(locale)
    if method and (method.startswith("_") or not callable(getattr(faker, method, None))):
        raise WxbError(
            f"Faker has no method {method!r} in locale {locale}; expected one of"
            " https://faker.readthedocs.io/en/stable/providers.html, e.g. first_name or iban"
        )


@cache
def _faker(locale: str) -> Faker:
    try:
        return Faker(locale)
    except AttributeError:
        raise WxbError(
            f"Faker has no locale {locale!r}; expected one such as en_US, de_DE or zh_TW"
        ) from None


def _shaped(value: str, faker: Faker) -> str:
    """Other digits and letters in the places of those of the value; all else stays."""

    def other(character: str) -> str:
        if character.isdigit():
            return str(faker.random_digit())
        if character.isalpha():
            letters = string.ascii_uppercase if character.isupper() else string.ascii_lowercase
            return faker.random_element(letters)
        return character

    return "".join(map(other, value))
