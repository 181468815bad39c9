"""Download files from the web, pinned by their hashes.

Downloads are cached outside the stage's output, which DVC deletes before each run. So a killed
download resumes, and a complete file is not downloaded again.
"""

import hashlib
import os
import shutil
import time
from itertools import count
from pathlib import Path

import requests
from filelock import FileLock
from requests.exceptions import SSLError
from urllib3.exceptions import HTTPError

from wxb.core.errors import WxbError, error_line
from wxb.core.files import sha256
from wxb.core.params.corpora import Download
from wxb.core.progress import Progress

FOLDER = Path(".wxb/downloads")  # the cache

TIMEOUT = 30.0  # seconds to wait for a connection, and for each chunk
RETRIES = 5
TEMPORARY = (429, *range(500, 600))  # statuses of servers that may answer later
BACKOFF = 1.0  # seconds before the first retry, doubled for each further one
CHUNK = 2**16  # bytes; what a killed download may lose
MIB = 2**20


def fetch(download: Download, folder: Path, *, caption: str) -> None:
    """Copy a file of the web into a folder: from WXB_DOWNLOADS, from the cache, or downloaded.

    Raises WxbError if the download fails, or if `sha256` is None or not the hash of the file. In
    the last two cases the file stays in the cache, so that its hash can be pinned.
    """
    mirror = os.environ.get("WXB_DOWNLOADS")  # a folder to search before the network
    for path in sorted(Path(mirror).rglob("*")) if mirror else ():
        if path.name == download.file and path.is_file() and sha256(path) == download.sha256:
            shutil.copyfile(path, folder / download.file)
            return
    # Without a hash, the file is named after its address.
    name = download.sha256 or hashlib.sha256(str(download.address).encode()).hexdigest()
    part = FOLDER / f"{name}.part"
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Two corpora may share a file.
    with FileLock(f".wxb/locks/{name}.lock", fallback_to_soft=False):
        for is_resumed in [True, False] if download.sha256 and part.exists() else [False]:
            if not is_resumed:
                part.unlink(missing_ok=True)  # without a hash, or with bytes of two versions
            if not (is_resumed and sha256(part) == download.sha256):
                _download(download, part, caption)
            if (digest := sha256(part)) == download.sha256:
                shutil.copyfile(part, folder / download.file)
                return
        cached = part.replace(part.with_name(f"{digest}.part"))
    raise WxbError(
        f"{download.address}: found sha256 {digest}, expected {download.sha256 or 'a pinned hash'};"
        f" if {cached} is the right file (no HTML page about it), set `sha256: {digest}`"
    )


def _download(download: Download, part: Path, caption: str) -> None:
    """Download what `part` lacks. Retries temporary errors RETRIES times, then raises WxbError."""
    for attempt in count():
        try:
            _request(download, part, caption)
            return
        except (requests.RequestException, HTTPError) as error:
            response = getattr(error, "response", None)
            is_temporary = response is None or response.status_code in TEMPORARY
            # An untrusted certificate stays untrusted.
            if attempt == RETRIES or isinstance(error, SSLError) or not is_temporary:
                raise WxbError(
                    f"{download.address}: {error_line(error)}; check `address` and the network"
                    " (HTTPS_PROXY, REQUESTS_CA_BUNDLE, ~/.netrc), and run it again: it resumes"
                ) from error
            time.sleep(BACKOFF * 2**attempt)


def _request(download: Download, part: Path, caption: str) -> None:
    """Append what `part` lacks; rewrite it if the server sends all. Raises errors of libraries."""
    start = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}  # the hash is of the bytes as sent
    headers |= {"Range": f"bytes={start}-"} if start else {}
    address = str(download.address)
    with requests.get(address, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416 and start:  # nothing follows
            return
        if response.status_code not in (200, 206 if start else 200):
            fault = f"found status {response.status_code} {response.reason}"
            raise requests.HTTPError(fault, response=response)
        start = start if response.status_code == 206 else 0
        rest = response.raw.length_remaining  # None if unknown
        total = None if rest is None else -(-(start + rest) // MIB)
        progress = Progress(f"{caption} {download.file}", total, "MiB")
        with part.open("ab" if start else "wb", buffering=0) as file:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                progress.update(file.tell() // MIB)
            progress.update(-(-file.tell() // MIB))
