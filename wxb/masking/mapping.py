"""The mapping file with the values of placeholders: the secret that makes masking reversible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from wxb import WxbError
from wxb.core.files import create_private, publish
from wxb.masking.placeholders import PLACEHOLDER, Placeholders

# Saving writes the whole file. It is delayed while few placeholders are new, so that the total time
# stays proportional to the size of the mapping.
_MAX_UNSAVED = 0.05  # of the saved ones


class Content(BaseModel):
    """The content of a mapping file."""

    model_config = ConfigDict(extra="forbid")

    placeholders: dict[str, str]
    reserved: list[str]


class Mapping(Placeholders):
    """Placeholders in a file, for many documents and runs; encrypted if there is a key.

    Reads the file if it exists. Raises WxbError if it is no mapping, or the key is wrong. Errors
    never show its content.
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
        """The number of placeholders, reserved ones included, that the file lacks."""
        return self.size - self._saved

    @property
    def can_wait(self) -> bool:
        """Whether there is something to save, but little compared with the saved placeholders."""
        return 0 < self.unsaved <= self._saved * _MAX_UNSAVED

    def save(self) -> None:
        """Replace the file atomically if there are changes; only its owner may read it.

        Raises WxbError if it cannot be written.
        """
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


@contextmanager
def lock_mapping(path: Path) -> Iterator[None]:
    """Lock a mapping file; enter this before the mapping is read. The lock file is removed.

    Raises WxbError if another process has locked it.
    """
    target = path.resolve()
    file = target.with_name(f".{target.name}.lock")
    lock = FileLock(file, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise WxbError(
            f"{path}: another process is masking with this mapping; wait until it is done, or use"
            " another mapping"
        ) from None
    except OSError as error:
        raise WxbError(f"{path}: cannot be written ({error.strerror}); choose another") from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)  # before the release, so that no other holder loses its file
        lock.release()


def read_key(path: Path, *, create: bool) -> bytes:
    """The Fernet key in a file (32 bytes in URL-safe base64).

    `create` writes a new one, readable only by its owner, if the file does not exist. Raises
    WxbError if there is no key, or it cannot be written.
    """
    if create and not path.exists():
        _create_key(path.resolve())
    try:
        key = path.read_bytes().strip()
        Fernet(key)
    except OSError as error:
        raise WxbError(f"{path}: expected the file of a key; found: {error.strerror}") from None
    except ValueError:
        raise WxbError(
            f"{path}: expected a key (32 bytes in URL-safe base64); found something else. To create"
            " a key, give --key-file a new path"
        ) from None
    return key


def _create_key(path: Path) -> None:
    try:
        with suppress(FileExistsError), publish(path) as (draft,):
            if path.exists():  # another process has just created it
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
            f"{path}: cannot be decrypted with this key; give the key of this mapping, or omit"
            " --key-file if it is not encrypted"
        ) from None
    except ValidationError:
        pass  # its message would show the content
    raise WxbError(
        f"{path}: expected a mapping that `wxb mask --mapping` wrote; found something else (if it"
        " is encrypted, give its --key-file)"
    )
