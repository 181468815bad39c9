"""Downloads from a real server on the loopback interface with configurable failures."""

import contextlib
import hashlib
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.repository import write
from wxb.core.errors import WxbError
from wxb.core.params.corpora import Download
from wxb.corpora import web

BODY = bytes(range(256)) * 40


@dataclass
class Answer:
    """The response to one request; by default the requested bytes."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # of the file from now on
    cut: int | None = None  # bytes before the connection is closed
    stall: int | None = None  # bytes before the server stops sending
    ranges: bool = True


@dataclass
class Site:
    """The file of the server, and the requests so far."""

    address: str = ""
    body: bytes = BODY
    answers: list[Answer] = field(default_factory=list)  # to the next requests, in order
    ranges: list[str | None] = field(default_factory=list)  # of the requests, in order
    released: threading.Event = field(default_factory=threading.Event)  # ends stalled responses


class Handler(BaseHTTPRequestHandler):
    """A file server that follows the next Answer."""

    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *_):
        """Keep the terminal quiet."""

    def do_GET(self):
        site = self.site
        site.ranges.append(self.headers.get("Range"))
        assert self.headers.get("Accept-Encoding") == "identity"
        answer = site.answers.pop(0) if site.answers else Answer()
        site.body = site.body if answer.body is None else answer.body
        start = int((site.ranges[-1] or "bytes=0-")[6:-1]) if answer.ranges else 0
        status = answer.status
        if status == 200 and start:
            status = 206 if start < len(site.body) else 416
        body = site.body[start:] if status < 300 else b""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        stops = [stop for stop in (answer.cut, answer.stall) if stop is not None]
        self.wfile.write(body[: min(stops, default=None)])
        if answer.stall is not None:
            self.site.released.wait()
        self.close_connection = bool(stops)


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    """The server, stopped at the end of the file's tests, and a client that does not wait."""
    site = Site()
    handler = type("SiteHandler", (Handler,), {"site": site})
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as running,
    ):
        patch.setattr(web, "BACKOFF", 0.0)
        patch.setattr(web, "CHUNK", 1)  # otherwise a broken connection loses the last chunk
        patch.setenv("NO_PROXY", "127.0.0.1")
        site.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield site
        running.shutdown()
        thread.join()


@pytest.fixture
def site(server, cwd) -> Iterator[Site]:
    """The server in its initial state; the working folder is empty."""
    vars(server).update(vars(Site(address=server.address)))
    yield server
    server.released.set()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def fetch(site, path="/a.csv", content=BODY, **changes):
    """The bytes that `fetch` writes; the pinned hash is that of `content`."""
    block = {"address": site.address + path, "sha256": sha256(content), **changes}
    download = Download.model_validate(block)
    web.fetch(download, Path(), caption="download@test")
    return Path(download.file).read_bytes()


def cached():
    return {path.name: path.read_bytes() for path in web.FOLDER.glob("*")}


def test_a_file_is_written_under_its_name_and_downloaded_once(site):
    for _ in range(2):
        assert fetch(site, "/data/a%20b.csv?download=1") == BODY
        Path("a b.csv").unlink()
    assert site.ranges == [None]
    assert cached() == {f"{sha256(BODY)}.part": BODY}


@pytest.mark.parametrize(
    ("files", "requests"),
    [
        ({"a/a.csv": b"other", "b/c/a.csv": BODY, "b.csv": BODY}, 0),
        ({"a.csv": b"other"}, 1),
        ({"b.csv": BODY}, 1),
    ],
)
def test_a_mirrored_file_with_this_name_and_hash_needs_no_network(
    site, monkeypatch, files, requests
):
    for name, content in files.items():
        write(Path("mirror", name), content)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    assert fetch(site) == BODY
    assert len(site.ranges) == requests


def test_bytes_are_not_decompressed(site):
    packed = b"\x1f\x8b not really"
    site.answers = [Answer(headers={"Content-Encoding": "gzip"}, body=packed)]
    assert fetch(site, content=packed) == packed


def test_a_broken_transfer_resumes_where_it_stopped(site):
    site.answers = [Answer(cut=1000), Answer(cut=500), Answer(cut=0)]
    assert fetch(site) == BODY
    assert site.ranges == [None, *(f"bytes={n}-" for n in (1000, 1500, 1500))]


@pytest.mark.parametrize("begin", [BODY[::-1][:1000], BODY + b"x"])
def test_bytes_of_two_versions_are_not_mixed(site, begin):
    write(web.FOLDER / f"{sha256(BODY)}.part", begin)
    assert fetch(site) == BODY
    assert site.ranges == [f"bytes={len(begin)}-", None]


def test_concurrent_downloads_of_a_file_request_it_once(site):
    site.answers = [Answer(stall=1000)]
    results = []
    threads = [threading.Thread(target=lambda: results.append(fetch(site))) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while not site.ranges:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.2)
    assert site.ranges == [None]
    site.released.set()
    for thread in threads:
        thread.join()
    assert results == [BODY, BODY]
    assert site.ranges == [None, "bytes=1000-"]


FAILURES = st.one_of(
    st.builds(Answer, cut=st.integers(0, 60), ranges=st.booleans()),
    st.builds(Answer, status=st.sampled_from([429, 500, 503])),
)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=50), st.lists(FAILURES, max_size=5))
def test_a_body_in_any_pieces_is_downloaded_completely(server, body, answers):
    vars(server).update(vars(Site(address=server.address, body=body, answers=answers)))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        assert fetch(server, content=body) == body


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([Answer(404)], "found status 404"),
        ([Answer(206)], "found status 206"),
        ([Answer(503)] * 3, "found status 503"),
        ([Answer(cut=100), *[Answer(cut=0)] * 2], "IncompleteRead"),
        ([Answer(stall=0)] * 3, "ReadTimeoutError"),
    ],
)
def test_errors_name_the_address_on_one_line(site, monkeypatch, answers, message):
    monkeypatch.setattr(web, "RETRIES", 2)
    monkeypatch.setattr(web, "TIMEOUT", 0.2)
    site.answers = list(answers)
    with pytest.raises(WxbError, match=f"^{site.address}/a.csv: .*{message}") as raised:
        fetch(site)
    assert "\n" not in str(raised.value)
    assert not Path("a.csv").exists()
    assert len(site.ranges) == len(answers)


def test_after_a_wrong_or_missing_hash_the_right_one_needs_no_second_download(site):
    digest = sha256(BODY)
    for pinned in (sha256(b"x"), None):
        site.answers = [Answer(cut=1000)]
        with pytest.raises(WxbError, match=f"found sha256 {digest}.*`sha256: {digest}`"):
            fetch(site, sha256=pinned)
        assert not Path("a.csv").exists()
    assert cached() == {f"{digest}.part": BODY}
    assert fetch(site) == BODY
    assert len(site.ranges) == 4
