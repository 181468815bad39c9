"""Each option of each command changes what it prints or writes, or is refused."""

import io
import shutil
from contextlib import chdir

import pytest
import typer

from tests.masking.rules import Rules
from tests.ner_project import create_project
from tests.project_copy import ROOT
from tests.repository import commit, git, write
from wxb.cli.app import app, main
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.project import trained
from wxb.tasks.ner.record import LABELLING, Span

FILES = {
    "a.txt": "Ann, 5 x@y.com\n\nAnn\n",
    "a.csv": "id,text,note\n1,Ann Bo,Eve\n2,Cy,Di\n",
    "a.json": '{"text": "Ann", "note": "Eve"}',
    "m.json": '{"placeholders": {"<NAME_1>": "Ann"}}',
    "u.csv": "id,text,note\n1,<NAME_1> name_1,<NAME_1>\n",
    "u.json": '{"text": "<NAME_1>", "note": "<NAME_1>"}',
    "own.csv": "id,text,label,by\n"
    + "".join(f"{i},Good {i}.,{'ab'[i % 2]},{i}\n" for i in range(60)),
}
# The hash of a file that is altered.
LOCK = """schema: '2.0'
stages:
  compare@ner:
    cmd: python -m stages.compare ner
    outs: [{path: reports/studies/ner.csv, hash: md5, md5: %s, size: 1}]
"""
MASK, UNMASK = ["mask", "-e", "rules"], ["unmask", "--mapping", "m.json"]
PREDICT, SEARCH = ["predict", "-e", "ner-encoder"], ["search", "Ann", "--encoder", "ner-encoder"]
CORPUS, EXPERIMENT = ["new", "corpus", "own.csv"], ["new", "experiment", "x", "--study", "ner"]
STUDY = ["new", "study", "x"]
SWEEP = ["new", "sweep", "x", "--like", "ner-crf", "--set", "model.window=0,1"]
# A command line, and options that each change its outcome.
CALLS = [
    ([*MASK, "a.txt"], ["--output", "out"], ["--operators", "redact"], ["--mapping", "n.json"]),
    ([*MASK, "a.txt"], ["--threshold", "0.7"], ["--only", "AGE"], ["--allow", "Ann"], ["--verify"]),
    ([*MASK, "a.txt"], ["--deny", "/com/"], ["--format", "csv"], ["--brackets", "[]"]),
    ([*MASK, "a.txt"], ["--column", "text"], ["--field", "text"], ["--experiment", "ner-encoder"]),
    ([*MASK, "a.csv"], ["--lines"], ["--column", "note"]),
    ([*MASK, "a.json"], ["--field", "note"]),
    ([*UNMASK, "u.csv"], ["--output", "out"], ["--column", "note"], ["--lines"], ["--strict"]),
    ([*UNMASK, "u.csv"], ["--format", "text"], ["--field", "text"], ["--mapping", "a.json"]),
    ([*UNMASK, "u.json"], ["--field", "note"]),
    ([*PREDICT, "a.csv"], ["--field", "note"], ["--json"], ["--experiment", "none"]),
    ([*SEARCH, "--file", "a.txt"], ["--top", "1"], ["--json"], ["--encoder", "none"]),
    (SEARCH, ["--corpus", "none"], ["--file", "a.txt"]),
    (["chat"], ["--experiment", "ner-encoder"]),
    *((["list"], ["--json"]), (["show", "ner-encoder"], ["--json"]), (["doctor"], ["--json"])),
    (["table", "ner"], ["--all"]),
    (["export", "pii"], ["--split", "valid"], ["--format", "csv"], ["--output", "e"]),
    (["card", "ner-encoder"], ["--output", "shared"]),
    (["merge", "ner-encoder"], ["--output", "merged"]),
    (["compare"], ["--study", "none"], ["--brief"], ["--json"], ["--exit-code"]),
    (["verify"], ["--repair"]),
    (["clean"], ["--dry-run"]),
    (CORPUS, ["--name", "x"], ["--task", "ner"], ["--input", "id"], ["--gold", "by"]),
    (CORPUS, ["--start", "id"], ["--end", "id"], ["--tag", "id"], ["--speaker", "id"]),
    (CORPUS, ["--group", "by"], ["--columns", "a,b"], ["--annotator", "x"], ["--offsets", "bytes"]),
    (CORPUS, ["--class-per-file"], ["--repair"], ["--dry-run"]),
    ([*EXPERIMENT, "--like", "ner-crf"], ["--study", "none"]),
    ([*EXPERIMENT, "--like", "ner-crf"], ["--backbone", "none"], ["--method", "none"]),
    ([*EXPERIMENT, "--like", "ner-crf"], ["--dry-run"]),
    (EXPERIMENT, ["--like", "ner-crf"]),
    (STUDY, ["--corpus", "pii"]),
    ([*STUDY, "--corpus", "pii"], ["--title", "T"], ["--language", "zh"], ["--dry-run"]),
    (SWEEP, ["--seeds", "2"], ["--title", "T"], ["--dry-run"]),
    (SWEEP[:3] + SWEEP[5:], ["--like", "ner-crf"]),
    (SWEEP[:5], ["--set", "model.window=0,1"]),
]


def leaves(command, name=()):
    """All commands with their names."""
    for word, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*name, word))
    if not hasattr(command, "commands"):
        yield name, command


def test_each_option_of_each_command_is_in_a_call():
    called = {
        (tuple(w for w in line[: 1 + (line[0] == "new")]), added[0])
        for line, *options in CALLS
        for added in options
    }
    assert called == {
        (name, max(option.opts, key=len))
        for name, command in leaves(typer.main.get_command(app))
        for option in command.params
        if option.param_type_name == "option"
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = create_project(tmp_path_factory.mktemp("project"))
    shutil.copytree(ROOT / "params", folder / "params")
    shutil.copy(ROOT / "dvc.yaml", folder)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    for path in ("models/old", ".wxb/checkpoints/train@ner-encoder-1"):
        (folder / path).mkdir(parents=True)
    shutil.copytree(ROOT / ".dvc", folder / ".dvc", ignore=shutil.ignore_patterns("cache", "tmp"))
    write(folder / "dvc.lock", LOCK % ("a" * 32))
    write(folder / "reports/studies/ner.csv", "altered")
    shutil.copy(ROOT / "reports/studies/ner.json", folder / "reports/studies")
    record = Record("1", "Ann", (Span(0, 3, "NAME"),), None, "1")
    clean.write(folder / "data/clean/pii/test.parquet", [record], LABELLING)
    with chdir(folder):
        git("init", "-q")
        commit()
    metrics = folder / "reports/metrics/ner/ner-encoder.json"  # another result than the commit's
    metrics.write_text(metrics.read_text().replace('"f1": 1', '"f1": 0'))
    return folder


@pytest.fixture(scope="module")
def outcomes():
    """The outcomes of the lines without options, by line."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "added"),
    [(line, added) for line, *options in CALLS for added in options],
    ids=lambda words: " ".join(words),
)
def test_an_option_changes_the_outcome(
    project, outcomes, tmp_path, monkeypatch, capsys, line, added
):
    load = trained.load
    monkeypatch.setattr(
        trained, "load", lambda name, **o: Rules() if name == "rules" else load(name, **o)
    )
    monkeypatch.setenv("COLUMNS", "200")

    def outcome(arguments):
        folder = tmp_path.parent / "project"  # the same for all: its path may be printed
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(project, folder)
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Ann\n")))
        monkeypatch.setattr("sys.argv", ["wxb", *arguments])
        with pytest.raises(SystemExit) as exit_info:
            main()
        paths = [p for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock"]
        written = {p.relative_to(folder): p.read_bytes() for p in paths}
        return exit_info.value.code, *capsys.readouterr(), written

    key = tuple(line)
    outcomes[key] = without = outcomes.get(key) or outcome(line)
    assert without != outcome([*line, *added])
