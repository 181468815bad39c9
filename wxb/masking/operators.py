"""Operators, which replace values: one for each type, from a name or a small YAML file."""

from __future__ import annotations

import hashlib
import os
import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from faker import Faker
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from wxb import WxbError
from wxb.core.errors import choices
from wxb.masking.placeholders import Placeholders

DEFAULT = "DEFAULT"
SALT = "WXB_MASK_SALT"  # an environment variable
SALT_BYTES = 16
# Faker's methods for common types of personal data. Values of other types keep their shape: digits
# replace digits, letters replace letters.
FAKER_METHODS = {
    "city": ("CITY", "LOC", "LOCATION"),
    "company": ("COMPANY", "ORG", "ORGANIZATION"),
    "country": ("COUNTRY",),
    "email": ("EMAIL",),
    "first_name": ("FIRSTNAME", "GIVENNAME"),
    "job": ("JOBTITLE",),
    "last_name": ("LASTNAME", "SURNAME"),
    "name": ("NAME", "PER", "PERSON"),
    "prefix": ("TITLE",),
    "state": ("STATE",),
    "street_address": ("ADDRESS", "STREETADDRESS"),
    "street_name": ("STREET",),
    "url": ("URL",),
    "user_name": ("USERNAME",),
}
_METHOD_OF = {type_: method for method, types in FAKER_METHODS.items() for type_ in types}
_ATTEMPTS = 20


class Operation(BaseModel):
    """The base class of operators. Instances are immutable; unknown parameters are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The replacement of a value."""
        raise NotImplementedError


class Replace(Operation):
    """Replaces values by `<TYPE>`, or by the same new value."""

    operator: Literal["replace"] = "replace"
    new_value: Annotated[str, Field(min_length=1)] | None = None

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The type in angle brackets, or the new value."""
        return self.new_value or f"<{type_}>"


class Redact(Operation):
    """Removes values."""

    operator: Literal["redact"] = "redact"

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The empty text."""
        return ""


class Mask(Operation):
    """Replaces all characters, or some at the start or the end, by one character."""

    operator: Literal["mask"] = "mask"
    masking_char: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    chars_to_mask: PositiveInt | None = None
    from_end: bool = False

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The masked value, which has the same length."""
        count = min(self.chars_to_mask or len(value), len(value))
        stars, kept = self.masking_char * count, len(value) - count
        return value[:kept] + stars if self.from_end else stars + value[count:]


class Hash(Operation):
    """Replaces values by the SHA-2 of value and salt, in 64 or 128 hexadecimal digits."""

    operator: Literal["hash"] = "hash"
    hash_type: Literal["sha256", "sha512"] = "sha256"
    salt: SecretStr = Field(default_factory=lambda: SecretStr(os.environ.get(SALT, "")))

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The hash."""
        return hashlib.new(
            self.hash_type, (value + self.salt.get_secret_value()).encode()
        ).hexdigest()

    @model_validator(mode="after")
    def _require_salt(self) -> Self:
        size = len(self.salt.get_secret_value().encode())
        if size < SALT_BYTES:
            raise ValueError(
                f"needs a `salt` of {SALT_BYTES} bytes or more, here or in {SALT}; found {size}."
                " Keep it secret, so that nobody can guess values by hashing; the same salt gives"
                " the same hashes: python -c 'import secrets; print(secrets.token_hex(16))'"
            )
        return self


class Number(Operation):
    """Replaces values by placeholders such as `<EMAIL_1>`, which a mapping can undo."""

    operator: Literal["number"] = "number"

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The placeholder of the value."""
        return placeholders.placeholder(type_, value)


class Fake(Operation):
    """Replaces values by fake ones on one line, the same for the same value, type and seed.

    Two values have two fakes. A value has a placeholder if no fake is left.
    """

    operator: Literal["fake"] = "fake"
    method: str | None = None
    locale: str = "en_US"
    seed: int | str = 0

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """A value from Faker's method for the type; if it has none, one of the same shape."""
        faker = _faker(self.locale)
        method = self.method or _METHOD_OF.get("".join(filter(str.isalnum, type_)).upper())
        for attempt in range(_ATTEMPTS):
            key = "\0".join([str(self.seed), type_, value, str(attempt)])
            faker.seed_instance(int.from_bytes(hashlib.sha256(key.encode()).digest()))
            new = str(getattr(faker, method)()) if method else _same_shape(value, faker)
            new = " ".join(new.split())  # addresses have several lines
            is_new = new and new.casefold() != value.casefold()
            if is_new and placeholders.fakes.setdefault(new, value) == value:
                return new
        return placeholders.placeholder(type_, value)

    @model_validator(mode="after")
    def _require_faker(self) -> Self:
        try:
            faker = _faker(self.locale)
        except AttributeError:
            raise ValueError(
                f"Faker has no locale {self.locale!r}; expected one such as en_US, de_DE or zh_TW"
            ) from None
        method = self.method
        if method and (method.startswith("_") or not callable(getattr(faker, method, None))):
            raise ValueError(
                f"Faker has no method {method!r} in locale {self.locale}; expected one of"
                " https://faker.readthedocs.io/en/stable/providers.html, e.g. first_name or iban"
            )
        return self


class Keep(Operation):
    """Keeps values."""

    operator: Literal["keep"] = "keep"


Operator = Annotated[
    Replace | Redact | Mask | Hash | Number | Fake | Keep, Field(discriminator="operator")
]
NAMES = tuple(cls.model_fields["operator"].default for cls in get_args(get_args(Operator)[0]))
Operators = dict[str, Operation]  # by type; DEFAULT is for all other types


def read_operators(source: str | Mapping[str, Any]) -> Operators:
    """The operators by type in a YAML file or a mapping, or one of NAMES for all types.

    Raises WxbError with all faults. Salts are never shown.
    """
    if source in NAMES:
        return _validate({DEFAULT: {"operator": source}}, f"operator {source}")
    if not isinstance(source, str):
        return _validate(source, "operators")
    path = Path(source)
    if not path.suffix and not path.exists():
        raise WxbError(f"no operator {source!r}{choices(source, NAMES)}, and no such YAML file")
    try:
        return _validate(YAML(typ="safe").load(path.read_text(encoding="utf-8")), source)
    except OSError as error:
        raise WxbError(f"{path}: cannot be read ({error.strerror})") from None
    except (YAMLError, UnicodeDecodeError) as error:
        # The text of the error quotes the line, which may contain a salt.
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        line = f" (line {mark.line + 1})" if mark else ""
        raise WxbError(f"{path}: not readable as YAML{line}") from None


def _validate(content: object, where: str) -> Operators:
    try:
        operators = TypeAdapter(dict[str, Operator]).validate_python(content)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False)
        ]
        raise WxbError("\n  ".join([f"{where}: expected operators by type:", *faults])) from None
    return {DEFAULT: Replace(), **operators}


@cache
def _faker(locale: str) -> Faker:
    return Faker(locale)


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
