"""Documents are written in order, in batches and after their mapping."""

import io
import json
from pathlib import Path

import pytest

from tests.masking.rules import Rules
from tests.masking.running import write_files
from wxb.core.errors import WxbError
from wxb.masking import work
from wxb.masking.documents import Document
from wxb.masking.folders import Source, find_inputs
from wxb.masking.mapping import Mapping
from wxb.masking.masker import Masker, Report
from wxb.masking.operators import read_operators
from wxb.masking.sources import Layout
from wxb.masking.work import Part, Sink


def emit(part, edits):
    return part.document.to_bytes(edits)


def run(folder, output, layout=None, mapping=None, sink=None):
    masker = Masker(Rules(), read_operators("number" if mapping else "replace"), mapping)
    report = Report("test")
    with sink or Sink() as open_sink:
        stream = work.read_parts(find_inputs(folder, output).sources, layout or Layout())
        change = lambda texts: masker.edits(texts, report)  # noqa: E731
        work.process(stream, change, emit, open_sink, mapping)
    return report


def keep(texts):
    return [[] for _ in texts]


@pytest.fixture
def folder(tmp_path):
    files = {
        "a.txt": b"Ann\r\n",
        "sub/b.jsonl": b'{"text": "Bob"}\n',
        "sub/c.csv": b"text\nEve 5\n",
        "sub/empty.txt": b"",
        ".hidden": b"Kim",
        ".git/x": b"Kim",
    }
    return write_files(tmp_path / "in", files)


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
    masker = Masker(Rules(), read_operators("replace"))
    with Sink() as sink:
        stream = work.read_parts(find_inputs(folder, tmp_path / "out").sources, Layout())
        work.process(stream, lambda texts: masker.edits(texts, Report("")), emit, sink)
    assert len(masker.recognizer.batch_sizes) < 12
    assert (tmp_path / "out/0999.txt").read_text() == "<NAME> <AGE>"


def test_a_broken_file_is_an_error_and_not_published(folder, tmp_path):
    (folder / "z.txt").write_bytes(b"Zoe\n\xff")
    with pytest.raises(WxbError, match=r"z\.txt: line 2: byte 0xff"):
        run(folder, tmp_path / "out", Layout(lines=True))
    left = [*(tmp_path / "out").rglob("*")] if (tmp_path / "out").exists() else []
    assert not [path for path in left if path.name.startswith((".", "z"))]


def test_an_interrupted_file_is_not_published(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ann\n" * 10_000)
    sizes = []

    def change(texts):
        sizes.append(len(texts))
        if len(sizes) == 5:
            raise KeyboardInterrupt
        return [[] for _ in texts]

    stream = work.read_parts([Source(path, "a", tmp_path / "out.txt")], Layout(lines=True))
    with pytest.raises(KeyboardInterrupt), Sink() as sink:
        work.process(stream, change, emit, sink)
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


class CheckingSink(Sink):
    """Checks before each write that the mapping file has all its placeholders."""

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


def mode(path):
    return path.stat().st_mode & 0o777


def test_files_and_folders_keep_their_permissions(folder, tmp_path):
    modes = {"a.txt": 0o600, "sub": 0o710, "sub/b.jsonl": 0o755, "sub/c.csv": 0o444, "": 0o700}
    for name, permissions in modes.items():
        (folder / name).chmod(permissions)
    run(folder, tmp_path / "new/out")
    assert {name: mode(tmp_path / "new/out" / name) for name in modes} == modes


def test_a_replaced_file_gets_no_further_permissions(folder, tmp_path):
    target = tmp_path / "out.txt"
    for source_mode, before, after in ((0o644, 0o600, 0o600), (0o600, 0o644, 0o600)):
        target.touch()
        target.chmod(before)
        (folder / "a.txt").chmod(source_mode)
        run(folder / "a.txt", target)
        assert mode(target) == after
    with Sink() as sink:  # of standard input
        source = Source(None, "standard input", target)
        work.process([Part(source, Document("Ann")), Part(source, None)], keep, emit, sink)
    assert (target.read_text(), mode(target)) == ("Ann", 0o600)


def test_nobody_else_may_read_a_draft_of_a_secret(folder, tmp_path):
    (folder / "a.txt").chmod(0o600)
    [source] = find_inputs(folder / "a.txt", tmp_path / "out.txt").sources
    with Sink() as sink:
        sink.write(source, b"Ann")
        assert mode(tmp_path / ".out.txt.partial") == 0o600


def test_one_output_of_many_files_has_their_shared_permissions(folder, tmp_path):
    for name, permissions in {"a.txt": 0o640, "sub/b.jsonl": 0o604}.items():
        (folder / name).chmod(permissions)
    sources = find_inputs(folder, tmp_path / "all.jsonl", one_output=True).sources
    assert {source.mode for source in sources} == {0o600}


def test_one_process_at_a_time_writes_into_a_folder(folder, tmp_path):
    sources = find_inputs(folder, tmp_path / "out").sources
    with Sink() as first, Sink() as second:
        first.write(sources[0], b"first")
        first.end(sources[0])
        with pytest.raises(WxbError, match="out: another process is writing it"):
            second.write(sources[1], b"second")
        first.write(sources[1], b"first")
        first.end(sources[1])
    assert {*contents(tmp_path / "out").values()} == {b"first"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_a_document_is_written_only_after_its_mapping(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{number}\n" for number in range(20_000)))
    sink = CheckingSink(tmp_path / "m.json")
    run(path, tmp_path / "out.txt", Layout(lines=True), Mapping(sink.path), sink)
    assert sink.writes == 20_000
    # The mapping is written whole, so it must not be written for every batch.
    assert len(sink.saves) < 20_000 / work.DOCUMENTS


def test_only_a_batch_is_read_ahead():
    numbers = []

    def stream():
        source = Source(None, "endless", None)
        for number in range(10**9):
            numbers.append(number)
            yield Part(source, Document("x" * (50_000 if number > 1000 else 1)), number)

    batches = work.batches(stream())
    assert len(next(batches)) == len(numbers) == work.DOCUMENTS
    for _ in range(3):
        next(batches)
    assert sum(len(part.document.text) for part in next(batches)) <= work.CHARACTERS + 50_000


def test_standard_output_gets_the_bytes(folder, monkeypatch):
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", type("Stdout", (), {"buffer": buffer}))
    run(folder / "a.txt", None)
    assert buffer.getvalue() == b"<NAME>\r\n"


def test_one_output_ends_once(folder):
    stream = work.read_parts(find_inputs(folder, Path("x"), one_output=True).sources, Layout())
    ends = [part for part in work.with_one_end(stream) if part.document is None]
    assert len(ends) == 1
