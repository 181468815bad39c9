"""What takes the place of a value: an operator for each type, from a name or a small YAML file.

Names, parameters and behaviour are those of presidio-anonymizer where it has the operator; its
engine is not used, as it joins neighbouring spans and so changes what stands between them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from presidio_anonymizer import operators as presidio
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SecretStr,
    TypeAdapter,
    ValidationError,
)
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from wxb import WxbError
from wxb.core.errors import choices
from wxb.masking import fakes

DEFAULT = "DEFAULT"
SALT, KEY = "WXB_MASK_SALT", "WXB_MASK_KEY"  # environment variables

_SALT_BYTES, _KEY_BYTES = 16, (16, 24, 32)
_SECRET = ("salt", "key", "seed")  # parameters that no error shows


class Operation(BaseModel):
    """What all operators are: immutable, and closed to unknown parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Replace(Operation):
    """`<TYPE>`, or the same new value for all."""

    operator: Literal["replace"] = "replace"
    new_value: Annotated[str, Field(min_length=1)] | None = None

    def __call__(self, value: str, type_: str) -> str:
        """The type in angle brackets, or the new value."""
        asked = {"entity_type": type_, "new_value": self.new_value}
        return str(presidio.Replace().operate(value, asked))


class Redact(Operation):
    """Nothing."""

    operator: Literal["redact"] = "redact"

    def __call__(self, value: str, type_: str) -> str:
        """The empty text."""
        return str(presidio.Redact().operate(value, {}))


class Mask(Operation):
    """A character in place of each, or of so many from the start or the end."""

    operator: Literal["mask"] = "mask"
    masking_char: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    chars_to_mask: PositiveInt | None = None
    from_end: bool = False

    def __call__(self, value: str, type_: str) -> str:
        """As long as the value."""
        count = len(value) if self.chars_to_mask is None else self.chars_to_mask
        asked = {**self.model_dump(), "chars_to_mask": count}
        return str(presidio.Mask().operate(value, asked))


class Hash(Operation):
    """SHA-2 of value and salt, in hexadecimal.

    The salt is asked for: presidio's own is drawn anew for each value, so that the same value would
    not have the same hash, nor a second run the same bytes.
    """

    operator: Literal["hash"] = "hash"
    hash_type: Literal["sha256", "sha512"] = "sha256"
    salt: SecretStr | None = None

    def __call__(self, value: str, type_: str) -> str:
        """64 or 128 digits."""
        asked = {"hash_type": self.hash_type, "salt": _secret(self.salt, SALT)}
        return str(presidio.Hash().operate(value, asked))

    def fault(self) -> str | None:
        """What is wrong with the salt."""
        salt = _secret(self.salt, SALT)
        if len(salt) >= _SALT_BYTES:
            return None
        return (
            f"needs a `salt` of {_SALT_BYTES} bytes or more, here or in {SALT}; found {len(salt)}."
            " One that is kept secret keeps the hashes from being guessed, and the same one gives"
            " the same hashes: python -c 'import secrets; print(secrets.token_hex(16))'"
        )


class Encrypt(Operation):
    """AES-CBC in base64, which presidio's `decrypt` opens with the key.

    Each value has a random start, so that no two runs give the same bytes.
    """

    operator: Literal["encrypt"] = "encrypt"
    key: SecretStr | None = None

    def __call__(self, value: str, type_: str) -> str:
        """URL-safe base64."""
        return str(presidio.Encrypt().operate(value, {"key": _secret(self.key, KEY)}))

    def fault(self) -> str | None:
        """What is wrong with the key."""
        key = _secret(self.key, KEY)
        if len(key) in _KEY_BYTES:
            return None
        return (
            f"needs a `key` of 16, 24 or 32 bytes, here or in {KEY}; found {len(key)}:"
            " python -c 'import secrets; print(secrets.token_hex(16))'"
        )


class Number(Operation):
    """A placeholder such as `<EMAIL_1>`, the same for the same value; the mapping undoes it."""

    operator: Literal["number"] = "number"


class Fake(Operation):
    """A made-up value, the same for the same value, type and seed; from one of Faker's methods."""

    operator: Literal["fake"] = "fake"
    method: str | None = None
    locale: str = "en_US"
    seed: int | str = 0

    def __call__(self, value: str, type_: str) -> str:
        """Of Faker's method for the type; where there is none, of the value's shape."""
        return fakes.fake(value, type_, method=self.method, locale=self.locale, seed=str(self.seed))

    def fault(self) -> str | None:
        """What is wrong with method and locale."""
        try:
            fakes.check(self.method, self.locale)
        except WxbError as error:
            return str(error)
        return None


class Keep(Operation):
    """The value itself."""

    operator: Literal["keep"] = "keep"


Operator = Annotated[
    Replace | Redact | Mask | Hash | Encrypt | Number | Fake | Keep,
    Field(discriminator="operator"),
]
_CLASSES: dict[str, type[Operation]] = {
    cls.model_fields["operator"].default: cls for cls in get_args(get_args(Operator)[0])
}
NAMES = tuple(_CLASSES)
Operators = dict[str, Any]  # by type of entity; DEFAULT is for the rest


def read(chosen: str) -> Operators:
    """Operators from a YAML file, or one of NAMES for all types.

    Raises WxbError that lists every fault: the key, what was expected, the nearest valid name.
    Salts and keys are never shown.
    """
    if chosen in NAMES:
        return _checked({DEFAULT: {"operator": chosen}}, f"operator {chosen}")
    path = Path(chosen)
    if not path.suffix and not path.exists():
        raise WxbError(f"no operator {chosen!r}{choices(chosen, NAMES)}, and no such YAML file")
    return _checked(_yaml(path), str(path))


def check_types(operators: Operators, types: Iterable[str], name: str) -> None:
    """Raise WxbError for operators of types that the experiment `name` does not find."""
    types = list(types)
    faults = [
        f"{type_}: {name} finds no such type{choices(type_, [DEFAULT, *types])}"
        for type_ in operators
        if type_ not in {DEFAULT, *types}
    ]
    if faults:
        raise WxbError("\n  ".join(["operators:", *faults]))


def _checked(content: object, where: str) -> Operators:
    if not isinstance(content, dict):
        raise WxbError(f"{where}: expected types with operators, {{DEFAULT: {{operator: number}}}}")
    try:
        operators = TypeAdapter(dict[str, Operator]).validate_python(content)
    except ValidationError as error:
        faults = [_explain(fault) for fault in error.errors()]
    else:
        found = {key: one.fault() for key, one in operators.items() if hasattr(one, "fault")}
        faults = [f"{key}: {fault}" for key, fault in found.items() if fault]
    if faults:
        raise WxbError("\n  ".join([f"{where}:", *faults]))
    return {DEFAULT: Replace(), **operators}


def _explain(fault: Any) -> str:
    """One line for a pydantic error, without what was found where that may be a secret."""
    type_, *rest = fault["loc"]
    if fault["type"] == "union_tag_invalid":
        tag = fault["ctx"]["tag"]
        return f"{type_}.operator: unknown operator {tag!r}{choices(tag, NAMES)}"
    if not rest or rest == ["[key]"]:
        return f"{type_}: expected {{operator: NAME, ...}}, NAME one of {', '.join(NAMES)}"
    operator, *keys = rest
    key = ".".join(map(str, [type_, *keys]))
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key{choices(keys[-1], _CLASSES[operator].model_fields)}"
    found = "" if keys[0] in _SECRET else f"found {fault['input']!r}; "
    return f"{key}: {found}{fault['msg']}"


def _yaml(path: Path) -> object:
    try:
        return YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WxbError(f"{path}: cannot be read ({error.strerror})") from None
    except (YAMLError, UnicodeDecodeError) as error:
        # The error's own text quotes the line, in which a key may stand.
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        twice = ", where a key stands twice" if isinstance(error, DuplicateKeyError) else ""
        place = f" (line {mark.line + 1}{twice})" if mark else ""
        raise WxbError(f"{path}: not readable as YAML{place}") from None


def _secret(given: SecretStr | None, variable: str) -> bytes:
    return (given.get_secret_value() if given else os.environ.get(variable, "")).encode()
