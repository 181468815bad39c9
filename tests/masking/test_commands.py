"""The commands `wxb mask` and `wxb unmask`, with rules instead of a model."""

import itertools
import json
import os
import re
import signal

import pytest

from tests.masking.running import MASK, output, start, wxb


def test_a_text_a_file_and_standard_input(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"Ann, 5\r\n")
    assert output(tmp_path, *MASK, "Ann, 5") == b"<NAME>, <AGE>\n"
    assert output(tmp_path, *MASK, "a.txt") == b"<NAME>, <AGE>\r\n"
    for source in ([], ["-"]):
        assert output(tmp_path, *MASK, *source, given=b"Ann\0\r\n\xef\xbb\xbf5") == (
            b"<NAME>\0\r\n\xef\xbb\xbf<AGE>"
        )
    assert output(tmp_path, *MASK, "a.txt", "--output", "out/b.txt") == b""
    assert (tmp_path / "out/b.txt").read_bytes() == b"<NAME>, <AGE>\r\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.txt"]


def test_a_mapping_undoes_all_formats(tmp_path):
    files = {
        "in/a.txt": "Ann and Bob, <NAME_1>\r\n",
        "in/b/b.jsonl": '{"n": 1.0, "text": "Bob \\t é 5"}\n\n{"text": null}\n',
        "in/b/c.csv": '\ufeffid;text;b\r\n1;"Ann ""x""";Ann\r\n2;Eve;\r\n',
        "in/d.json": '{"Ann": ["Ann", 5]}',
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    columns = ("--column", "text", "--column", "b")
    output(tmp_path, *MASK, "in", "--output", "out", "--mapping", "m.json", *columns)
    assert (tmp_path / "m.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out/b/c.csv").read_bytes().decode() == (
        '\ufeffid;text;b\r\n1;"<NAME_1> ""x""";<NAME_1>\r\n2;<NAME_3>;\r\n'
    )
    assert (tmp_path / "out/d.json").read_text() == '{"Ann": ["<NAME_1>", 5]}'
    output(tmp_path, "unmask", "out", "--mapping", "m.json", "--output", "back", *columns)
    for name, content in files.items():
        assert (tmp_path / name.replace("in", "back", 1)).read_bytes() == content.encode()


def test_the_same_options_give_the_same_bytes(tmp_path):
    (tmp_path / "o.yaml").write_text(
        "DEFAULT: {operator: number}\nNAME: {operator: fake, seed: 3}\nAGE: {operator: hash}\n"
    )
    options = ("--operators", "o.yaml", "Ann 5 x@y.org Ann")
    salt = {"WXB_MASK_SALT": "sixteen bytes or more"}
    first, second = (output(tmp_path, *MASK, *options, **salt) for _ in range(2))
    assert first == second
    name, again = re.fullmatch(r"(.+) [0-9a-f]{64} <EMAIL_1> (.+)\n", first.decode()).groups()
    assert name == again != "Ann"
    salt["WXB_MASK_SALT"] += "!"
    assert output(tmp_path, *MASK, *options, **salt) != first


def test_placeholders_of_another_mapping_are_kept_with_a_warning(tmp_path):
    masked = output(tmp_path, *MASK, "--mapping", "m", given=b"Ann <b_1>\n")
    result = wxb(tmp_path, "unmask", "--mapping", "m", given=masked + b"<NAME_7> <Eve_2>")
    assert (result.returncode, result.stdout) == (0, b"Ann <b_1>\n<NAME_7> <Eve_2>")
    assert b"m lacks 2 placeholders, which are kept (<NAME_7>, ...)" in result.stderr
    assert b"Eve" not in result.stderr


def test_spans_as_json(tmp_path):
    (tmp_path / "in").mkdir()
    for name, text in {"a.txt": "Zoé 😀 5", "b.jsonl": '{"text": "x"}\n{"text": "Ann"}'}.items():
        (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    lines = [json.loads(line) for line in output(tmp_path, *MASK, "in", "--json").splitlines()]
    assert lines[0] == {
        "source": "in/a.txt",
        "document": 1,
        "text": "<NAME> 😀 <AGE>",
        "spans": [
            {"start": 0, "end": 3, "label": "NAME", "score": 0.9, "new": "<NAME>"},
            {"start": 6, "end": 7, "label": "AGE", "score": 0.5, "new": "<AGE>"},
        ],
    }
    assert [(line["source"], line["document"]) for line in lines[1:]] == [
        ("in/b.jsonl", 1),
        ("in/b.jsonl", 2),
    ]
    output(tmp_path, *MASK, "in", "--json", "--output", "all.jsonl")
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 3


def test_options_select_spans(tmp_path):
    text = "Ann 5 x@y.org Bob"
    (tmp_path / "list").write_text("Bob\n\n/x@.*org/\n")
    for options, masked in {
        ("--threshold", "0.6"): "<NAME> 5 <EMAIL> <NAME>",
        ("--only", "AGE", "--only", "EMAIL"): "Ann <AGE> <EMAIL> Bob",
        ("--allow", "Ann", "--allow", "/[0-9]/"): "Ann 5 <EMAIL> <NAME>",
        ("--deny", "@list", "--only", "AGE"): "Ann <AGE> <DENIED> <DENIED>",
        ("--operators", "redact"): "   ",
    }.items():
        assert output(tmp_path, *MASK, *options, text).decode() == f"{masked}\n"


def test_verify_reports_values_that_are_not_masked(tmp_path, run):
    assert run(*MASK, "Ann 5", "--verify", "--report", "clean.json")[0] == 0
    report = json.loads((tmp_path / "clean.json").read_text())
    assert (report["left"], report["masked"]) == ({}, {"AGE": 1, "NAME": 1})
    code, text, errors = run(*MASK, "to z.x@y.org", "--verify", "--report", "r")
    assert (code, text) == (3, "to z.<EMAIL>\n")
    assert "1 value not masked in 1 of 1 document (e-mail address 1)" in errors
    assert json.loads((tmp_path / "r").read_text())["left"] == {"e-mail address": 1}
    assert "x@y" not in errors + (tmp_path / "r").read_text()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([*MASK, "in"], "so --output is required"),
        ([*MASK, "missing.txt"], "no file 'missing.txt'"),
        ([*MASK, "report.pdf"], "no file 'report.pdf'"),
        ([*MASK, "./missing"], "no file './missing'"),
        ([*MASK, "folder/missing"], "no file 'folder/missing'"),
        ([*MASK, "~/missing"], "no file '~/missing'"),
        ([*MASK, "--threshold", "2", "x"], "less than or equal to 1"),
        ([*MASK, "--format", "xml", "x"], "xml"),
        ([*MASK, "--column", "a", "x"], "--column"),
        ([*MASK, "--field", "a", "x"], "--field"),
        ([*MASK, "--lines", "--format", "csv", "x"], "--lines"),
        ([*MASK, "--verify", "--only", "NAME", "x"], "--verify"),
        ([*MASK, "--mapping", "m", "--operators", "redact", "x"], "requires the operator"),
        ([*MASK, "\udcff"], "the text is not UTF-8"),
        (["mask", "x"], "--experiment / -e: missing; trained experiments: none here"),
        (["unmask", "x"], "--mapping"),
        ([*MASK, "", "--output", "out"], "found an empty argument"),
        ([*MASK, "in", "--output", ""], "'--output': found an empty argument"),
        (["mask", "-e", "", "x"], "--experiment / -e: missing"),
        ([*MASK, "--operators", "", "x"], "'--operators': found an empty argument"),
        ([*MASK, "--mapping", "", "x"], "'--mapping': found an empty argument"),
        (["unmask", "--mapping", "m", ""], "found an empty argument"),
    ],
)
def test_usage_errors_have_exit_code_2(tmp_path, run, arguments, fault):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").touch()
    code, text, errors = run(*arguments)
    assert (code, text) == (2, "")
    assert fault in errors
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([*MASK, "--operators", "redakt", "x"], "did you mean 'redact'"),
        ([*MASK, "--operators", "o.yaml", "x"], "no type 'NMAE'; did you mean"),
        ([*MASK, "--only", "NAMES", "x"], "no type 'NAMES'; did you mean 'NAME'"),
        ([*MASK, "--only", "DEFAULT", "x"], "no type 'DEFAULT'"),
        ([*MASK, "--deny", "@none", "x"], "@none: expected a text file"),
        ([*MASK, "--deny", "/(/", "x"], "no regular expression"),
        ([*MASK, "--format", "jsonl"], "line 1: no JSON"),
        ([*MASK, "--output", "."], "found a folder or device"),
        ([*MASK, "bad", "--output", "out"], "line 1: byte 0xff is not UTF-8"),
        ([*MASK, "--output", "file/out"], "cannot be written"),
        ([*MASK, "--output", "pipe"], "found a folder or device"),
        ([*MASK, "--report", "pipe"], "is a device or pipe"),
        ([*MASK, "--mapping", "folder"], "cannot be read"),
        ([*MASK, "--report", "file/out"], "cannot be written"),
        ([*MASK, "--mapping", "file/out"], "file"),
        ([*MASK, "--mapping", "file"], "expected a mapping"),
        (["unmask", "--mapping", "m"], "no such file"),
    ],
)
def test_errors_have_exit_code_1_and_no_traceback(tmp_path, run, arguments, fault):
    (tmp_path / "o.yaml").write_text("NMAE: {operator: redact}")
    (tmp_path / "bad").write_bytes(b"Ann \xff")
    (tmp_path / "file").write_text("Ann")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    code, _, errors = run(*arguments, given=b"{Ann")
    assert code == 1
    assert fault in errors
    assert "Ann" not in errors
    assert not list(tmp_path.rglob("*.partial"))


def test_ctrl_c_exits_quietly_with_code_130(tmp_path):
    process = start(tmp_path, *MASK, "--lines", "--mapping", "m.json")
    process.stdin.write(b"Ann\n" * 300)
    process.stdin.flush()
    assert process.stdout.readline() == b"<NAME_1>\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"")
    assert json.loads((tmp_path / "m.json").read_text())["placeholders"] == {"<NAME_1>": "Ann"}


def test_it_is_quiet_if_the_reader_of_its_output_exits(tmp_path):
    (tmp_path / "a.txt").write_text("Ann 5\n" * 100_000)
    process = start(tmp_path, *MASK, "--lines", "a.txt")
    assert process.stdout.readline() == b"<NAME> <AGE>\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stderr.close()
    process.stdin.close()


@pytest.mark.slow
def test_many_documents_stream_in_bounded_memory(tmp_path):
    line = json.dumps({"text": "Ann is 5.", "note": "x" * 20_000}) + "\n"
    peaks = []
    for documents in (1000, 10_000):
        with (tmp_path / "many.jsonl").open("w") as lines:
            lines.writelines(itertools.repeat(line, documents))
        process = start(tmp_path, *MASK, "many.jsonl", "--output", "out.jsonl")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.communicate()
        assert process.returncode == 0
        with (tmp_path / "out.jsonl").open() as lines:
            assert sum(line.startswith('{"text": "<NAME> is <AGE>') for line in lines) == documents
        peaks.append(used.ru_maxrss * 1024)
    more = len(line) * 9_000
    assert peaks[1] - peaks[0] < more / 3  # allocators and torch alone differ by tens of MB
