"""Download files from the web, pinned by their hashes.

Partial and complete downloads are cached outside the stage's output, which DVC deletes before each
run. So a killed download resumes, and a complete file is not downloaded again.
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
from wxb.core.files import is_html, sha256
from wxb.core.params.corpora import Download
from wxb.core.progress import Progress

FOLDER = Path(".wxb/downloads")  # the cache
MIRROR = "WXB_DOWNLOADS"  # environment variable: a folder to search before the network
LOCKS = Path(".wxb/locks")

TIMEOUT = 30.0  # seconds to wait for a connection, and for each chunk
RETRIES = 5  # in a row without a new byte
BACKOFF = 1.0  # seconds before the first retry, doubled for each further one
LONGEST_WAIT = 120  # seconds that a server may request before a retry
REDIRECTS = 10
MIB = 2**20


class _TransferError(Exception):
    """A failed transfer that may succeed if it is repeated."""


def fetch(download: Download, folder: Path, *, label: str) -> None:
    """Copy a file of the web into a folder: from WXB_DOWNLOADS, from the cache, or downloaded.

    Locks the file in the cache meanwhile. Raises WxbError if the download fails, or if the file
    does not have the hash `sha256`.
    """
    if mirrored := _find_mirrored(download):
        print(f"{download.address}: copied from {mirrored}", flush=True)
        shutil.copyfile(mirrored, folder / download.file)
        return
    address = str(download.address)
    # If the hash is unknown, the cached file is named after the address.
    name = download.sha256 or hashlib.sha256(address.encode()).hexdigest()
    part = FOLDER / f"{name}.part"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(LOCKS / f"{name}.lock", fallback_to_soft=False):  # two corpora may share a file
        if not part.exists() or sha256(part) != download.sha256:
            content_type = _download(address, part, f"{label} {download.file}")
            _check(download, part, content_type)
        shutil.copyfile(part, folder / download.file)


def _find_mirrored(download: Download) -> Path | None:
    """A file with this name and hash below WXB_DOWNLOADS, if that is set."""
    if not (mirror := os.environ.get(MIRROR)) or not download.sha256:
        return None
    paths = (path for path in sorted(Path(mirror).rglob("*")) if path.name == download.file)
    return next((p for p in paths if p.is_file() and sha256(p) == download.sha256), None)


def _check(download: Download, part: Path, content_type: str) -> None:
    """Raise WxbError if a downloaded file has not the expected hash; keeps it under its hash."""
    digest = sha256(part)
    if digest == download.sha256:
        return
    is_page = content_type.startswith(("text/html", "application/xhtml")) or is_html(part)
    if is_page and not download.file.lower().endswith((".html", ".htm")):
        part.unlink()
        raise WxbError(
            f"{download.address}: found an HTML page; expected a file of data: open the address in"
            " a browser, and set `address` to the link of the file itself"
        )
    # After the user copies this hash to params.yaml, the file is in the cache.
    cached = part.replace(part.with_name(f"{digest}.part"))
    if download.sha256:
        raise WxbError(
            f"{download.address}: found sha256 {digest}; expected {download.sha256}: if {cached} is"
            " what you want, correct `sha256`, or else `address`"
        )
    raise WxbError(
        f"{download.address}: found sha256 {digest}; expected it to be pinned: if {cached} is what"
        f" you want, add `sha256: {digest}`"
    )


def _download(address: str, part: Path, label: str) -> str:
    """Download the rest of a file, with retries; returns its content type."""
    furthest, failures = _size(part), 0
    with _session() as session:
        while True:
            try:
                return _request(session, address, part, label)
            except _TransferError as error:
                reached = _size(part)
                failures = 1 if reached > furthest else failures + 1
                furthest = max(furthest, reached)
                if failures > RETRIES:
                    raise WxbError(
                        f"{address}: {error}, {failures} times in a row; run it again later: it"
                        " resumes if the server supports that"
                    ) from error
                print(f"{address}: {error}; trying again", flush=True)
                time.sleep(BACKOFF * 2 ** (failures - 1))


def _session() -> requests.Session:
    """A session that repeats requests without an answer or with a temporary error."""
    retries = Retry(
        RETRIES,
        other=0,  # an untrusted certificate stays untrusted
        status_forcelist={429, *range(500, 600)},
        backoff_factor=BACKOFF,
        retry_after_max=LONGEST_WAIT,
        raise_on_status=False,
    )
    session = requests.Session()
    session.max_redirects = REDIRECTS
    session.headers["Accept-Encoding"] = "identity"  # the hash is of the bytes as sent
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    return session


def _request(session: requests.Session, address: str, part: Path, label: str) -> str:
    """Request a file once, and append to `part` if its version is current; else replace it.

    Returns the content type. Raises _TransferError if the file is incomplete, and WxbError if
    repeating does not help.
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
                mode, total = "wb", response.raw.length_remaining  # None if unknown
            case 206 if known and (size := _total_size(response.headers, start)):
                mode, total = "ab", size
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
    """Append the body of a response. Raises _TransferError if the file has not `total` bytes."""
    mebibytes = None if total is None else -(-total // MIB)
    progress, broken = Progress(label, mebibytes, "MiB"), None
    try:
        while chunk := response.raw.read1(MIB, decode_content=False):
            file.write(chunk)
            file.flush()  # so that a killed run can resume
            if file.tell() != total:
                progress.update(file.tell() // MIB)
    except exceptions.HTTPError as error:
        broken = error
    if broken or total not in (None, file.tell()):
        expected = "an unknown number" if total is None else total
        reason = f" ({_line(broken)})" if broken else ""
        raise _TransferError(f"found {file.tell()} bytes of {expected}{reason}") from broken
    progress.update(mebibytes or file.tell() // MIB)


def _version(headers: Mapping[str, str]) -> str:
    """The version of a file for If-Range: a strong ETag, else Last-Modified, else empty."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")  # W/"..." is weak


def _total_size(headers: Mapping[str, str], start: int) -> int | None:
    """The size of the whole file; None if the body does not continue from `start`."""
    match = re.fullmatch(rf"bytes {start}-\d+/(\d+)", headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _reason(error: requests.RequestException) -> str:
    """A message for a failed request: what is wrong, and what to do."""
    cause = getattr(error.args[0] if error.args else None, "reason", error)
    match cause:
        case exceptions.NameResolutionError():
            return (
                "found no host of this name; correct `address`, or check the network (behind a"
                " proxy, set HTTPS_PROXY)"
            )
        case exceptions.ReadTimeoutError() | requests.ReadTimeout():
            return f"found no answer within {TIMEOUT:g} s, {RETRIES + 1} times; try again later"
        case exceptions.SSLError():
            return (
                f"found no trusted connection ({_line(cause)}); correct `address`, or set"
                " REQUESTS_CA_BUNDLE to the certificates of your network"
            )
        case requests.TooManyRedirects():
            return f"found more than {REDIRECTS} redirects; correct `address`"
    return (
        f"found no answer ({_line(cause)}); correct `address`, or check the network and try"
        " again: it resumes where it stopped"
    )


def _refusal(response: requests.Response) -> str:
    """A message for an error status: what is wrong, and what to do."""
    status = f"found status {response.status_code} {response.reason}".rstrip()
    match response.status_code:
        case 401 | 403:
            return f"{status}; expected a public file, or a login for its host in ~/.netrc"
        case code if code == 429 or code >= 500:
            return f"{status}, {RETRIES + 1} times; try again later: it resumes where it stopped"
    return f"{status}; expected the file: correct `address`"


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _line(error: BaseException) -> str:
    """The type and first argument of an error, on one line."""
    return " ".join(f"{type(error).__name__}: {error.args[0] if error.args else ''}".split())
