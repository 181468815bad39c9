"""A local server with the HTTP interface of the hub, for small repositories."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

HOME = Path(__file__).resolve().parents[3]
PAGE = 3  # entries of a listing at a time, so that listings have several pages
LARGE = 20_000  # bytes from which a file is served by a redirect, as with LFS


@dataclass
class Repository:
    """The files of one commit, the head of `main`."""

    files: dict[str, bytes]
    commit: str
    gated: str | None = None  # "files": only these need access; "all": the listing, too


@dataclass
class Twin:
    """The repositories of the server, and the requests so far."""

    repositories: dict[str, Repository] = field(default_factory=dict)  # by <kind>s/<name>
    requests: list[str] = field(default_factory=list)  # "METHOD path", in order
    resumed: list[int] = field(default_factory=list)  # the offsets at which downloads resumed
    cut: set[str] = field(default_factory=set)  # blobs whose first download stops half-way
    token: str = "hf_twin"  # gives access to gated files
    address: str = ""

    def add(self, kind: str, name: str, files: dict[str, bytes], **options) -> None:
        """Publish a repository."""
        commit = options.pop("commit", hashlib.sha1(name.encode()).hexdigest())
        self.repositories[f"{kind}s/{name}"] = Repository(files, commit, **options)


class Handler(BaseHTTPRequestHandler):
    """The part of the hub's HTTP interface that downloads use."""

    protocol_version = "HTTP/1.1"
    twin: Twin

    def log_message(self, *_):
        """Keep the terminal quiet."""

    def do_HEAD(self):
        self.do_GET()  # `send` keeps the body to itself

    def do_GET(self):
        url = urlsplit(self.path)
        path = unquote(url.path).strip("/")
        self.twin.requests.append(f"{self.command} {path}")
        if match := re.fullmatch(r"blobs/(\w+)", path):
            return self.blob(match[1])
        if match := re.fullmatch(r"api/(\w+/[^/]+/[^/]+)/(revision|tree)/(.+)", path):
            location, method, revision = match.groups()
            rest = parse_qs(url.query).get("cursor", ["0"])[0]
        elif match := re.fullmatch(r"(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            location, method = f"{(match[1] or 'models/').strip('/')}/{match[2]}", "resolve"
            revision, rest = match[3], match[4]
        else:
            return self.refuse(404, "EntryNotFound", "no such page")
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in ("", self.twin.token):
            return self.refuse(401, None, "Invalid credentials in Authorization header")
        repository = self.twin.repositories.get(location)
        if repository is None:  # the hub does not reveal private repositories
            return self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        if revision not in (repository.commit, "main"):
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if repository.gated and not token and (method == "resolve" or repository.gated == "all"):
            return self.refuse(401, "GatedRepo", f"Access to model {location} is restricted.")
        return getattr(self, method)(repository, location, rest)

    def revision(self, repository: Repository, location: str, _: str) -> None:
        names = [{"rfilename": name} for name in repository.files]
        name = location.split("/", 1)[1]
        content = {"_id": "0", "id": name, "sha": repository.commit, "siblings": names}
        self.send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def tree(self, repository: Repository, location: str, cursor: str) -> None:
        entries = []
        for name, content in list(repository.files.items())[int(cursor) :][:PAGE]:
            entry = {"type": "file", "path": name, "size": len(content), "oid": git_id(content)}
            if len(content) >= LARGE:
                sha = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": sha, "size": len(content), "pointerSize": 132}
            entries.append(entry)
        headers = {"Content-Type": "application/json"}
        if (after := int(cursor) + PAGE) < len(repository.files):
            page = f"{self.twin.address}/api/{location}/tree/{repository.commit}"
            headers["Link"] = f'<{page}?recursive=true&cursor={after}>; rel="next"'
        self.send(200, json.dumps(entries).encode(), headers)

    def resolve(self, repository: Repository, location: str, name: str) -> None:
        headers = {"X-Repo-Commit": repository.commit}
        content = repository.files.get(name)
        if content is None:
            return self.refuse(404, "EntryNotFound", "Entry not found", headers)
        if len(content) < LARGE:
            return self.send(200, content, {**headers, "ETag": f'"{git_id(content)}"'})
        sha = hashlib.sha256(content).hexdigest()
        headers |= {"X-Linked-ETag": f'"{sha}"', "X-Linked-Size": str(len(content))}
        # Another host name: the client follows redirects to the same host directly.
        other_host = self.twin.address.replace("127.0.0.1", "localhost")
        return self.send(302, b"", {**headers, "Location": f"{other_host}/blobs/{sha}"})

    def blob(self, sha: str) -> None:
        content = next(
            content
            for repository in self.twin.repositories.values()
            for content in repository.files.values()
            if hashlib.sha256(content).hexdigest() == sha
        )
        headers = {"ETag": f'"{sha}"', "Accept-Ranges": "bytes"}
        if requested := self.headers.get("Range"):
            start = int(requested.removeprefix("bytes=").rstrip("-"))
            self.twin.resumed.append(start)
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            return self.send(206, content[start:], headers)
        if sha in self.twin.cut:
            self.twin.cut.remove(sha)
            self.close_connection = True
            return self.send(200, content[: len(content) // 2], headers, length=len(content))
        return self.send(200, content, headers)

    def refuse(
        self, status: int, code: str | None, message: str, more: dict[str, str] | None = None
    ) -> None:
        headers = {"X-Error-Message": message, **(more or {})}
        if code:
            headers["X-Error-Code"] = code
        self.send(status, json.dumps({"error": message}).encode(), headers)

    def send(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str],
        *,
        length: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def git_id(content: bytes) -> str:
    """The hash of a file in git."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    """An empty hub, stopped after the tests of a file."""
    twin = Twin()
    handler = type("TwinHandler", (Handler,), {"twin": twin})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        twin.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield twin
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """The cache folder of the hub's client, shared by the tests of a file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def call_wxb(twin, cache, tmp_path):
    """A function that runs calls of calls.py against the twin, in `tmp_path`.

    They run in another process, as the address of the hub is read on import.
    """

    def call_wxb(*calls: list[str], **env: str) -> list:
        prefixes = ("HF_", "HUGGING", "TRANSFORMERS_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
        clean |= {"PYTHONPATH": str(HOME), "NO_PROXY": "127.0.0.1,localhost"}
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("calls.py"), json.dumps(calls)],
            cwd=tmp_path,
            env={**clean, "HF_ENDPOINT": twin.address, "HF_HOME": str(cache), **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return call_wxb
