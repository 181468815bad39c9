"""Operators, which replace values: one for each type, from a name or a small YAML file."""

# ruff: noqa: D102 (`Operation.__call__` has the docstring)

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits
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
from ruamel.yaml.error import YAMLError

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
    """The base class of operators."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The replacement of a value: by default its type."""
        return f"<{type_}>"


class Replace(Operation):
    """Replaces values by `<TYPE>`, or by the same new value."""

    operator: Literal["replace"] = "replace"
    new_value: Annotated[str, Field(min_length=1)] | None = None

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        return self.new_value or f"<{type_}>"


class Redact(Operation):
    """Removes values."""

    operator: Literal["redact"] = "redact"

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        return ""


class Mask(Operation):
    """Replaces all characters, or some at the start or the end, by one character."""

    operator: Literal["mask"] = "mask"
    masking_char: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    chars_to_mask: PositiveInt | None = None
    from_end: bool = False

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        count = min(self.chars_to_mask or len(value), len(value))
        stars, kept = self.masking_char * count, len(value) - count
        return value[:kept] + stars if self.from_end else stars + value[count:]


class Hash(Operation):
    """Replaces values by the SHA-256 of value and salt, in 64 hexadecimal digits."""

    operator: Literal["hash"] = "hash"
    salt: SecretStr = Field(default_factory=lambda: SecretStr(os.environ.get(SALT, "")))

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        return hashlib.sha256((value + self.salt.get_secret_value()).encode()).hexdigest()

    @model_validator(mode="after")
    def _require_salt(self) -> Self:
        size = len(self.salt.get_secret_value().encode())
        if size < SALT_BYTES:  # else anybody can guess values by hashing
            raise ValueError(
                f"needs a secret `salt` of {SALT_BYTES} bytes or more, here or in {SALT}; found"
                f" {size}: python -c 'import secrets; print(secrets.token_hex(16))'"
            )
        return self


class Number(Operation):
    """Replaces values by placeholders such as `<EMAIL_1>`, which a mapping can undo."""

    operator: Literal["number"] = "number"

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        return placeholders.placeholder(type_, value)


class Fake(Operation):
    """Replaces values by fake ones on one line, the same for the same value, type and seed.

    Two values have two fakes. A value has a placeholder if no fake is left.
    """

    operator: Literal["fake"] = "fake"
    method: str | None = None  # of Faker; None: the one for the type, else the same shape
    locale: str = "en_US"
    seed: int | str = 0

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
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
            getattr(_faker(self.locale), self.method or "name")()
        except (AttributeError, TypeError):
            fault = f"no locale {self.locale!r}, or no method {self.method!r} in it"
            raise ValueError(f"Faker has {fault}; expected e.g. de_DE and first_name") from None
        return self


class Keep(Operation):
    """Keeps values; those of --deny are replaced by their type all the same."""

    operator: Literal["keep"] = "keep"


Operator = Annotated[
    Replace | Redact | Mask | Hash | Number | Fake | Keep, Field(discriminator="operator")
]
NAMES = tuple(cls.model_fields["operator"].default for cls in get_args(get_args(Operator)[0]))


def read_operators(source: str | Mapping[str, Any]) -> dict[str, Operation]:
    """The operators by type in a YAML file or a mapping, or one of NAMES for all types.

    DEFAULT is for all other types. Raises WxbError with all faults. Salts are never shown.
    """
    content: Any = source
    if source in NAMES:
        content = {DEFAULT: {"operator": source}}
    elif isinstance(source, str):
        if not Path(source).is_file():
            raise WxbError(f"no operator or YAML file {source!r}{choices(source, NAMES)}")
        try:
            content = YAML(typ="safe").load(Path(source).read_text(encoding="utf-8"))
        except (YAMLError, UnicodeDecodeError):  # the text of the error may quote a salt
            raise WxbError(f"{source}: not readable as YAML") from None
    try:
        operators = TypeAdapter(dict[str, Operator]).validate_python(content)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False)
        ]
        raise WxbError("\n  ".join(["expected operators by type:", *faults])) from None
    return {DEFAULT: Replace(), **operators}


@cache
def _faker(locale: str) -> Faker:
    return Faker(locale)


def _same_shape(value: str, faker: Faker) -> str:
    """A value with random digits for its digits and random letters for its letters."""
    kinds = ((str.isdigit, digits), (str.isupper, ascii_uppercase), (str.isalpha, ascii_lowercase))
    return "".join(
        next((faker.random_element(new) for is_kind, new in kinds if is_kind(c)), c) for c in value
    )
