"""The file that tells placeholders' values: the secret that makes masking reversible."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from wxb import WxbError
from wxb.core.files import create_private, publish
from wxb.masking.placeholders import PLACEHOLDER, Placeholders

# Saving writes the whole file. It is put off while little is new, so that the time it takes in all
# stays in proportion to the mapping.
_SHARE_OF_NEW = 0.05

_HELD: list[FileLock] = []  # a lock that nothing refers to is let go


class Content(BaseModel):
    """A mapping as JSON."""

    model_config = ConfigDict(extra="forbid")

    placeholders: dict[str, str]
    reserved: list[str]


class Mapping(Placeholders):
    """Placeholders that stay the same across documents and runs; encrypted if there is a key.

    A new one, or what the file holds. Raises WxbError where the file is no mapping or the key is
    not its own. Errors tell nothing of what is inside.
    """

    def __init__(self, path: Path, key: bytes | None = None) -> None:
        self.path, self._fernet = path.resolve(), Fernet(key) if key else None
        content = _read(path, self._fernet) if path.exists() else None
        if content:
            super().__init__(content.placeholders, content.reserved)
        else:
            super().__init__()
        self._saved = self.size

    @property
    def unsaved(self) -> int:
        """How many placeholders, reserved ones included, the file does not tell yet."""
        return self.size - self._saved

    @property
    def may_wait(self) -> bool:
        """Whether there is something to save, but little beside what was saved."""
        return 0 < self.unsaved <= self._saved * _SHARE_OF_NEW

    def save(self) -> None:
        """Replace the file at once and whole, readable for its owner alone."""
        if not self.unsaved and self.path.exists():
            return
        content = Content(placeholders=self.values, reserved=sorted(self.reserved))
        text = json.dumps(content.model_dump(), ensure_ascii=False, indent=2) + "\n"
        data = text.encode()
        try:
            with publish(self.path) as (draft,), create_private(draft) as file:
                file.write(self._fernet.encrypt(data) if self._fernet else data)
        except OSError as error:
            raise WxbError(f"{self.path}: cannot be written ({error.strerror})") from None
        self._saved = self.size


def hold(path: Path) -> None:
    """Keep other processes from writing a mapping while this one runs.

    To be called before the mapping is read. Raises WxbError where another process holds it.
    """
    target = path.resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"), fallback_to_soft=False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise WxbError(
            f"{path}: another process is masking with this mapping; wait until it is done, or use"
            " a mapping of your own"
        ) from None
    except OSError as error:
        raise WxbError(f"{path}: cannot be written ({error.strerror}); choose another") from None
    _HELD.append(lock)


def read_key(path: Path, *, new: bool) -> bytes:
    """The key in a file (Fernet's: 32 bytes in URL-safe base64); `new` makes it if there is none.

    A new one is on disk, for its owner alone, before it is returned. Raises WxbError where there is
    no key, or a new one cannot be written.
    """
    if new and not path.exists():
        _make_key(path.resolve())
    try:
        key = path.read_bytes().strip()
        Fernet(key)
    except OSError as error:
        raise WxbError(f"{path}: expected the file of a key; found: {error.strerror}") from None
    except ValueError:
        raise WxbError(
            f"{path}: expected a key as --key-file makes it where there is no file yet (32 bytes in"
            " URL-safe base64); found something else"
        ) from None
    return key


def _make_key(path: Path) -> None:
    try:
        with suppress(FileExistsError), publish(path) as (draft,):
            if path.exists():  # another process made it just now, and uses it
                raise FileExistsError
            with create_private(draft) as file:
                file.write(Fernet.generate_key() + b"\n")
    except OSError as error:
        raise WxbError(f"{path}: cannot be written ({error.strerror})") from None


def _read(path: Path, fernet: Fernet | None) -> Content:
    try:
        data = path.read_bytes()
        content = Content.model_validate_json(fernet.decrypt(data) if fernet else data)
        if all(map(PLACEHOLDER.fullmatch, content.placeholders)):
            return content
    except OSError as error:
        raise WxbError(f"{path}: cannot be read ({error.strerror})") from None
    except InvalidToken:
        raise WxbError(
            f"{path}: does not open with this key; give the key it was made with, or leave"
            " --key-file out if it is not encrypted"
        ) from None
    except ValidationError:
        pass  # its message would show what the file holds
    raise WxbError(
        f"{path}: expected a mapping that `wxb mask --mapping` wrote; found something else (if it"
        " is encrypted, give its --key-file)"
    )
