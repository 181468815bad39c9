"""Texts in files of each format, their outputs, and files that cannot be read."""

import csv
import io
import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.masking.running import COMMAND, ENVIRONMENT, MASK, start, write_files, wxb
from wxb.core.errors import WxbError
from wxb.masking import files
from wxb.masking.files import Layout, Source, read

FORMATS = ("text", "lines", "jsonl", "json", "csv")
scalars = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(scalars, inner, max_size=2),
    max_leaves=4,
)
cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6) | (
    st.sampled_from(['"', '""', ",", ";", "a\nb", " x ", 'a"b', "\ufeff"])
)


def changed(content, format_, change=str, **options):
    """The texts of a file, and the file with changed texts."""
    lines = format_ == "lines"
    layout = Layout("text" if lines else format_, lines, **options)
    records = [*read(Source(content, "a file", None), layout)]
    new = "".join(record.render([*map(change, record.texts)]) for record in records)
    return [text for record in records for text in record.texts if text], new.encode()


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(["text", "lines"]), st.booleans())
def test_text_comes_back_byte_for_byte(text, format_, mark):
    content = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    texts, same = changed(content, format_)
    assert same == content
    assert len(texts) <= 1 or format_ == "lines"
    assert format_ == "text" or not any("\n" in text for text in texts)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_are_kept(end, mark):
    for format_, rows in {
        "text": [b"one\0 \xc3\xa9", b"", b"two", b""],
        "lines": [b"one\0 \xc3\xa9", b"", b"two"],
        "jsonl": [b'{"id": 1.5, "text": "\xc3\xa9/\\n"}', b"", b'{"text": null}', b""],
        "csv": [b"a,text", b'"x""y",', b"", b'" ,",a b c', b""],
    }.items():
        content = mark + end.join(rows)
        assert changed(content, format_)[1] == content


@pytest.mark.parametrize("format_", FORMATS)
def test_an_empty_file_stays_empty(format_):
    for content in (b"", b"\xef\xbb\xbf"):
        assert changed(content, format_) == ([], content)


@pytest.mark.parametrize("format_", FORMATS)
def test_bytes_that_are_not_utf_8_are_an_error_with_their_line(format_):
    content = {"jsonl": b'{"text": "a"}\n{"text": "Ann \xff"}', "csv": b"text\nAnn \xff"}
    with pytest.raises(WxbError, match="a file: line 2: byte 0xff is not UTF-8") as error:
        changed(content.get(format_, b"a\nAnn \xff"), format_)
    assert "Ann" not in str(error.value)


records = st.lists(st.tuples(scalars, st.dictionaries(scalars, values, max_size=3)), max_size=4)


@given(records, st.booleans())
def test_json_lines_keep_all_but_the_text(rows, escapes):
    before = [{**rest, "text": text} for text, rest in rows]
    content = "".join(json.dumps(row, ensure_ascii=escapes) + "\n" for row in before).encode()
    texts, edited = changed(content, "jsonl", lambda text: f"new {text}")
    assert texts == [text for text, _ in rows if text]
    after = [json.loads(line) for line in edited.decode().split("\n") if line]
    expected = [{**row, "text": f"new {row['text']}"} for row in before]
    assert [list(row.items()) for row in after] == [list(row.items()) for row in expected]


@given(values)
def test_all_strings_of_json_are_texts_but_not_its_keys(value):
    content = json.dumps(value).encode()
    _, edited = changed(content, "json", lambda text: f"new {text}")

    def renewed(value):
        if isinstance(value, dict):
            return {key: renewed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [*map(renewed, value)]
        return f"new {value}" if isinstance(value, str) else value

    assert json.loads(edited) == renewed(value)


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        (["messages.content"], ["Ann", "Bob"]),
        (["meta.text", "tags"], ["a", "b", "Eve"]),
        (["id", "none.deep", "empty.deep"], []),
    ],
)
def test_fields_are_paths_of_keys(fields, texts):
    row = {"tags": ["a", "b"], "messages": [{"content": "Ann"}, {"content": "Bob", "n": 1}]}
    row |= {"meta": {"text": "Eve"}, "id": None, "none": None, "empty": []}
    for format_ in ("json", "jsonl"):
        assert changed(json.dumps(row).encode(), format_, fields=fields)[0] == texts


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"txt": "Ann"}', "did you mean 'txt'"),
        ('{"text": "Ann", "text": "Ann"}', "a key twice"),
        ('{"text": 7}', "field 'text': expected a string"),
        ('{"text": "Ann \\ud800"}', "no JSON"),
        ('{"text": "Ann"', "no JSON"),
        ('{"text": "Ann"} {}', "no JSON"),
        ('["Ann"]', "no field 'text'"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_json_errors_have_the_line_and_no_value(line, fault):
    with pytest.raises(WxbError, match="a file: line 2") as error:
        changed(f'{{"text": "a"}}\n{line}\n'.encode(), "jsonl")
    assert fault in str(error.value)
    assert "Ann" not in str(error.value)


@given(
    st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4),
    st.sampled_from(",;\t|"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_keeps_all_but_the_columns(rows, delimiter, quoting, end):
    table = [["id", "the text", "note"], *map(list, rows)]
    options = {"delimiter": delimiter, "quoting": quoting, "lineterminator": end}
    file = io.StringIO(newline="")
    csv.writer(file, **options).writerows(table)
    columns = ["note", "the text"]
    texts, edited = changed(
        file.getvalue().encode(), "csv", lambda text: f"new {text}", columns=columns
    )
    assert texts == [text for _, first, second in rows for text in (second, first) if text]
    again = list(csv.reader(io.StringIO(edited.decode(), newline=""), delimiter=delimiter))
    assert again == [table[0], *([id_, f"new {a}", f"new {b}"] for id_, a, b in rows)]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"txt,b\nAnn,c\n", "line 1: found 0 columns 'text'; did you mean 'txt'"),
        (b"text,text\nAnn,c\n", "line 1: found 2 columns 'text'"),
        (b"b,text\n1,x\nAnn\n", "line 3: found 1 cells; expected 2"),
        (b'b,text\n1,"Ann\nx', "no CSV"),
        (b'b,text\n1,"Ann"x\n', "line 2: no CSV"),
        (b"b,text\n1,Ann\rx\n", "no CSV"),
        (b'b,text\r"x\n', "no CSV"),
    ],
)
def test_csv_errors_have_the_line_and_no_value(content, fault):
    with pytest.raises(WxbError, match="a file: ") as error:
        changed(content, "csv")
    assert fault in str(error.value)
    assert "Ann" not in str(error.value)


def test_a_batch_ends_at_many_documents_or_characters():
    source, numbers = Source(None, "endless", None), []

    def stream():
        for number in range(10**9):
            numbers.append(number)
            text = "x" * (50_000 if number > 1000 else 1)
            yield source, files.Record([text], str)

    batches = files.batches(stream())
    assert len(next(batches)) == len(numbers) == files.DOCUMENTS
    for _ in range(3):
        next(batches)
    assert sum(len(r.texts[0]) for _, r in next(batches)) <= files.CHARACTERS + 50_000


@pytest.fixture
def folder(tmp_path):
    contents = {
        "a.txt": b"Ann\r\n",
        "sub/b.jsonl": b'{"text": "Bob"}\n',
        "sub/c.csv": b"text\nEve 5\n",
        "sub/d.JSON": b'{"a": ["Kim"]}',
        "sub/empty.txt": b"",
        ".hidden": b"\xff",
        ".git/x": b"\xff",
    }
    return write_files(tmp_path / "in", contents)


def contents(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_folder_keeps_its_names_and_formats(folder, tmp_path, run):
    before = contents(folder)
    assert run(*MASK, "in", "--output", "new/out") == (0, "", "")
    assert contents(tmp_path / "new/out") == {
        "a.txt": b"<NAME>\r\n",
        "sub/b.jsonl": b'{"text": "<NAME>"}\n',
        "sub/c.csv": b"text\n<NAME> <AGE>\n",
        "sub/d.JSON": b'{"a": ["<NAME>"]}',
        "sub/empty.txt": b"",
    }
    assert contents(folder) == before


def test_pipes_and_broken_links_are_left_out_and_a_folder_needs_files(folder, tmp_path):
    (folder / "link.txt").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.txt")
    assert len(files.find_sources(folder, tmp_path)) == 5
    with pytest.raises(WxbError, match="has no files"):
        files.find_sources(write_files(tmp_path / "none", {".hidden": b""}), tmp_path)


def test_an_unreadable_subfolder_is_an_error(folder, tmp_path, run, monkeypatch):
    scan = os.scandir  # root ignores permissions

    def scandir(path):
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    code, _, errors = run(*MASK, "in", "--output", "out")
    assert code == 1
    assert "in/sub: Permission denied" in errors
    assert not (tmp_path / "out").exists()


def test_unreadable_files_stop_all_or_are_skipped(folder, tmp_path, run):
    write_files(folder, {"x.txt": b"Kim \xff", "y.jsonl": b'{"text": Kim}'})
    (tmp_path / "m").write_text('{"placeholders": {}, "reserved": []}')
    for command in ((*MASK, "--report", "r.json"), ("unmask", "--mapping", "m")):
        code, _, errors = run(*command, "in", "--output", "out")
        assert code == 1
        assert all(f"in/{name}: line 1" in errors for name in ("x.txt", "y.jsonl"))
        assert "Kim" not in errors
        assert not (tmp_path / "out").exists()
        code, _, errors = run(*command, "in", "--output", "out", "--skip-unreadable")
        assert code == 0
        assert errors.count("skipped: in/") == 2
        assert {"x.txt", "y.jsonl"} & {*contents(tmp_path / "out")} == set()
        for path in [*(tmp_path / "out").rglob("*.*")]:
            path.unlink()
        (tmp_path / "out/sub").rmdir()
        (tmp_path / "out").rmdir()
    assert json.loads((tmp_path / "r.json").read_text())["skipped"] == 2


@pytest.mark.parametrize("mode", ["file", "standard output"])
def test_an_interrupted_command_has_saved_what_it_wrote(tmp_path, mode):
    saves, target = [], tmp_path / "out.txt" if mode == "file" else None

    def parts():
        yield Source(None, "a", target), "one"
        assert len(saves) == (target is None)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write(parts(), lambda: saves.append(1))
    assert [*tmp_path.iterdir()] == []


def test_a_file_is_published_after_its_mapping_is_saved(tmp_path):
    target = tmp_path / "out.txt"
    existed = []
    files.write([(Source(None, "a", target), "one")], lambda: existed.append(target.exists()))
    assert (existed, target.read_text()) == ([False], "one")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_standard_output_is_a_one_line_error(tmp_path):
    (tmp_path / "a.txt").write_text("Ann 5\n" * 5_000)
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [*COMMAND, *MASK, "a.txt"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert result.stderr == b"wxb: standard output: cannot be written (No space left on device)\n"
    assert result.returncode == 1


def test_a_full_disk_is_a_one_line_error_and_leaves_no_partial_file(tmp_path):
    (tmp_path / "a.txt").write_text("Ann 5\n" * 50_000)
    limit = 100_000  # bytes of a file: a write beyond fails as on a full disk
    result = subprocess.run(
        [*COMMAND, *MASK, "--lines", "a.txt", "--output", "out.txt"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        check=False,
    )
    assert result.returncode == 1
    assert re.fullmatch(rb"wxb: .*out.txt: cannot be written \(File too large\).*\n", result.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_two_processes_do_not_share_a_draft(tmp_path):
    first = start(tmp_path, *MASK, "--lines", "--output", "out.txt")
    first.stdin.write(b"Ann\n" * 300)
    first.stdin.flush()
    while not (tmp_path / ".out.txt.partial").exists():
        assert first.poll() is None
    second = wxb(tmp_path, *MASK, "Bob", "--output", "out.txt")
    assert (second.returncode, second.stdout) == (1, b"")
    assert b"out.txt: another process is writing it; wait" in second.stderr
    assert first.communicate() == (b"", b"")
    assert (tmp_path / "out.txt").read_bytes() == b"<NAME>\n" * 300
