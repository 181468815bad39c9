"""Downloads from a real server on the loopback interface that answers as badly as it is told to."""

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
    """What the server does with one request; by default all that was asked for."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # from now on
    cut: int | None = None  # bytes after which the connection breaks off
    stall: int | None = None  # bytes after which nothing comes any more
    limit: int | None = None  # bytes of a range at most
    ranges: bool = True
    chunked: bool = False


@dataclass
class Site:
    """What the server has, and what it was asked for."""

    address: str = ""
    body: bytes = BODY
    version: dict[str, str] = field(default_factory=lambda: dict(BOTH))
    answers: list[Answer] = field(default_factory=list)  # to the next requests, in order
    asked: list[str | None] = field(default_factory=list)  # the ranges, in order
    conditions: list[str | None] = field(default_factory=list)  # If-Range, in order
    encodings: list[str | None] = field(default_factory=list)  # Accept-Encoding, in order
    times: list[float] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)  # ends what stalls


class Handler(BaseHTTPRequestHandler):
    """A file server with the manners of the next answer."""

    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *_):
        """Keep the terminal quiet."""

    def do_GET(self):
        site = self.site
        site.asked.append(self.headers.get("Range"))
        site.conditions.append(self.headers.get("If-Range"))
        site.encodings.append(self.headers.get("Accept-Encoding"))
        site.times.append(time.monotonic())
        answer = site.answers.pop(0) if site.answers else Answer()
        if answer.body is not None:
            site.body = answer.body
        if answer.status != 200:
            self.begin(answer.status, {"Content-Length": "0", **answer.headers})
        elif site.asked[-1] and answer.ranges and site.conditions[-1] in site.version.values():
            start = int(site.asked[-1].removeprefix("bytes=").rstrip("-"))
            piece = site.body[start : answer.limit and start + answer.limit]
            if piece:
                span = f"bytes {start}-{start + len(piece) - 1}/{len(site.body)}"
                self.send(206, piece, {"Content-Range": span}, answer)
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
    """The server as if new; the working folder is empty."""
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
    """The bytes that arrive in the working folder; `content` is what is pinned."""
    made = {"address": site.address + path, "sha256": sha256(content), **changes}
    download = Download.model_validate(made)
    web.fetch(download, Path(), label="download@test")
    return Path(download.file).read_bytes()


def kept():
    return {path.name: path.read_bytes() for path in web.FOLDER.glob("*")}


# What arrives


def test_a_file_arrives_under_its_name_and_is_asked_for_once(site, monkeypatch):
    monkeypatch.setattr(Progress, "console", io.StringIO())
    assert fetch(site, "/data/a%20b.csv?download=1") == BODY
    assert Path("a b.csv").exists()
    assert "download@test a b.csv: 100%" in Progress.console.getvalue()
    Path("a b.csv").unlink()
    assert fetch(site, "/data/a%20b.csv?download=1") == BODY
    assert site.asked == [None]
    assert set(kept()) == {f"{sha256(BODY)}.part"}


def test_a_file_of_the_mirror_is_found_by_name_and_hash_and_the_network_is_not_asked(
    site, monkeypatch
):
    for name, content in (("a/a.csv", b"other"), ("b/c/a.csv", BODY), ("b.csv", BODY)):
        path = Path("mirror", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    assert fetch(site) == BODY
    assert site.asked == []
    assert kept() == {}


@pytest.mark.parametrize("there", [{}, {"a.csv": b"other"}, {"b.csv": BODY}])
def test_what_the_mirror_lacks_comes_from_the_network(site, monkeypatch, there):
    Path("mirror/a.csv.d/a.csv").mkdir(parents=True)  # a folder of this name is no file
    for name, content in there.items():
        Path("mirror", name).write_bytes(content)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    assert fetch(site) == BODY
    assert site.asked == [None]


def test_an_unpinned_file_never_comes_from_the_mirror(site, monkeypatch):
    Path("mirror").mkdir()
    Path("mirror/a.csv").write_bytes(BODY)
    monkeypatch.setenv("WXB_DOWNLOADS", "mirror")
    with pytest.raises(WxbError, match="expected it to be pinned"):
        fetch(site, sha256=None)


def test_an_empty_file_arrives(site):
    site.body = b""
    assert fetch(site, content=b"") == b""


def test_a_redirect_is_followed(site):
    site.answers = [Answer(302, {"Location": "/b.csv"})]
    assert fetch(site) == BODY
    assert Path("a.csv").exists()


def test_bytes_come_as_they_are_sent(site):
    packed = b"\x1f\x8b not really"
    site.answers = [Answer(headers={"Content-Encoding": "gzip"}, body=packed)]
    assert fetch(site, content=packed) == packed
    assert site.encodings == ["identity"]


def test_a_page_that_is_asked_for_arrives(site):
    page = {"Content-Type": "text/html"}
    site.answers = [Answer(headers=page, body=PAGE), Answer(headers=page, body=BODY)]
    assert fetch(site, "/page", content=PAGE) == PAGE
    assert fetch(site, "/a.csv") == BODY  # the hash is right: the server tells a wrong type


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(site, status):
    site.answers = [Answer(status), Answer(status)]
    assert fetch(site) == BODY
    assert len(site.asked) == 3


@pytest.mark.parametrize(("asked", "longest"), [("1", 120), ("9", 1)])
def test_a_server_says_how_long_to_wait_within_limits(site, monkeypatch, asked, longest):
    monkeypatch.setattr(web, "LONGEST_WAIT", longest)
    site.answers = [Answer(503, {"Retry-After": asked})]
    assert fetch(site) == BODY
    assert 1 <= site.times[1] - site.times[0] < 8


# What breaks off


def test_a_broken_transfer_goes_on_where_it_stopped(site):
    site.answers = [Answer(cut=1000), Answer(cut=500), Answer(limit=70), Answer(cut=0)]
    assert fetch(site) == BODY
    assert site.asked == [None, *(f"bytes={n}-" for n in (1000, 1500, 1570, 1570))]
    assert site.conditions == [None, *['"v1"'] * 4]


def test_a_server_without_ranges_is_asked_for_all_again(site):
    site.answers = [Answer(cut=1000), Answer(ranges=False)]
    assert fetch(site) == BODY
    assert site.asked == [None, "bytes=1000-"]


def test_a_server_without_ranges_that_never_gets_further_is_given_up(site):
    site.answers = [Answer(cut=cut, ranges=False) for cut in (9, 5, 9, 5, 9, 5, 9, 5, 9, 5)]
    with pytest.raises(WxbError, match=r"found 5 bytes of 10240 .*, 6 times in a row"):
        fetch(site)
    assert len(site.asked) == 6


@pytest.mark.parametrize(
    ("version", "condition"),
    [
        ({"ETag": 'W/"weak"', "Last-Modified": LAST}, LAST),
        ({"Last-Modified": LAST}, LAST),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
)
def test_only_what_tells_versions_apart_is_gone_on_from(site, version, condition):
    site.version = version
    site.answers = [Answer(cut=1000)]
    assert fetch(site) == BODY
    assert site.conditions == [None, condition]
    assert site.asked == [None, condition and "bytes=1000-"]


def test_a_file_that_changed_meanwhile_is_not_mixed(site):
    changed = Answer(body=BODY[::-1], headers={"ETag": '"v2"'}, ranges=False)
    site.answers = [Answer(cut=1000), changed]
    with pytest.raises(WxbError, match="expected " + sha256(b"other")):
        fetch(site, content=b"other")
    assert kept() == {f"{sha256(BODY[::-1])}.part": BODY[::-1]}


@pytest.mark.parametrize("span", ["bytes 900-10239/10240", "bytes 1000-10239/*", ""])
def test_bytes_from_elsewhere_are_not_taken(site, span):
    site.answers = [Answer(cut=1000), Answer(headers={"Content-Range": span})]
    assert fetch(site) == BODY
    assert site.asked == [None, "bytes=1000-", None]


def test_more_than_the_file_has_is_begun_anew(site):
    part = web.FOLDER / f"{sha256(BODY)}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY + b"x")
    part.with_suffix(".version").write_text('"v1"')
    assert fetch(site) == BODY
    assert site.asked == [f"bytes={len(BODY) + 1}-", None]


def test_a_file_that_is_already_complete_is_not_asked_for(site):
    part = web.FOLDER / f"{sha256(BODY)}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY)
    assert fetch(site) == BODY
    assert site.asked == []


def test_a_server_that_falls_silent_is_asked_again(site, monkeypatch):
    monkeypatch.setattr(web, "TIMEOUT", 0.2)
    site.answers = [Answer(stall=1000), Answer(stall=0)]
    assert fetch(site) == BODY
    assert site.asked == [None, "bytes=1000-", "bytes=1000-"]


def test_a_killed_download_goes_on(site, tmp_path):
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
    assert site.asked == [None, "bytes=3000-"]


def test_two_that_want_the_same_file_ask_once(site):
    site.answers = [Answer(stall=1000)]
    with contextlib.ExitStack() as stack:
        stack.callback(site.released.set)
        got = []
        both = [threading.Thread(target=lambda: got.append(fetch(site))) for _ in range(2)]
        for thread in both:
            thread.start()
        deadline = time.monotonic() + 60
        while not site.asked:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
        assert site.asked == [None]
    for thread in both:
        thread.join()
    assert got == [BODY, BODY]
    assert site.asked == [None, "bytes=1000-"]


VERSIONS = st.sampled_from(
    [BOTH, {"ETag": '"v1"'}, {"ETag": 'W/"v1"'}, {"Last-Modified": LAST}, {}]
)
PIECES = st.one_of(
    st.builds(Answer, cut=st.integers(0, 60), ranges=st.booleans(), chunked=st.booleans()),
    st.builds(Answer, limit=st.integers(1, 20), chunked=st.booleans()),
    st.builds(Answer, status=st.sampled_from([416, 429, 500, 503])),
)


@settings(max_examples=150)
@given(st.binary(max_size=50), VERSIONS, st.lists(PIECES, max_size=6))
def test_whatever_pieces_a_body_is_cut_into_it_arrives_whole(server, body, version, answers):
    renew(server)
    server.body, server.version, server.answers = body, version, answers
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
    ):
        patch.setattr(web, "RETRIES", 12)  # a piece may also cost a request for what follows it
        assert fetch(server, content=body) == body


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=10, max_size=40))
def test_a_transfer_that_gets_on_may_break_as_often_as_it_likes(server, cuts):
    renew(server)
    server.body, server.answers = BODY[: sum(cuts)], [Answer(cut=cut) for cut in cuts]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        assert fetch(server, content=server.body) == server.body
    starts = [sum(cuts[:n]) for n in range(1, len(cuts))]
    assert server.asked[: len(cuts)] == [None, *(f"bytes={start}-" for start in starts)]


# What is told when it goes wrong


NOTHING = "expected the file: correct `address`"
LOGIN = "expected a file that all may read, or a login for its host in ~/.netrc"
LATER = ", 3 times; try again later"
SHORT = r"found 100 bytes of 10240 \(ProtocolError: [^()]*\([^()]*\)\), 3 times in a row; run it"
TOLD = {
    "missing": ([Answer(404)], f"found status 404 Not Found; {NOTHING}"),
    "gone": ([Answer(410)], f"found status 410 Gone; {NOTHING}"),
    "empty": ([Answer(204)], f"found status 204 No Content; {NOTHING}"),
    "unasked": ([Answer(206)] * 3, "found status 206 and not the bytes from 0 on, 3 times"),
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
@pytest.mark.parametrize(("answers", "told"), TOLD.values(), ids=TOLD)
def test_what_is_wrong_is_told_in_a_line_with_what_to_do(site, answers, told):
    site.answers = list(answers)
    with pytest.raises(WxbError, match=f"^{site.address}/a.csv: {told}") as raised:
        fetch(site)
    assert "\n" not in str(raised.value)
    assert not Path("a.csv").exists()
    assert len(site.asked) in (len(answers), 4)  # 4: of the redirects


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://nowhere.invalid/", "found no host of this name; correct `address`, or see to"),
        ("http://127.0.0.1:9/", "found no answer .NewConnection.* refused.*see to the network"),
        ("https://127.0.0.1:{port}/", "found no connection to trust .SSL.* set REQUESTS_CA_BUN"),
    ],
)
def test_a_server_that_is_not_there_is_told(site, caplog, address, told):
    address = address.format(port=site.address.rsplit(":", 1)[1])
    with pytest.raises(WxbError, match=f"^{address}a.csv: {told}") as raised:
        fetch(Site(address.rstrip("/")))
    assert "\n" not in str(raised.value)
    tries = [line for line in caplog.messages if line.startswith("Retrying")]
    assert len(tries) == (0 if address.startswith("https") else 2)  # trust does not come with time


@pytest.mark.usefixtures("impatient")
def test_a_server_that_never_answers_is_told(site, monkeypatch):
    monkeypatch.setattr(Handler, "begin", lambda *_: site.released.wait())
    with pytest.raises(WxbError, match=r"found no answer within 0\.2 s, 3 times; try again later"):
        fetch(site)
    assert site.times[-1] - site.times[0] < 5


def test_a_proxy_of_the_environment_is_used(site, monkeypatch):
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", site.address)
    assert fetch(Site("http://nowhere.invalid")) == BODY
    assert site.asked == [None]


def test_a_wrong_hash_is_told_and_pasting_the_right_one_needs_no_second_download(site):
    found = sha256(BODY)
    with pytest.raises(WxbError, match=f"found sha256 {found}; expected {sha256(b'x')}: if .wxb"):
        fetch(site, content=b"x")
    assert not Path("a.csv").exists()
    assert kept() == {f"{found}.part": BODY}
    assert fetch(site) == BODY
    assert len(site.asked) == 1


def test_a_missing_hash_is_told_and_pasting_it_needs_no_second_download(site):
    site.answers = [Answer(cut=1000)]
    with pytest.raises(WxbError, match="expected it to be pinned: if ") as raised:
        fetch(site, sha256=None)
    found = re.search("add `sha256: (.*)`", str(raised.value))[1]
    assert fetch(site, sha256=found) == BODY
    assert site.asked == [None, "bytes=1000-"]


def test_what_came_of_one_address_is_not_gone_on_from_at_another(site, monkeypatch):
    monkeypatch.setattr(web, "RETRIES", 0)
    site.answers = [Answer(cut=1000)]
    with pytest.raises(WxbError, match="found 1000 bytes of 10240"):
        fetch(site, "/a.csv", sha256=None)
    for path in ("/b.csv", "/a.csv"):
        with pytest.raises(WxbError, match=f"add `sha256: {sha256(BODY)}`"):
            fetch(site, path, sha256=None)
    assert site.asked == [None, None, "bytes=1000-"]


def test_a_page_that_is_wanted_is_told_by_its_hash(site):
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
def test_a_page_in_place_of_data_is_told(site, body, kind, pinned):
    site.answers = [Answer(headers={"Content-Type": kind}, body=body)]
    with pytest.raises(WxbError, match="found an HTML page; expected a file of data: open the"):
        fetch(site, sha256=pinned)
    assert kept() == {}
