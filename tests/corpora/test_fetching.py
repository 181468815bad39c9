import hashlib
import json
import os

import pytest

from tests.repository import write
from wxb.core.errors import WxbError
from wxb.core.params.corpora import Corpus
from wxb.corpora import fetching, web

GENERATOR = """
def generate(*, labelled, unlabelled, languages, seed):
    if "xx" in languages:
        raise ValueError("unknown language xx")
    return ({"id": i, "seed": seed} for i in range(labelled + unlabelled))
"""


@pytest.fixture
def project(cwd, monkeypatch):
    """The working folder, and a raw folder in it."""
    monkeypatch.syspath_prepend(cwd)
    (cwd / "raw").mkdir()
    return cwd


def fetch(project, path, **changes):
    corpus = Corpus.model_validate(
        {"task": "ner", "path": path, "split": {"test": 0.2, "valid": 0.1}, **changes}
    )
    fetching.fetch(corpus, project / "raw", seed=7, caption="download@test")
    return sorted(p.relative_to(project / "raw").as_posix() for p in project.rglob("raw/**/*"))


@pytest.mark.parametrize(
    ("path", "files"), [("mine", ["a.jsonl", "sub", "sub/b.csv"]), ("mine/a.jsonl", ["a.jsonl"])]
)
def test_a_file_or_folder_is_copied(project, path, files):
    write("mine/a.jsonl", b"\xff\xfe\r\n")
    write("mine/sub/b.csv", "")
    assert fetch(project, path) == files
    assert (project / "raw/a.jsonl").read_bytes() == b"\xff\xfe\r\n"


@pytest.mark.parametrize(
    "path", ["generator_a.py", "./generator_b.py", "generator_c", "sub/generator_d.py"]
)
def test_a_generator_is_a_module_or_package(project, path):
    write(path if path.endswith(".py") else f"{path}/__init__.py", GENERATOR)
    options = {"labelled": 2, "unlabelled": 1, "languages": ["en"]}
    assert fetch(project, path, generate=options) == ["records.jsonl"]
    lines = (project / "raw/records.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": i, "seed": 7} for i in range(3)]


@pytest.mark.parametrize(
    ("path", "content", "languages", "message"),
    [
        ("bad_a.py", "", "en", "has no attribute 'generate'; expected a Python module"),
        ("bad_b.py", "import nowhere_at_all", "en", "No module named 'nowhere_at_all'; expected"),
        ("bad_c.py", GENERATOR, "xx", "unknown language xx; expected a Python module"),
        ("../bad_d.py", GENERATOR, "en", "expected a Python module"),
    ],
)
def test_an_invalid_generator_is_an_error(project, path, content, languages, message):
    (project / path).write_text(content)
    with pytest.raises(WxbError, match=f"^{path}: .*{message}"):
        fetch(project, path, generate={"labelled": 2, "languages": [languages]})
    assert not list((project / "raw").iterdir())


def test_a_generator_may_find_a_fault_while_it_draws(project):
    (project / "lazy.py").write_text(GENERATOR.replace("return", "yield from"))
    with pytest.raises(WxbError, match=r"^lazy\.py: unknown language xx; correct `generate`"):
        fetch(project, "lazy.py", generate={"labelled": 2, "languages": ["xx"]})


def test_urls_are_downloaded_instead_of_path(project):
    (project / "source.md").touch()
    files = {"train.csv": b"a", "valid.csv": b"b", "test.csv": b"c"}
    urls = []
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        # A cached file needs no network.
        write(web.FOLDER / f"{digest}.part", content)
        urls.append({"address": f"https://nowhere.invalid/{name}", "sha256": digest})
    assert fetch(project, "source.md", urls=urls) == sorted(files)
    assert {p.name: p.read_bytes() for p in (project / "raw").iterdir()} == files


def test_a_missing_path_is_an_error(project):
    with pytest.raises(WxbError, match=r"^mine\.json: no such file or folder; correct `path`"):
        fetch(project, "mine.json")


def test_a_generator_may_write_files_beside_its_records(project):
    (project / "generator_e.py").write_text(
        "def generate(*, labelled, unlabelled, languages, seed, folder):\n"
        "    (folder / 'sound').write_bytes(b'1')\n"
        "    return [{'path': 'sound'}]\n"
    )
    options = {"labelled": 1, "languages": ["en"]}
    assert fetch(project, "generator_e.py", generate=options) == ["records.jsonl", "sound"]


@pytest.mark.parametrize("fault", ["lost link", "pipe", "loop"])
def test_a_folder_has_files_and_links_to_some(project, fault):
    source, other = project / "source", project / "other"
    source.mkdir()
    write(other / "b.json", [])
    (source / "file.json").symlink_to(other / "b.json")
    (source / "folder").symlink_to(other)
    assert fetch(project, "source") == ["file.json", "folder", "folder/b.json"]
    if fault == "pipe":
        os.mkfifo(source / "x")
    else:
        (source / "x").symlink_to(source if fault == "loop" else "nowhere")
    with pytest.raises(WxbError, match=r"^source/x.*: cannot be copied"):
        fetch(project, "source")
