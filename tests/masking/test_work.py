"""Files in, files out: in order, in batches, after their mapping, and never over the input."""

import io
import json
from pathlib import Path

import pytest

from tests.masking.rules import Rules
from wxb.errors import WxbError
from wxb.masking import work
from wxb.masking.documents import Document
from wxb.masking.mapping import Mapping
from wxb.masking.masker import Masker, Report
from wxb.masking.operators import read
from wxb.masking.sources import Layout
from wxb.masking.work import Part, Sink, Source


def written(part, edits):
    return part.document.written(edits)


def run(folder, output, layout=None, mapping=None, sink=None):
    masker = Masker(Rules(), read("number" if mapping else "replace"), mapping)
    report = Report("test")
    with sink or Sink() as open_sink:
        stream = work.parts(work.sources(folder, output), layout or Layout())
        change = lambda texts: masker.edits(texts, report)  # noqa: E731
        work.process(stream, change, written, open_sink, mapping)
    return report


@pytest.fixture
def folder(tmp_path):
    for name, content in {
        "a.txt": b"Ann\r\n",
        "sub/b.jsonl": b'{"text": "Bob"}\n',
        "sub/c.csv": b"text\nEve 5\n",
        "sub/empty.txt": b"",
        ".hidden": b"Kim",
        ".git/x": b"Kim",
    }.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "in"


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_folder_keeps_its_names_and_formats(folder, tmp_path):
    before = contents(folder)
    report = run(folder, tmp_path / "out")
    assert contents(tmp_path / "out") == {
        "a.txt": b"<NAME>\r\n",
        "sub/b.jsonl": b'{"text": "<NAME>"}\n',
        "sub/c.csv": b"text\n<NAME> <AGE>\n",
        "sub/empty.txt": b"",
    }
    assert report.documents == 3
    assert contents(folder) == before


def test_documents_of_many_files_share_batches(folder, tmp_path):
    for number in range(1000):
        (folder / f"{number:04}.txt").write_text(f"Ann {number}")
    masker = Masker(Rules(), read("replace"))
    with Sink() as sink:
        stream = work.parts(work.sources(folder, tmp_path / "out"), Layout())
        work.process(stream, lambda texts: masker.edits(texts, Report("")), written, sink)
    assert len(masker.recognizer.asked) < 12
    assert (tmp_path / "out/0999.txt").read_text() == "<NAME> <AGE>"


@pytest.mark.parametrize("output", ["in", "in/out", ".", "link"])
def test_nothing_is_written_over_the_input(folder, tmp_path, output):
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(WxbError, match="choose a place apart from it"):
        work.sources(folder, tmp_path / output)


def test_a_file_is_not_written_over_itself(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder / "a.txt")
    (tmp_path / "hard").hardlink_to(folder / "a.txt")
    for output in (folder / "a.txt", tmp_path / "link", tmp_path / "hard"):
        with pytest.raises(WxbError, match="is the input itself"):
            work.sources(folder / "a.txt", output)
    with pytest.raises(WxbError, match="found a folder or device"):
        work.sources(folder / "a.txt", tmp_path)


def test_a_folder_without_files_is_an_error(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/.hidden").touch()
    with pytest.raises(WxbError, match="holds no files"):
        work.sources(tmp_path / "in", tmp_path / "out")


def test_a_broken_file_stops_the_work_and_is_not_half_written(folder, tmp_path):
    (folder / "z.txt").write_bytes(b"Zoe\n\xff")
    with pytest.raises(WxbError, match=r"z\.txt: line 2: byte 0xff"):
        run(folder, tmp_path / "out", Layout(lines=True))
    left = [*(tmp_path / "out").rglob("*")] if (tmp_path / "out").exists() else []
    assert not [path for path in left if path.name.startswith((".", "z"))]


def test_an_interrupted_file_is_not_half_written(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ann\n" * 10_000)
    seen = []

    def change(texts):
        seen.append(len(texts))
        if len(seen) == 5:
            raise KeyboardInterrupt
        return [[] for _ in texts]

    stream = work.parts([Source(path, "a", tmp_path / "out.txt")], Layout(lines=True))
    with pytest.raises(KeyboardInterrupt), Sink() as sink:
        work.process(stream, change, written, sink)
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]


class Watching(Sink):
    """Checks, before every write, that the file of the mapping tells all its placeholders."""

    def __init__(self, path):
        super().__init__()
        self.path, self.writes, self.saves = path, 0, []

    def write(self, source, content):
        inode = self.path.stat().st_ino
        if inode != getattr(self, "inode", None):
            self.inode, self.known = inode, json.loads(self.path.read_text())["placeholders"]
            self.saves.append(len(self.known))
        self.writes += 1
        assert content.decode().removesuffix("\n") in self.known


def test_a_document_is_written_only_after_its_mapping(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{number}\n" for number in range(20_000)))
    sink = Watching(tmp_path / "m.json")
    run(path, tmp_path / "out.txt", Layout(lines=True), Mapping(sink.path), sink)
    assert sink.writes == 20_000
    # The mapping is written whole, so it must not be written for every batch.
    assert len(sink.saves) < 20_000 / work.DOCUMENTS


def test_only_a_batch_is_read_ahead():
    read = []

    def stream():
        source = Source(None, "endless", None)
        for number in range(10**9):
            read.append(number)
            yield Part(source, Document("x" * (50_000 if number > 1000 else 1)), number)

    batches = work.batches(stream())
    assert len(next(batches)) == len(read) == work.DOCUMENTS
    for _ in range(3):
        next(batches)
    assert sum(len(part.document.text) for part in next(batches)) <= work.CHARACTERS + 50_000


def test_standard_output_gets_the_bytes(folder, monkeypatch):
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", type("Stdout", (), {"buffer": buffer}))
    run(folder / "a.txt", None)
    assert buffer.getvalue() == b"<NAME>\r\n"


def test_one_output_ends_once(folder):
    stream = work.parts(work.sources(folder, Path("x"), one_output=True), Layout())
    ends = [part for part in work.joined(stream) if part.document is None]
    assert len(ends) == 1
