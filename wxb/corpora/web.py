"""Download files from the web, pinned by their hashes.

Downloads are cached outside the stage's output, which DVC deletes before each run. So a killed
download resumes, and a complete file is not downloaded again.
"""

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
from wxb.core.files import sha256
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


def fetch(download: Download, folder: Path, *, caption: str) -> None:
    """Copy a file of the web into a folder: from WXB_DOWNLOADS, from the cache, or downloaded.

    Raises WxbError if the download fails, or if the file does not have the hash `sha256`; it is
    then cached by the hash that it has, so that it can be pinned.
    """
    mirror = os.environ.get(MIRROR)
    for path in sorted(Path(mirror).rglob("*")) if mirror else ():
        if path.name == download.file and path.is_file() and sha256(path) == download.sha256:
            shutil.copyfile(path, folder / download.file)
            return
    # Without a hash, the file is named after its address.
    name = download.sha256 or hashlib.sha256(str(download.address).encode()).hexdigest()
    part = FOLDER / f"{name}.part"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(LOCKS / f"{name}.lock", fallback_to_soft=False):  # two corpora may share a file
        if not download.sha256:
            part.unlink(missing_ok=True)
        while True:
            is_resumed = part.exists()
            if not is_resumed or sha256(part) != download.sha256:
                _download(download, part, caption)
            digest = sha256(part)
            if digest == download.sha256:
                shutil.copyfile(part, folder / download.file)
                return
            if not is_resumed:
                break
            part.unlink()  # bytes of two versions
        cached = part.replace(part.with_name(f"{digest}.part"))
    raise WxbError(
        f"{download.address}: found sha256 {digest}, expected {download.sha256 or 'a pinned hash'};"
        f" if {cached} is the right file (no HTML page about it), set `sha256: {digest}`"
    )


def _download(download: Download, part: Path, caption: str) -> None:
    """Download the rest of a file, with retries."""
    furthest, failures = _size(part), 0
    retries = Retry(
        RETRIES,
        other=0,  # an untrusted certificate stays untrusted
        status_forcelist={429, *range(500, 600)},
        backoff_factor=BACKOFF,
        raise_on_status=False,
    )
    with requests.Session() as session:
        session.headers["Accept-Encoding"] = "identity"  # the hash is of the bytes as sent
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retries))
        while True:
            try:
                return _request(session, download, part, caption)
            except (requests.RequestException, HTTPError) as error:
                failures = 1 if _size(part) > furthest else failures + 1
                furthest = max(furthest, _size(part))
                # A transfer that had begun raises an HTTPError.
                if isinstance(error, requests.RequestException) or failures > RETRIES:
                    message = " ".join(f"{type(error).__name__}: {error}".split())
                    raise WxbError(
                        f"{download.address}: {message}; check `address` and the network"
                        " (HTTPS_PROXY, REQUESTS_CA_BUNDLE, ~/.netrc), and run it again: it resumes"
                    ) from error
                time.sleep(BACKOFF * 2 ** (failures - 1))


def _request(session: requests.Session, download: Download, part: Path, caption: str) -> None:
    """Append the bytes that `part` lacks. Raises the errors of requests and urllib3."""
    start = _size(part)
    headers = {"Range": f"bytes={start}-"} if start else {}
    with session.get(
        str(download.address), headers=headers, stream=True, timeout=TIMEOUT
    ) as response:
        if response.status_code == 416 and start:  # nothing follows
            return
        if response.status_code not in (200, 206 if start else 200):
            raise requests.HTTPError(f"found status {response.status_code} {response.reason}")
        start = start if response.status_code == 206 else 0
        rest = response.raw.length_remaining  # None if unknown
        total = None if rest is None else -(-(start + rest) // MIB)
        progress = Progress(f"{caption} {download.file}", total, "MiB")
        with part.open("ab" if start else "wb", buffering=0) as file:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                progress.update(file.tell() // MIB)
            progress.update(-(-file.tell() // MIB))


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
