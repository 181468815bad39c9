"""Fake values from Faker, the same for the same value in every run."""

from __future__ import annotations

import hashlib
import string
from functools import cache

from faker import Faker

from wxb import WxbError

# Faker's methods for common types of personal data. Values of other types keep their shape: digits
# replace digits, letters replace letters.
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
    """A fake value other than `value`, on one line, determined by it, its type and the seed.

    `method` of Faker: by default from METHODS. Raises WxbError if Faker lacks it or the locale.
    """
    faker = _faker(locale)
    method = method or METHODS.get("".join(filter(str.isalnum, type_)).upper())
    check_method(method, locale)
    for attempt in range(_ATTEMPTS):
        digest = hashlib.sha256("\0".join([seed, type_, value, str(attempt)]).encode()).digest()
        faker.seed_instance(int.from_bytes(digest))
        new = str(getattr(faker, method)()) if method else _same_shape(value, faker)
        one_line = " ".join(new.split())  # addresses have several lines
        if one_line and one_line.casefold() != value.casefold():
            return one_line
    return f"<{type_}>"


def check_method(method: str | None, locale: str) -> None:
    """Raise WxbError if Faker has no such method or locale."""
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


def _same_shape(value: str, faker: Faker) -> str:
    """A value with random digits for its digits and random letters for its letters."""

    def replace(character: str) -> str:
        if character.isdigit():
            return str(faker.random_digit())
        if character.isalpha():
            letters = string.ascii_uppercase if character.isupper() else string.ascii_lowercase
            return faker.random_element(letters)
        return character

    return "".join(map(replace, value))
