"""The commands `wxb mask` and `wxb unmask`, with rules instead of a model."""

import itertools
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.masking.rules import MASK
from tests.repository import write_files
from wxb.core.files import write_lock


def test_a_text_a_file_and_standard_input(tmp_path, run):
    write_files({"a.txt": "Ann, 5\r\n"})
    assert run(*MASK, "Ann, 5") == (0, "<NAME>, <AGE>\n", "")
    assert run(*MASK, "a.txt") == (0, "<NAME>, <AGE>\r\n", "")
    for source in ([], ["-"]):
        text = "Ann\0\r\n\ufeff5"
        assert run(*MASK, *source, given=text.encode())[1] == "<NAME>\0\r\n\ufeff<AGE>"
    assert run(*MASK, "a.txt", "--output", "out/b.txt") == (0, "", "")
    assert (tmp_path / "out/b.txt").read_bytes() == b"<NAME>, <AGE>\r\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.txt"]


def test_a_text_without_names_is_unmasked_too(run):
    assert run(*MASK, "--mapping", "m.json", "none") == (0, "none\n", "")
    assert run("unmask", "--mapping", "m.json", "none") == (0, "none\n", "")


FILES = {
    "a.txt": "Ann and Bob, <NAME_1>\r\n",
    "empty.txt": "",
    "b/b.jsonl": '{"n": 1.0, "text": "Bob \\t é 5"}\n\n{"text": null}\n',
    "b/c.csv": '\ufeffid;text;b\r\n1;"Ann ""x""";Ann\r\n2;Eve;\r\n',
    "d.JSON": '{"Ann": ["Ann", 5]}',
}


def test_a_mapping_undoes_all_formats_of_a_folder(tmp_path, run):
    write_files({f"in/{name}": content for name, content in FILES.items()})
    write_files({"in/.hidden": b"\xff", "in/.git/x": b"\xff"})
    columns = ("--column", "text", "--column", "b")
    options = ("--output", "new/out", "--mapping", "m.json", *columns)
    assert run(*MASK, "in", *options) == (0, "", "")
    assert (tmp_path / "m.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new/out/b/c.csv").read_bytes().decode() == (
        '\ufeffid;text;b\r\n1;"<NAME_1> ""x""";<NAME_1>\r\n2;<NAME_3>;\r\n'
    )
    assert (tmp_path / "new/out/d.JSON").read_text() == '{"Ann": ["<NAME_1>", 5]}'
    options = ("--output", "back", "--mapping", "m.json", *columns)
    assert run("unmask", "new/out", *options) == (0, "", "")
    back = {p.relative_to(tmp_path / "back"): p for p in (tmp_path / "back").rglob("*.*")}
    assert {str(name): p.read_bytes().decode() for name, p in back.items()} == FILES


@pytest.mark.parametrize(
    ("options", "masked"),
    [
        (["--threshold", "0.6"], "<NAME> 5 <EMAIL> <NAME>"),
        (["--only", "AGE", "--only", "EMAIL"], "Ann <AGE> <EMAIL> Bob"),
        (["--allow", "Ann", "--allow", "/[0-9]/"], "Ann 5 <EMAIL> <NAME>"),
        (["--deny", "@list", "--only", "AGE"], "Ann <AGE> <DENIED> <DENIED>"),
        (
            ["--deny", "/(?i)ANN/", "--deny", "/b*/", "--only", "AGE"],
            "<DENIED> <AGE> x@y.org Bo<DENIED>",
        ),
    ],
)
def test_options_select_spans(run, options, masked):
    write_files({"list": "Bob\n\n/x@.*org/\n"})
    assert run(*MASK, *options, "Ann 5 x@y.org Bob") == (0, f"{masked}\n", "")


@pytest.mark.parametrize(
    ("files", "options", "report"),
    [
        ({"a.txt": "Ann\nz.x@y.org, 9"}, [], ""),
        ({"a.txt": "Ann\n\nx@y.com"}, [], "a.txt: e-mail address: line 3"),
        (
            {"a.txt": "x\nann\nAnn ANNA ANN"},
            [],
            "a.txt: value, or part of one, that is masked elsewhere: line 2, 3",
        ),
        ({"a.txt": "an An"}, [], ""),
        ({"a.csv": "text,b\nAnn,1\nx,my ann\n"}, [], "masked elsewhere: line 3"),
        ({"a.json": '{"a": "é\\nann", "b": "Ann"}'}, [], "masked elsewhere: line 1"),
        ({"a.txt": "ann Ann"}, ["--allow", "ann"], ""),
        ({"a.json": '{"a": 57}'}, ["--deny", "57"], "DENIED: line 1"),
        ({"a.txt": "\nann"}, ["--mapping", "m.json"], "masked elsewhere: line 2"),
        ({"a.csv": "text,b\nx,y@x.com\n"}, [], "e-mail address: line 2"),
        ({"a.txt": "ann Ann"}, ["--operators", "fake"], "masked elsewhere: line 1"),
        (
            {"a.txt": "Mr Smith\n\nmr. smithson\nyes, Smith, mr.\n"},
            ["--only", "AGE", "--deny", "Mr Smith"],
            "masked elsewhere: line 4",
        ),
        (
            {"a.json": '{"a": "Jos\\u00e9", "b": "Ann"}'},
            ["--field", "b", "--deny", "José Ruiz", "--mapping", "n.json"],
            "masked elsewhere: line 1",
        ),
    ],
)
def test_verify_reports_values_in_clear_with_their_lines(run, files, options, report):
    write_files(files | {"m.json": '{"placeholders": {"<NAME_1>": "Ann"}}'})
    write_files({"n.json": '{"placeholders": {"<NAME_1>": "José Ruiz"}}'})
    code, _, errors = run(*MASK, *files, *options, "--verify")
    assert (code, report in errors) == (1 if report else 0, True)
    assert "nn" not in errors
    assert "@" not in errors


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([*MASK, "in"], "--output is required"),
        ([*MASK, "missing.txt"], "no file 'missing.txt'"),
        ([*MASK, "--threshold", "2", "x"], "less than or equal to 1"),
        ([*MASK, "--column", "a", "x"], "--column"),
        ([*MASK, "--field", "a", "x"], "--field"),
        ([*MASK, "--lines", "--format", "csv", "x"], "--lines"),
        ([*MASK, "--mapping", "m", "--operators", "redact", "x"], "requires the operator"),
        ([*MASK, "", "--output", "out"], "empty"),
        ([*MASK, "--operators", "", "x"], "'--operators': found an empty"),
        (["unmask", "x"], "--mapping"),
    ],
)
def test_usage_errors_have_exit_code_2(tmp_path, run, arguments, fault):
    write_files({"in/a.txt": ""})
    code, text, errors = run(*arguments)
    assert (code, text) == (2, "")
    assert fault in errors
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["in"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([*MASK, "--operators", "redakt", "x"], "did you mean 'redact'"),
        ([*MASK, "--operators", "o.yaml", "x"], "no type 'NMAE'; did you mean"),
        ([*MASK, "--only", "NAMES", "x"], "no type 'NAMES'; did you mean 'NAME'"),
        ([*MASK, "--deny", "@none", "x"], "@none: expected a text file"),
        ([*MASK, "--deny", "/(/", "x"], "no regular expression"),
        ([*MASK, "--format", "jsonl"], "line 1: no JSON"),
        ([*MASK, "--output", "."], "found a folder"),
        ([*MASK, "empty", "--output", "out"], "has no files"),
        ([*MASK, "bad", "--output", "out"], "bad: line 1: byte 0xff is not UTF-8"),
        ([*MASK, "--output", "file/out"], "cannot be written"),
        ([*MASK, "--output", "pipe"], "is a device or pipe"),
        ([*MASK, "--mapping", "file"], "expected a mapping"),
        (["unmask", "--mapping", "m"], "no such file"),
    ],
)
def test_errors_have_exit_code_1_and_quote_no_text(tmp_path, run, arguments, fault):
    write_files({"o.yaml": "NMAE: {operator: redact}", "bad": b"Ann \xff", "file": "Ann"})
    write_files({"empty/.hidden": ""})
    os.mkfifo(tmp_path / "pipe")
    code, _, errors = run(*arguments, given=b"{Ann")
    assert code == 1
    assert fault in errors
    assert "Ann" not in errors
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("*.partial"))


def test_an_unreadable_subfolder_is_an_error(tmp_path, run, monkeypatch):
    write_files({"in/sub/a.txt": "Ann"})
    scan = os.scandir  # root ignores permissions

    def scandir(path):
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    code, _, errors = run(*MASK, "in", "--output", "out")
    assert (code, (tmp_path / "out").exists()) == (1, False)
    assert "in/sub: Permission denied" in errors


def test_one_process_at_a_time_masks_with_a_mapping(tmp_path, run):
    with write_lock(tmp_path / "m.json in use"):
        code, output, errors = run(*MASK, "--mapping", "m.json", "Ann")
    assert (code, output) == (1, "")
    assert "m.json in use: another process" in errors
    assert run(*MASK, "--mapping", "m.json", "Ann") == (0, "<NAME_1>\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_lines_are_masked_when_the_input_pauses_and_ctrl_c_loses_none(tmp_path, start):
    process = start(*MASK, "--lines", "--mapping", "m.json")
    for count in (1, 300):
        process.stdin.write(b"Ann\n" * count)
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(count)] == [b"<NAME_1>\n"] * count
    process.send_signal(signal.SIGINT)
    assert process.communicate() == (b"", b"")
    assert process.returncode == 130
    assert json.loads((tmp_path / "m.json").read_text())["placeholders"] == {"<NAME_1>": "Ann"}


@pytest.mark.parametrize(
    ("source", "content", "fault"),
    [
        *(
            (f"a.{suffix}", "Ann", "--format")
            for suffix in ("yaml", "ipynb", "XLSX", "jsonlines", "gz")
        ),
        *((name, "id,text\n1,Ann\n", "looks like CSV") for name in ("a", "-")),
        *((name, '{\n "a": "Ann"}', "looks like JSON") for name in ("a", "-")),
        *((name, "<!doctype html>\nAnn", "looks like HTML") for name in ("a", "-")),
        ("a", "\n<?xml version='1.0'?><a>Ann</a>", "looks like HTML"),
        ("-", "<Ann>, x\n", ""),
        *((name, "Ann, x\nBob, y\n", "") for name in ("a", "-", "a.txt")),
    ],
)
def test_unknown_structure_asks_for_a_format(run, source, content, fault):
    write_files({source: content})
    code, text, errors = run(*MASK, source, given=content.encode())
    assert (code, fault in errors) == (1 if fault else 0, True)
    assert "Ann" not in text + errors
    options = ("--format", "text")
    assert run(*MASK, source, *options, given=content.encode())[0] == 0


def test_placeholders_have_brackets_that_markup_keeps(tmp_path, run):
    write_files({"in/a.html": "<b>Ann</b>", "in/b.txt": "Ann", "in/c.md": "Ann"})
    assert run(*MASK, "in", "--output", "out", "--mapping", "m") == (0, "", "")
    assert (tmp_path / "out/a.html").read_text() == "<b>[NAME_1]</b>"
    assert (tmp_path / "out/c.md").read_text() == "[NAME_1]"
    assert run("unmask", "--mapping", "m", "out/a.html") == (0, "<b>Ann</b>", "")
    write_files({"in/b.html": "<i>Ann</i>"})
    options = ("--mapping", "m", "--deny", "/<i>Ann<.i>/")
    assert run(*MASK, "in/b.html", *options, "--output", "b.html") == (0, "", "")
    assert (tmp_path / "b.html").read_text() == "[DENIED_1]"
    assert run("unmask", "--mapping", "m", "b.html")[1] == "<i>Ann</i>"
    assert run(*MASK, "in/a.html", "--brackets", "{}")[1] == "<b>{NAME}</b>"
    assert run(*MASK, "in/a.html", "--brackets", "()")[0] == 1
    code, text, errors = run("unmask", "--mapping", "m", "--strict", given=b"[NAME_1] NAME_1")
    assert (code, text) == (1, "Ann NAME_1")
    assert "1 placeholder restored, 1 look altered" in errors


def test_it_is_quiet_if_the_reader_of_its_output_exits(start):
    write_files({"a.txt": "Ann 5\n" * 100_000})
    process = start(*MASK, "--lines", "a.txt", stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"<NAME> <AGE>\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_a_one_line_error(start):
    write_files({"a.txt": "Ann 5\n" * 5_000})
    with Path("/dev/full").open("wb") as full:
        process = start(*MASK, "a.txt", stdout=full)
    errors = process.communicate()[1]
    assert (process.returncode, errors.count(b"\n")) == (1, 1)
    assert b"standard output: cannot be written (No space left on device)" in errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_memory_does_not_grow_with_a_file(tmp_path, start, name):
    line = f"{json.dumps({'text': 'Ann is 5.', 'note': 'x y ' * 500})}\n"
    peaks = []
    for count in (1_000, 10_000):
        with (tmp_path / name).open("w") as lines:
            lines.writelines(itertools.repeat(line, count))
        process = start(*MASK, name, "--output", "out")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.communicate()
        assert process.returncode == 0
        with (tmp_path / "out").open() as lines:
            assert sum(line.startswith('{"text": "<NAME> is <AGE>') for line in lines) == count
        peaks.append(used.ru_maxrss * 1024)
    assert peaks[1] - peaks[0] < len(line) * 9_000 / 3  # allocators differ by some MB
