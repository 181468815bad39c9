"""Download files from the web, pinned by their hashes.

Downloads are cached outside the stage's output, which DVC deletes before each run. So a killed
download resumes, and a complete file is not downloaded again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

import requests
from filelock import FileLock
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
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
CHUNK = 2**16  # bytes; what a killed download may lose
MIB = 2**20


def fetch(download: Download, folder: Path, *, label: str) -> None:
    """Copy a file of the web into a folder: from WXB_DOWNLOADS, from the cache, or downloaded.

    Locks the file in the cache meanwhile. Raises WxbError if the download fails, or if the file
    does not have the hash `sha256`.
    """
    if mirrored := _find_mirrored(download):
        print(f"{download.address}: copied from {mirrored}", flush=True)
        shutil.copyfile(mirrored, folder / download.file)
        return
    # If the hash is unknown, the cached file is named after the address.
    name = download.sha256 or hashlib.sha256(str(download.address).encode()).hexdigest()
    part = FOLDER / f"{name}.part"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(LOCKS / f"{name}.lock", fallback_to_soft=False):  # two corpora may share a file
        if not download.sha256:
            part.unlink(missing_ok=True)  # without a hash, two versions could be mixed
        is_partial = part.exists()
        if not is_partial or sha256(part) != download.sha256:
            content_type = _download(download, part, label)
            if is_partial and sha256(part) != download.sha256:
                part.unlink()  # bytes of two versions
                content_type = _download(download, part, label)
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
            f"{download.address}: found an HTML page, expected a file of data; set `address` to the"
            " link of the file itself"
        )
    # After the user copies this hash to params.yaml, the file is in the cache.
    cached = part.replace(part.with_name(f"{digest}.part"))
    raise WxbError(
        f"{download.address}: found sha256 {digest}, expected {download.sha256 or 'a pinned hash'};"
        f" if {cached} is the right file, set `sha256: {digest}`"
    )


def _download(download: Download, part: Path, label: str) -> str:
    """Download the rest of a file, with retries; returns its content type."""
    furthest, failures = _size(part), 0
    with _session() as session:
        while True:
            try:
                return _request(session, download, part, label)
            except HTTPError as error:  # a broken transfer
                failures = 1 if _size(part) > furthest else failures + 1
                furthest = max(furthest, _size(part))
                message = f"{download.address}: {_line(error)}"
                if failures > RETRIES:
                    raise WxbError(f"{message}; run it again later: it resumes") from error
                print(f"{message}; trying again", flush=True)
                time.sleep(BACKOFF * 2 ** (failures - 1))


def _session() -> requests.Session:
    """A session that repeats requests without an answer or with a temporary error."""
    retries = Retry(
        RETRIES,
        other=0,  # an untrusted certificate stays untrusted
        status_forcelist={429, *range(500, 600)},
        backoff_factor=BACKOFF,
        raise_on_status=False,
    )
    session = requests.Session()
    session.headers["Accept-Encoding"] = "identity"  # the hash is of the bytes as sent
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    return session


def _request(session: requests.Session, download: Download, part: Path, label: str) -> str:
    """Request the bytes that `part` lacks, and append them; returns the content type.

    Raises HTTPError if the transfer breaks, and WxbError if repeating does not help.
    """
    start = _size(part)
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        response = session.get(str(download.address), headers=headers, stream=True, timeout=TIMEOUT)
    except requests.RequestException as error:
        raise WxbError(
            f"{download.address}: {_line(error)}; correct `address`, or check the network"
            " (HTTPS_PROXY, REQUESTS_CA_BUNDLE) and run it again"
        ) from error
    with response:
        if response.status_code == 416 and start:  # nothing follows
            return ""
        if response.status_code not in (200, 206 if start else 200):
            raise WxbError(
                f"{download.address}: found status {response.status_code} {response.reason};"
                " correct `address`, run it again later, or put a login into ~/.netrc"
            )
        if response.status_code == 200:
            start = 0
        rest = response.raw.length_remaining  # None if unknown
        total = None if rest is None else -(-(start + rest) // MIB)
        progress = Progress(f"{label} {download.file}", total, "MiB")
        with part.open("ab" if start else "wb", buffering=0) as file:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                progress.update(file.tell() // MIB)
            progress.update(-(-file.tell() // MIB))
        return response.headers.get("Content-Type", "")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _line(error: BaseException) -> str:
    """The type and message of an error, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
