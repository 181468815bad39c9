"""Operators, which replace values: one for each type, from a name or a small YAML file.

Operators that presidio-anonymizer has keep its names, parameters and results. Its engine is not
used, as it merges neighbouring spans and so changes the text between them.
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
_SECRET = ("salt", "key", "seed")  # parameters that errors do not show


class Operation(BaseModel):
    """The base class of operators. Instances are immutable; unknown parameters are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Replace(Operation):
    """Replaces values by `<TYPE>`, or by the same new value."""

    operator: Literal["replace"] = "replace"
    new_value: Annotated[str, Field(min_length=1)] | None = None

    def __call__(self, value: str, type_: str) -> str:
        """The type in angle brackets, or the new value."""
        params = {"entity_type": type_, "new_value": self.new_value}
        return str(presidio.Replace().operate(value, params))


class Redact(Operation):
    """Removes values."""

    operator: Literal["redact"] = "redact"

    def __call__(self, value: str, type_: str) -> str:
        """The empty text."""
        return str(presidio.Redact().operate(value, {}))


class Mask(Operation):
    """Replaces all characters, or some at the start or the end, by one character."""

    operator: Literal["mask"] = "mask"
    masking_char: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    chars_to_mask: PositiveInt | None = None
    from_end: bool = False

    def __call__(self, value: str, type_: str) -> str:
        """The masked value, which has the same length."""
        count = len(value) if self.chars_to_mask is None else self.chars_to_mask
        return str(presidio.Mask().operate(value, {**self.model_dump(), "chars_to_mask": count}))


class Hash(Operation):
    """Replaces values by the SHA-2 of value and salt.

    The salt is required. Presidio's default is random for each value, so equal values would have
    different hashes.
    """

    operator: Literal["hash"] = "hash"
    hash_type: Literal["sha256", "sha512"] = "sha256"
    salt: SecretStr | None = None

    def __call__(self, value: str, type_: str) -> str:
        """64 or 128 hexadecimal digits."""
        params = {"hash_type": self.hash_type, "salt": _secret(self.salt, SALT)}
        return str(presidio.Hash().operate(value, params))

    def fault(self) -> str | None:
        """An error message if the salt is too short."""
        salt = _secret(self.salt, SALT)
        if len(salt) >= _SALT_BYTES:
            return None
        return (
            f"needs a `salt` of {_SALT_BYTES} bytes or more, here or in {SALT}; found {len(salt)}."
            " Keep it secret, so that nobody can guess values by hashing; the same salt gives the"
            " same hashes: python -c 'import secrets; print(secrets.token_hex(16))'"
        )


class Encrypt(Operation):
    """Encrypts values with AES-CBC; presidio's `Decrypt` restores them.

    The initialization vector is random, so results differ between runs.
    """

    operator: Literal["encrypt"] = "encrypt"
    key: SecretStr | None = None

    def __call__(self, value: str, type_: str) -> str:
        """URL-safe base64."""
        return str(presidio.Encrypt().operate(value, {"key": _secret(self.key, KEY)}))

    def fault(self) -> str | None:
        """An error message if the key has another length than AES needs."""
        key = _secret(self.key, KEY)
        if len(key) in _KEY_BYTES:
            return None
        return (
            f"needs a `key` of 16, 24 or 32 bytes, here or in {KEY}; found {len(key)}:"
            " python -c 'import secrets; print(secrets.token_hex(16))'"
        )


class Number(Operation):
    """Replaces values by placeholders such as `<EMAIL_1>`, which a mapping can undo."""

    operator: Literal["number"] = "number"


class Fake(Operation):
    """Replaces values by fake ones, the same for the same value, type and seed."""

    operator: Literal["fake"] = "fake"
    method: str | None = None
    locale: str = "en_US"
    seed: int | str = 0

    def __call__(self, value: str, type_: str) -> str:
        """A value from Faker's method for the type; if it has none, one of the same shape."""
        return fakes.fake(value, type_, method=self.method, locale=self.locale, seed=str(self.seed))

    def fault(self) -> str | None:
        """An error message if Faker lacks the method or the locale."""
        try:
            fakes.check_method(self.method, self.locale)
        except WxbError as error:
            return str(error)
        return None


class Keep(Operation):
    """Keeps values."""

    operator: Literal["keep"] = "keep"


Operator = Annotated[
    Replace | Redact | Mask | Hash | Encrypt | Number | Fake | Keep,
    Field(discriminator="operator"),
]
_CLASSES: dict[str, type[Operation]] = {
    cls.model_fields["operator"].default: cls for cls in get_args(get_args(Operator)[0])
}
NAMES = tuple(_CLASSES)
Operators = dict[str, Any]  # by type; DEFAULT is for all other types


def read_operators(source: str) -> Operators:
    """The operators in a YAML file, or one of NAMES for all types.

    Raises WxbError with all faults: key, expected value and the nearest valid name. Salts and keys
    are never shown.
    """
    if source in NAMES:
        return _validate({DEFAULT: {"operator": source}}, f"operator {source}")
    path = Path(source)
    if not path.suffix and not path.exists():
        raise WxbError(f"no operator {source!r}{choices(source, NAMES)}, and no such YAML file")
    return _validate(_read_yaml(path), str(path))


def check_types(operators: Operators, types: Iterable[str], name: str) -> None:
    """Raise WxbError for operators of types that the experiment `name` does not predict."""
    types = list(types)
    faults = [
        f"{type_}: {name} has no such type{choices(type_, [DEFAULT, *types])}"
        for type_ in operators
        if type_ not in {DEFAULT, *types}
    ]
    if faults:
        raise WxbError("\n  ".join(["operators:", *faults]))


def _validate(content: object, where: str) -> Operators:
    if not isinstance(content, dict):
        raise WxbError(f"{where}: expected types with operators, {{DEFAULT: {{operator: number}}}}")
    try:
        operators = TypeAdapter(dict[str, Operator]).validate_python(content)
    except ValidationError as error:
        faults = [_explain(fault) for fault in error.errors()]
    else:
        faults = [
            f"{type_}: {fault}"
            for type_, operator in operators.items()
            if hasattr(operator, "fault") and (fault := operator.fault())
        ]
    if faults:
        raise WxbError("\n  ".join([f"{where}:", *faults]))
    return {DEFAULT: Replace(), **operators}


def _explain(fault: Any) -> str:
    """One line for a pydantic error, without values that may be secret."""
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


def _read_yaml(path: Path) -> object:
    try:
        return YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WxbError(f"{path}: cannot be read ({error.strerror})") from None
    except (YAMLError, UnicodeDecodeError) as error:
        # The text of the error quotes the line, which may contain a key.
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        duplicate = ", a duplicate key" if isinstance(error, DuplicateKeyError) else ""
        line = f" (line {mark.line + 1}{duplicate})" if mark else ""
        raise WxbError(f"{path}: not readable as YAML{line}") from None


def _secret(parameter: SecretStr | None, variable: str) -> bytes:
    """The bytes of a secret parameter, or else of an environment variable."""
    return (parameter.get_secret_value() if parameter else os.environ.get(variable, "")).encode()
