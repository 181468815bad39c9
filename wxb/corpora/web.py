"""Files of the web, each pinned by its hash.

What came of a file is kept outside the stage's output, which DVC deletes before it runs the stage:
a killed download goes on where it stopped, and a whole file is not asked for again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import requests
from filelock import FileLock
from requests.adapters import HTTPAdapter
from urllib3 import exceptions
from urllib3.util import Retry

from wxb.core.errors import WxbError
from wxb.core.files import sha256
from wxb.core.params.corpora import Download
from wxb.core.progress import Progress

FOLDER = Path(".wxb/downloads")
MIRROR = "WXB_DOWNLOADS"  # environment variable: a folder to search for a file before the network
LOCKS = Path(".wxb/locks")

TIMEOUT = 30.0  # seconds to wait for a connection, and for each piece
RETRIES = 5  # in a row without a new byte
BACKOFF = 1.0  # seconds before a retry, doubled before each one more
LONGEST_WAIT = 120  # seconds, of what a server may ask for
REDIRECTS = 10
MIB = 2**20


class _TransferError(Exception):
    """A transfer that may succeed when it is tried again."""


def fetch(download: Download, folder: Path, *, label: str) -> None:
    """Put a file of the web into a folder, under its name.

    It is taken from the folder WXB_DOWNLOADS of the environment where that has it at any depth.
    Raises WxbError when it cannot be had, or is not the one that `sha256` names.
    """
    if found := _mirrored(download):
        print(f"{download.address}: taken from {found}", flush=True)
        shutil.copyfile(found, folder / download.file)
        return
    address = str(download.address)
    # As long as its hash is not known, the file goes by its address.
    name = download.sha256 or hashlib.sha256(address.encode()).hexdigest()
    part = FOLDER / f"{name}.part"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(LOCKS / f"{name}.lock", fallback_to_soft=False):  # two corpora may share a file
        if not part.exists() or sha256(part) != download.sha256:
            content_type = _receive(address, part, f"{label} {download.file}")
            _check(download, part, content_type)
        shutil.copyfile(part, folder / download.file)


def _mirrored(download: Download) -> Path | None:
    """A file of this name and hash in WXB_DOWNLOADS, if that is set."""
    if not (mirror := os.environ.get(MIRROR)) or not download.sha256:
        return None
    named = (path for path in sorted(Path(mirror).rglob("*")) if path.name == download.file)
    return next((p for p in named if p.is_file() and sha256(p) == download.sha256), None)


def _check(download: Download, part: Path, content_type: str) -> None:
    """Compare what came with the hash that pins it."""
    found = sha256(part)
    if found == download.sha256:
        return
    if _is_page(part, content_type) and not download.file.lower().endswith((".html", ".htm")):
        part.unlink()
        raise WxbError(
            f"{download.address}: found an HTML page; expected a file of data: open the address in"
            " a browser, and set `address` to the link of the file itself"
        )
    # Whoever pastes the hash that is told here has the file already.
    kept = part.replace(part.with_name(f"{found}.part"))
    if download.sha256:
        raise WxbError(
            f"{download.address}: found sha256 {found}; expected {download.sha256}: if {kept} is"
            " what you want, correct `sha256`, or else `address`"
        )
    raise WxbError(
        f"{download.address}: found sha256 {found}; expected it to be pinned: if {kept} is what you"
        f" want, add `sha256: {found}`"
    )


def _is_page(file: Path, content_type: str) -> bool:
    with file.open("rb") as opened:
        head = opened.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    page = content_type.startswith(("text/html", "application/xhtml"))
    return page or head.startswith((b"<!doctype html", b"<html"))


def _receive(address: str, part: Path, label: str) -> str:
    """Ask for what is missing of a file until all of it is there; gives its content type."""
    furthest, failures = _size(part), 0
    with _session() as session:
        while True:
            try:
                return _ask(session, address, part, label)
            except _TransferError as error:
                reached = _size(part)
                failures = 1 if reached > furthest else failures + 1
                furthest = max(furthest, reached)
                if failures > RETRIES:
                    raise WxbError(
                        f"{address}: {error}, {failures} times in a row; run it again later: it"
                        " goes on from there if the server can"
                    ) from error
                print(f"{address}: {error}; trying again", flush=True)
                time.sleep(BACKOFF * 2 ** (failures - 1))


def _session() -> requests.Session:
    """Requests that are tried again when there is no answer, or one that says so."""
    retries = Retry(
        RETRIES,
        other=0,  # a certificate that is not trusted will not be later
        status_forcelist={429, *range(500, 600)},
        backoff_factor=BACKOFF,
        retry_after_max=LONGEST_WAIT,
        raise_on_status=False,
    )
    session = requests.Session()
    session.max_redirects = REDIRECTS
    session.headers["Accept-Encoding"] = "identity"  # the hash is that of the bytes as they come
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    return session


def _ask(session: requests.Session, address: str, part: Path, label: str) -> str:
    """One request: write what comes to `part`, behind what is there where that is still valid.

    Raises _TransferError when not all of it came, and WxbError when trying again would not help.
    """
    start, version = _size(part), part.with_suffix(".version")
    known = version.read_text(encoding="utf-8") if start and version.exists() else ""
    headers = {"Range": f"bytes={start}-", "If-Range": known} if known else {}
    try:
        response = session.get(address, headers=headers, stream=True, timeout=TIMEOUT)
    except requests.RequestException as error:
        raise WxbError(f"{address}: {_reason(error)}") from error
    with response:
        match response.status_code:
            case 200:
                mode, total = "wb", response.raw.length_remaining  # None: not told
            case 206 if known and (whole := _whole(response.headers, start)):
                mode, total = "ab", whole
            case 206 | 416 as status:
                part.unlink(missing_ok=True)
                raise _TransferError(f"found status {status} and not the bytes from {start} on")
            case _:
                raise WxbError(f"{address}: {_refusal(response)}")
        with part.open(mode) as file:
            if mode == "wb":
                version.write_text(_version(response.headers), encoding="utf-8")
            _write(file, response, total, label)
        version.unlink(missing_ok=True)
        return response.headers.get("Content-Type", "")


def _write(file: IO[bytes], response: requests.Response, total: int | None, label: str) -> None:
    """Append the body of a response; raises _TransferError when `total` bytes are not reached."""
    mebibytes = None if total is None else -(-total // MIB)
    progress, broken = Progress(label, mebibytes, "MiB"), None
    try:
        while piece := response.raw.read1(MIB, decode_content=False):
            file.write(piece)
            file.flush()  # for a killed run to leave what came
            if file.tell() != total:
                progress.at(file.tell() // MIB)
    except exceptions.HTTPError as error:
        broken = error
    if broken or total not in (None, file.tell()):
        expected = "an unknown number" if total is None else total
        why = f" ({_line(broken)})" if broken else ""
        raise _TransferError(f"found {file.tell()} bytes of {expected}{why}") from broken
    progress.at(mebibytes or file.tell() // MIB)


def _version(headers: Mapping[str, str]) -> str:
    """What tells this version of a file from others in If-Range; empty where nothing does."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")  # W/: a weak one


def _whole(headers: Mapping[str, str], start: int) -> int | None:
    """The size of the whole file, if its bytes from `start` on are what comes."""
    part = re.fullmatch(rf"bytes {start}-\d+/(\d+)", headers.get("Content-Range", ""))
    return int(part[1]) if part else None


def _reason(error: requests.RequestException) -> str:
    """What was found in place of an answer, and what to do about it."""
    cause = getattr(error.args[0] if error.args else None, "reason", error)
    match cause:
        case exceptions.NameResolutionError():
            return (
                "found no host of this name; correct `address`, or see to the network (behind a"
                " proxy, set HTTPS_PROXY)"
            )
        case exceptions.ReadTimeoutError() | requests.ReadTimeout():
            return f"found no answer within {TIMEOUT:g} s, {RETRIES + 1} times; try again later"
        case exceptions.SSLError():
            return (
                f"found no connection to trust ({_line(cause)}); correct `address`, or set"
                " REQUESTS_CA_BUNDLE to the certificates of your network"
            )
        case requests.TooManyRedirects():
            return f"found more than {REDIRECTS} redirects; correct `address`"
    return (
        f"found no answer ({_line(cause)}); correct `address`, or see to the network and try"
        " again: what came is kept"
    )


def _refusal(response: requests.Response) -> str:
    """What a status other than success says, and what to do about it."""
    found = f"found status {response.status_code} {response.reason}".rstrip()
    match response.status_code:
        case 401 | 403:
            return (
                f"{found}; expected a file that all may read, or a login for its host in ~/.netrc"
            )
        case status if status == 429 or status >= 500:
            return f"{found}, {RETRIES + 1} times; try again later: what came is kept"
    return f"{found}; expected the file: correct `address`"


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _line(error: BaseException) -> str:
    """An error on one line, without the error that it repeats."""
    return " ".join(f"{type(error).__name__}: {error.args[0] if error.args else ''}".split())
