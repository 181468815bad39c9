"""Downloads from a real server on the loopback interface with configurable failures."""

import contextlib
import hashlib
import io
import os
import re
import signal
import subprocess
import sys
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

from wxb.core.errors import WxbError
from wxb.core.params.corpora import Download
from wxb.core.progress import Progress
from wxb.corpora import web

HOME = Path(__file__).resolve().parents[2]
BODY = bytes(range(256)) * 40
PAGE = b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html><body>Please log in</body></html>"
BOTH = {"ETag": '"v1"', "Last-Modified": "Tue, 01 Oct 2024 10:00:00 GMT"}
LAST = BOTH["Last-Modified"]


@dataclass
class Answer:
    """The response to one request; by default the requested bytes."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # of the file from now on
    cut: int | None = None  # bytes before the connection is closed
    stall: int | None = None  # bytes before the server stops sending
    limit: int | None = None  # maximum bytes of a range
    ranges: bool = True
    chunked: bool = False


@dataclass
class Site:
    """The file of the server, and the requests so far."""

    address: str = ""
    body: bytes = BODY
    version: dict[str, str] = field(default_factory=lambda: dict(BOTH))
    answers: list[Answer] = field(default_factory=list)  # to the next requests, in order
    ranges: list[str | None] = field(default_factory=list)  # the ranges, in order
    conditions: list[str | None] = field(default_factory=list)  # If-Range, in order
    encodings: list[str | None] = field(default_factory=list)  # Accept-Encoding, in order
    times: list[float] = field(default_factory=list)
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
        site.conditions.append(self.headers.get("If-Range"))
        site.encodings.append(self.headers.get("Accept-Encoding"))
        site.times.append(time.monotonic())
        answer = site.answers.pop(0) if site.answers else Answer()
        if answer.body is not None:
            site.body = answer.body
        if answer.status != 200:
            self.begin(answer.status, {"Content-Length": "0", **answer.headers})
        elif site.ranges[-1] and answer.ranges and site.conditions[-1] in site.version.values():
            start = int(site.ranges[-1].removeprefix("bytes=").rstrip("-"))
            chunk = site.body[start : answer.limit and start + answer.limit]
            if chunk:
                span = f"bytes {start}-{start + len(chunk) - 1}/{len(site.body)}"
                self.send(206, chunk, {"Content-Range": span}, answer)
            else:
                self.begin(416, {"Content-Length": "0"})
        else:
            self.send(200, site.body, {}, answer)

    def begin(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, status, body, headers, answer):
        form = ("Transfer-Encoding", "chunked")
        if not answer.chunked:
            form = ("Content-Length", str(len(body)))
        version = self.site.version
        self.begin(status, {**dict([form]), **version, **headers, **answer.headers})
        stops = [stop for stop in (answer.cut, answer.stall) if stop is not None]
        sent = body[: min(stops, default=None)]
        if answer.chunked and sent:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent))
        elif not answer.chunked:
            self.wfile.write(sent)
        if answer.stall is not None:
            self.site.released.wait()
        if stops:
            self.close_connection = True
        elif answer.chunked:
            self.wfile.write(b"0\r\n\r\n")


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
        patch.setenv("NO_PROXY", "127.0.0.1")
        site.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield site
        running.shutdown()
        thread.join()


@pytest.fixture
def site(server, tmp_path, monkeypatch) -> Iterator[Site]:
    """The server in its initial state; the working folder is empty."""
    monkeypatch.chdir(tmp_path)
    renew(server)
    yield server
    server.released.set()


def renew(site):
    fresh = Site(address=site.address)
    vars(site).update(vars(fresh))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def fetch(site, path="/a.csv", content=BODY, **changes):
    """The bytes that `fetch` writes; the pinned hash is that of `content`."""
    block = {"address": site.address + path, "sha256": sha256(content), **changes}
    download = Download.model_validate(block)
    web.fetch(download, Path(), label="download@test")
    return Path(download.file).read_bytes()


def cached():
    return {path.name: path.read_bytes() for path in web.FOLDER.glob("*")}


# Complete downloads


def test_a_file_is_written_under_its_name_and_downloaded_once(site, monkeypatch):
    monkeypatch.setattr(Progress, "console", io.StringIO())
    assert fetch(site, "/data/a%20b.csv?download=1") == BODY
    assert Path("a b.csv").exists()
    assert "download@test a b.csv: 100%" in Progress.console.getvalue()
    Path("a b.csv").unlink()
    assert fetch(site, "/data/a%20b.csv?download=1") == BODY
    assert site.ranges == [None]
    assert set(cached()) == {f"{sha256(BODY)}.part"}


def test_a_mirrored_file_with_this_name_and_hash_needs_no_network(site, monkeypatch):
    for name, content in (("a/a.csv", b"other"), ("b/c/a.csv", BODY), ("b.csv", BODY)):
        path = Path("mirror", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    assert fetch(site) == BODY
    assert site.ranges == []
    assert cached() == {}


@pytest.mark.parametrize("files", [{}, {"a.csv": b"other"}, {"b.csv": BODY}])
def test_files_that_are_not_mirrored_are_downloaded(site, monkeypatch, files):
    Path("mirror/a.csv.d/a.csv").mkdir(parents=True)  # a folder of this name is no file
    for name, content in files.items():
        Path("mirror", name).write_bytes(content)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    assert fetch(site) == BODY
    assert site.ranges == [None]


def test_an_unpinned_file_is_not_copied_from_the_mirror(site, monkeypatch):
    Path("mirror").mkdir()
    Path("mirror/a.csv").write_bytes(BODY)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    with pytest.raises(WxbError, match="expected it to be pinned"):
        fetch(site, sha256=None)


def test_an_empty_file_is_downloaded(site):
    site.body = b""
    assert fetch(site, content=b"") == b""


def test_a_redirect_is_followed(site):
    site.answers = [Answer(302, {"Location": "/b.csv"})]
    assert fetch(site) == BODY
    assert Path("a.csv").exists()


def test_bytes_are_not_decompressed(site):
    packed = b"\x1f\x8b not really"
    site.answers = [Answer(headers={"Content-Encoding": "gzip"}, body=packed)]
    assert fetch(site, content=packed) == packed
    assert site.encodings == ["identity"]


def test_an_html_file_may_be_downloaded(site):
    page = {"Content-Type": "text/html"}
    site.answers = [Answer(headers=page, body=PAGE), Answer(headers=page, body=BODY)]
    assert fetch(site, "/page", content=PAGE) == PAGE
    assert fetch(site, "/a.csv") == BODY  # the hash is right, so the wrong type is ignored


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_retried(site, status):
    site.answers = [Answer(status), Answer(status)]
    assert fetch(site) == BODY
    assert len(site.ranges) == 3


@pytest.mark.parametrize(("requested", "longest"), [("1", 120), ("9", 1)])
def test_retry_after_is_followed_within_limits(site, monkeypatch, requested, longest):
    monkeypatch.setattr(web, "LONGEST_WAIT", longest)
    site.answers = [Answer(503, {"Retry-After": requested})]
    assert fetch(site) == BODY
    assert 1 <= site.times[1] - site.times[0] < 8


# Interrupted downloads


def test_a_broken_transfer_resumes_where_it_stopped(site):
    site.answers = [Answer(cut=1000), Answer(cut=500), Answer(limit=70), Answer(cut=0)]
    assert fetch(site) == BODY
    assert site.ranges == [None, *(f"bytes={n}-" for n in (1000, 1500, 1570, 1570))]
    assert site.conditions == [None, *['"v1"'] * 4]


def test_without_ranges_the_whole_file_is_requested_again(site):
    site.answers = [Answer(cut=1000), Answer(ranges=False)]
    assert fetch(site) == BODY
    assert site.ranges == [None, "bytes=1000-"]


def test_without_ranges_a_download_that_never_gets_further_fails(site):
    site.answers = [Answer(cut=cut, ranges=False) for cut in (9, 5, 9, 5, 9, 5, 9, 5, 9, 5)]
    with pytest.raises(WxbError, match=r"found 5 bytes of 10240 .*, 6 times in a row"):
        fetch(site)
    assert len(site.ranges) == 6


@pytest.mark.parametrize(
    ("version", "condition"),
    [
        ({"ETag": 'W/"weak"', "Last-Modified": LAST}, LAST),
        ({"Last-Modified": LAST}, LAST),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
)
def test_a_download_resumes_only_with_a_strong_version(site, version, condition):
    site.version = version
    site.answers = [Answer(cut=1000)]
    assert fetch(site) == BODY
    assert site.conditions == [None, condition]
    assert site.ranges == [None, condition and "bytes=1000-"]


def test_two_versions_of_a_file_are_not_mixed(site):
    changed = Answer(body=BODY[::-1], headers={"ETag": '"v2"'}, ranges=False)
    site.answers = [Answer(cut=1000), changed]
    with pytest.raises(WxbError, match="expected " + sha256(b"other")):
        fetch(site, content=b"other")
    assert cached() == {f"{sha256(BODY[::-1])}.part": BODY[::-1]}


@pytest.mark.parametrize("span", ["bytes 900-10239/10240", "bytes 1000-10239/*", ""])
def test_bytes_of_another_range_are_discarded(site, span):
    site.answers = [Answer(cut=1000), Answer(headers={"Content-Range": span})]
    assert fetch(site) == BODY
    assert site.ranges == [None, "bytes=1000-", None]


def test_a_cached_file_that_is_too_long_is_downloaded_again(site):
    part = web.FOLDER / f"{sha256(BODY)}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY + b"x")
    part.with_suffix(".version").write_text('"v1"')
    assert fetch(site) == BODY
    assert site.ranges == [f"bytes={len(BODY) + 1}-", None]


def test_a_complete_cached_file_is_not_requested(site):
    part = web.FOLDER / f"{sha256(BODY)}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY)
    assert fetch(site) == BODY
    assert site.ranges == []


def test_a_server_that_stops_sending_is_retried(site, monkeypatch):
    monkeypatch.setattr(web, "TIMEOUT", 0.2)
    site.answers = [Answer(stall=1000), Answer(stall=0)]
    assert fetch(site) == BODY
    assert site.ranges == [None, "bytes=1000-", "bytes=1000-"]


def test_a_killed_download_resumes(site, tmp_path):
    site.answers = [Answer(stall=3000)]
    program = (
        "import sys; from pathlib import Path; from wxb.corpora import web;"
        "from wxb.core.params.corpora import Download;"
        "web.fetch(Download(address=sys.argv[1], sha256=sys.argv[2]), Path(), label='x')"
    )
    part = web.FOLDER / f"{sha256(BODY)}.part"
    process = subprocess.Popen(
        [sys.executable, "-c", program, f"{site.address}/a.csv", sha256(BODY)],
        env={**os.environ, "PYTHONPATH": str(HOME)},
    )
    deadline = time.monotonic() + web.TIMEOUT - 5
    while not (part.exists() and part.stat().st_size == 3000):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert not Path("a.csv").exists()
    assert fetch(site) == BODY
    assert site.ranges == [None, "bytes=3000-"]


def test_concurrent_downloads_of_a_file_request_it_once(site):
    site.answers = [Answer(stall=1000)]
    with contextlib.ExitStack() as stack:
        stack.callback(site.released.set)
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
    for thread in threads:
        thread.join()
    assert results == [BODY, BODY]
    assert site.ranges == [None, "bytes=1000-"]


VERSIONS = st.sampled_from(
    [BOTH, {"ETag": '"v1"'}, {"ETag": 'W/"v1"'}, {"Last-Modified": LAST}, {}]
)
FAILURES = st.one_of(
    st.builds(Answer, cut=st.integers(0, 60), ranges=st.booleans(), chunked=st.booleans()),
    st.builds(Answer, limit=st.integers(1, 20), chunked=st.booleans()),
    st.builds(Answer, status=st.sampled_from([416, 429, 500, 503])),
)


@settings(max_examples=150)
@given(st.binary(max_size=50), VERSIONS, st.lists(FAILURES, max_size=6))
def test_a_body_in_any_chunks_is_downloaded_completely(server, body, version, answers):
    renew(server)
    server.body, server.version, server.answers = body, version, answers
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
    ):
        patch.setattr(web, "RETRIES", 12)  # a chunk may also need a request for the rest
        assert fetch(server, content=body) == body


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=10, max_size=40))
def test_a_transfer_that_gets_further_is_retried_without_limit(server, cuts):
    renew(server)
    server.body, server.answers = BODY[: sum(cuts)], [Answer(cut=cut) for cut in cuts]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        assert fetch(server, content=server.body) == server.body
    starts = [sum(cuts[:n]) for n in range(1, len(cuts))]
    assert server.ranges[: len(cuts)] == [None, *(f"bytes={start}-" for start in starts)]


# Errors


NOTHING = "expected the file: correct `address`"
LOGIN = "expected a public file, or a login for its host in ~/.netrc"
LATER = ", 3 times; try again later"
SHORT = r"found 100 bytes of 10240 \(ProtocolError: [^()]*\([^()]*\)\), 3 times in a row; run it"
ERRORS = {
    "missing": ([Answer(404)], f"found status 404 Not Found; {NOTHING}"),
    "gone": ([Answer(410)], f"found status 410 Gone; {NOTHING}"),
    "empty": ([Answer(204)], f"found status 204 No Content; {NOTHING}"),
    "unrequested range": (
        [Answer(206)] * 3,
        "found status 206 and not the bytes from 0 on, 3 times",
    ),
    "secret": ([Answer(403)], f"found status 403 Forbidden; {LOGIN}"),
    "login": ([Answer(401)], f"found status 401 Unauthorized; {LOGIN}"),
    "busy": ([Answer(503)] * 3, f"found status 503 Service Unavailable{LATER}"),
    "throttled": ([Answer(429)] * 3, f"found status 429 Too Many Requests{LATER}"),
    "short": ([Answer(cut=100), *[Answer(cut=0)] * 2], SHORT),
    "short chunks": (
        [Answer(cut=9, chunked=True), *[Answer(cut=9, chunked=True, ranges=False)] * 2],
        r"found 9 bytes of an unknown number \(ProtocolError: .*\), 3 times in a row",
    ),
    "circle": ([Answer(302, {"Location": "/a.csv"})] * 9, "found more than 3 redirects; correct"),
    "leaving": (
        [Answer(302, {"Location": "ftp://127.0.0.1/a.csv"})],
        "found no answer .InvalidSchema: .*ftp://127.0.0.1/a.csv.*; correct `address`",
    ),
    "silent": ([Answer(stall=0)] * 3, "found 0 bytes of 10240 .ReadTimeoutError: .* 3 times in"),
}


@pytest.fixture
def impatient(monkeypatch):
    """A client that gives up soon."""
    monkeypatch.setattr(web, "RETRIES", 2)
    monkeypatch.setattr(web, "TIMEOUT", 0.2)
    monkeypatch.setattr(web, "REDIRECTS", 3)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("answers", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_have_one_line(site, answers, message):
    site.answers = list(answers)
    with pytest.raises(WxbError, match=f"^{site.address}/a.csv: {message}") as raised:
        fetch(site)
    assert "\n" not in str(raised.value)
    assert not Path("a.csv").exists()
    assert len(site.ranges) in (len(answers), 4)  # 4: redirects


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://nowhere.invalid/", "found no host of this name; correct `address`, or check"),
        ("http://127.0.0.1:9/", "found no answer .NewConnection.* refused.*check the network"),
        ("https://127.0.0.1:{port}/", "found no trusted connection .SSL.* set REQUESTS_CA_BUN"),
    ],
)
def test_an_unreachable_server_is_an_error(site, caplog, address, message):
    address = address.format(port=site.address.rsplit(":", 1)[1])
    with pytest.raises(WxbError, match=f"^{address}a.csv: {message}") as raised:
        fetch(Site(address.rstrip("/")))
    assert "\n" not in str(raised.value)
    tries = [line for line in caplog.messages if line.startswith("Retrying")]
    assert len(tries) == (0 if address.startswith("https") else 2)  # no retry of certificates


@pytest.mark.usefixtures("impatient")
def test_a_server_that_never_answers_is_an_error(site, monkeypatch):
    monkeypatch.setattr(Handler, "begin", lambda *_: site.released.wait())
    with pytest.raises(WxbError, match=r"found no answer within 0\.2 s, 3 times; try again later"):
        fetch(site)
    assert site.times[-1] - site.times[0] < 5


def test_a_proxy_of_the_environment_is_used(site, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", site.address)
    assert fetch(Site("http://nowhere.invalid")) == BODY
    assert site.ranges == [None]


def test_after_a_wrong_hash_the_right_one_needs_no_second_download(site):
    digest = sha256(BODY)
    with pytest.raises(WxbError, match=f"found sha256 {digest}; expected {sha256(b'x')}: if .wxb"):
        fetch(site, content=b"x")
    assert not Path("a.csv").exists()
    assert cached() == {f"{digest}.part": BODY}
    assert fetch(site) == BODY
    assert len(site.ranges) == 1


def test_after_a_missing_hash_adding_it_needs_no_second_download(site):
    site.answers = [Answer(cut=1000)]
    with pytest.raises(WxbError, match="expected it to be pinned: if ") as raised:
        fetch(site, sha256=None)
    digest = re.search("add `sha256: (.*)`", str(raised.value))[1]
    assert fetch(site, sha256=digest) == BODY
    assert site.ranges == [None, "bytes=1000-"]


def test_a_partial_download_is_not_resumed_from_another_address(site, monkeypatch):
    monkeypatch.setattr(web, "RETRIES", 0)
    site.answers = [Answer(cut=1000)]
    with pytest.raises(WxbError, match="found 1000 bytes of 10240"):
        fetch(site, "/a.csv", sha256=None)
    for path in ("/b.csv", "/a.csv"):
        with pytest.raises(WxbError, match=f"add `sha256: {sha256(BODY)}`"):
            fetch(site, path, sha256=None)
    assert site.ranges == [None, None, "bytes=1000-"]


def test_an_html_file_without_a_hash_reports_its_hash(site):
    site.answers = [Answer(headers={"Content-Type": "text/html"}, body=PAGE)]
    with pytest.raises(WxbError, match=f"add `sha256: {sha256(PAGE)}`"):
        fetch(site, "/page.html", sha256=None)


@pytest.mark.parametrize("pinned", [sha256(BODY), None])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (PAGE, "application/octet-stream"),
        (b"<HTML>", "text/csv"),
        (b"Log in", "text/html; charset=utf-8"),
    ],
)
def test_an_html_page_instead_of_data_is_an_error(site, body, kind, pinned):
    site.answers = [Answer(headers={"Content-Type": kind}, body=body)]
    with pytest.raises(WxbError, match="found an HTML page; expected a file of data: open the"):
        fetch(site, sha256=pinned)
    assert cached() == {}
