"""Operators, which replace values: one for each type, from a name or a small YAML file."""

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from faker import Faker
from faker.config import AVAILABLE_LOCALES
from pydantic import BaseModel, Field, PositiveInt, SecretStr, TypeAdapter, ValidationError
from pydantic import model_validator as validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from wxb import WxbError
from wxb.core.errors import choices
from wxb.masking.placeholders import Placeholders

DEFAULT = "DEFAULT"
SALT = "WXB_MASK_SALT"  # an environment variable
SALT_SIZE = 16
FAKER_METHODS = {  # by type; values of other types become placeholders
    **dict.fromkeys(("CITY", "LOC", "LOCATION"), "city"),
    **dict.fromkeys(("COMPANY", "ORG", "ORGANIZATION"), "company"),
    **dict.fromkeys(("FIRSTNAME", "GIVENNAME"), "first_name"),
    **dict.fromkeys(("LASTNAME", "SURNAME"), "last_name"),
    **dict.fromkeys(("NAME", "PER", "PERSON"), "name"),
    **dict.fromkeys(("PHONE", "TELEPHONENUM"), "phone_number"),
    **dict.fromkeys(("ADDRESS", "STREETADDRESS"), "street_address"),
    **{"COUNTRY": "country", "EMAIL": "email", "JOBTITLE": "job", "STATE": "state"},
    **{"STREET": "street_name", "TITLE": "prefix", "URL": "url", "USERNAME": "user_name"},
    **{"BUILDINGNUM": "building_number", "CREDITCARDNUMBER": "credit_card_number", "DATE": "date"},
    **{"IBAN": "iban", "SOCIALNUM": "ssn", "TIME": "time", "ZIPCODE": "postcode"},
}
ATTEMPTS = 20  # of finding a new fake
_faker = cache(Faker)  # by locale
Name = Literal["replace", "redact", "mask", "hash", "number", "fake", "keep"]
NAMES = get_args(Name)
OPTIONS = {  # of operators
    **{"replace": {"new_value"}, "hash": {"salt"}, "fake": {"locale", "salt"}},
    "mask": {"masking_char", "chars_to_mask", "from_end"},
}


class Operator(BaseModel, extra="forbid", frozen=True):
    """Replaces values.

    - replace: by `<TYPE>` or `new_value`; redact: by nothing; keep: not at all.
    - mask: all characters, or some at the start or the end, by `masking_char`.
    - hash: by the SHA-256 of value and salt; number: by placeholders such as `<EMAIL_1>`.
    - fake: by Faker's method for its type, the same for a value and salt; else by a placeholder.
    """

    operator: Name
    new_value: Annotated[str, Field(min_length=1)] | None = None
    masking_char: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    chars_to_mask: PositiveInt | None = None
    from_end: bool = False
    salt: SecretStr = Field(default_factory=lambda: SecretStr(os.environ.get(SALT, "")))
    locale: str = "en_US"

    def __call__(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """The replacement of a value."""
        match self.operator:
            case "redact":
                return ""
            case "mask":
                count = min(self.chars_to_mask or len(value), len(value))
                stars, kept = self.masking_char * count, len(value) - count
                return value[:kept] + stars if self.from_end else stars + value[count:]
            case "hash":
                return hashlib.sha256((value + self.salt.get_secret_value()).encode()).hexdigest()
            case "number":
                return placeholders.placeholder(type_, value)
            case "fake":
                return self._fake_or_placeholder(value, type_, placeholders)
        return self.new_value or f"<{type_}>"  # keep, too: what --deny finds

    def _fake_or_placeholder(self, value: str, type_: str, placeholders: Placeholders) -> str:
        """A fake that no other value has, or a placeholder; adds either to `placeholders`."""
        method = FAKER_METHODS.get("".join(filter(str.isalnum, type_)).upper(), "")
        faker = _faker(self.locale)  # some locales lack methods
        for attempt in range(ATTEMPTS if method and hasattr(faker, method) else 0):
            key = "\0".join([self.salt.get_secret_value(), type_, value, str(attempt)])
            faker.seed_instance(int.from_bytes(hashlib.sha256(key.encode()).digest()))
            new = " ".join(str(getattr(faker, method)()).split())  # addresses have several lines
            is_new = new.casefold() != value.casefold()
            if is_new and placeholders.fakes.setdefault(new, value) == value:
                return new
        return placeholders.placeholder(type_, value)

    @validator(mode="after")
    def _check_options(self) -> Self:
        """Raise ValueError for options of other operators, unknown locales or a short hash salt."""
        if unknown := self.model_fields_set - OPTIONS.get(self.operator, set()) - {"operator"}:
            raise ValueError(f"{self.operator} has no option {min(unknown)!r}")
        if self.operator == "hash" and len(self.salt) < SALT_SIZE:  # else guesses find values
            raise ValueError(f"needs a secret `salt` of {SALT_SIZE} characters, here or in {SALT}")
        if self.locale not in AVAILABLE_LOCALES:
            raise ValueError(f"Faker has no locale {self.locale!r}; expected e.g. de_DE")
        return self


def read_operators(source: str | Mapping[str, Any]) -> dict[str, Operator]:
    """The operators by type in a YAML file or a mapping, or one of NAMES for all types.

    DEFAULT, by default replace, is for all others. Raises WxbError with all faults, without salts.
    """
    content: Any = {DEFAULT: {"operator": source}} if source in NAMES else source
    if isinstance(content, str):
        if not Path(content).is_file():
            raise WxbError(f"no operator or YAML file {source!r}{choices(source, NAMES)}")
        try:
            content = YAML(typ="safe").load(Path(content).read_text(encoding="utf-8"))
        except (YAMLError, UnicodeDecodeError):  # the text of the error may quote a salt
            raise WxbError(f"{source}: not readable as YAML") from None
    try:
        operators = TypeAdapter(dict[str, Operator]).validate_python(content)
    except ValidationError as error:
        faults = error.errors(include_input=False)
        lines = "".join(f"\n  {'.'.join(map(str, f['loc']))}: {f['msg']}" for f in faults)
        raise WxbError(f"expected operators by type:{lines.replace('Value error, ', '')}") from None
    return {DEFAULT: Operator(operator="replace"), **operators}
