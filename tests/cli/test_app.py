"""The command `wxb` and its subcommands."""

import io
import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests import commands
from tests.project_copy import ROOT
from tests.reporting.conftest import comparison
from tests.repository import write
from wxb.cli.app import app, main
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.project import trained
from wxb.project.status import Change, Staleness
from wxb.reporting.pairs import conclusion
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import LABELLING, Span


@pytest.fixture
def project(cwd, params):
    return cwd


def wxb(project, *arguments):
    return commands.wxb(*arguments, cwd=project, path=[ROOT], PATH="", COLUMNS="200")


def test_the_version_is_printed(project):
    assert wxb(project, "--version").stdout.startswith("wxb 0.")


def test_settings_of_an_experiment_are_options_of_chat(project, monkeypatch):
    read = []
    monkeypatch.setattr(trained, "load", lambda name, **options: read.append(options) or object())
    CliRunner().invoke(app, ["chat", "-e", "x", "--max-new-tokens", "5"])
    assert read == [{"max_new_tokens": "5"}]


def test_commands_that_need_no_dvc_do_not_start_it(project, monkeypatch):
    monkeypatch.setattr("wxb.project.status.steps", lambda: pytest.fail("DVC was started"))
    assert "valid" in CliRunner().invoke(app, ["params"]).output
    failed = CliRunner().invoke(app, ["show", "ner-encodr"])
    assert "did you mean 'ner-encoder'" in str(failed.exception)


def test_params_are_checked(project):
    done = wxb(project, "params")
    assert done.stdout == "params.yaml is valid\n"
    assert done.stderr == "corpora.pii.path: demos/pii does not exist, so download@pii fails\n"


def test_table_before_a_run_is_an_error(project):
    failed = wxb(project, "table", "ner")
    assert failed.returncode == 1
    assert "dvc repro report@ner" in failed.stderr
    assert "did you mean 'ner'" in wxb(project, "table", "nre").stderr


STUDY = comparison({"ner-encoder": 0.75, "ner-decoder": 0.5}, groups=1)


def test_table_names_what_makes_its_study_stale(project, monkeypatch):
    write(project / "reports/studies/ner.json", STUDY)
    changes = [Change("threads", "1 -> 2"), Change("seed", "1 -> 2")]
    status = Staleness({"train@a": changes}, {"report@ner": ["train@a"]})
    monkeypatch.setattr("wxb.project.status.staleness", lambda: status)
    result = CliRunner().invoke(app, ["table", "ner"])
    assert result.stderr == (
        "wxb: ner is stale: train@a ran with another threads (1 -> 2); run `dvc repro report@ner`\n"
    )
    monkeypatch.setattr("wxb.project.status.staleness", Staleness)
    assert CliRunner().invoke(app, ["table", "ner"]).stderr == ""
    monkeypatch.setattr("wxb.project.status.staleness", lambda: Staleness(why_unknown="no lock"))
    stderr = CliRunner().invoke(app, ["table", "ner"]).stderr
    assert stderr == "wxb: staleness is unknown: no lock\n"


def test_table_and_index_show_a_study(project):
    write(project / "reports/studies/ner.json", STUDY)
    text = wxb(project, "table", "ner").stdout
    assert re.search(r"ner-encoder +a +0\.750 \(0\.740–0\.760\)", text)
    *_, sentences, page = text.splitlines()
    assert (sentences, page[:22]) == (conclusion(STUDY), "Page: reports/ner.html")
    result = wxb(project, "table", "--all")
    assert "0.750 (0.740–0.760)" in result.stdout
    assert "examples a second" not in result.stdout
    assert "share one group" in result.stdout, "a long line was cut off"
    assert "no report" in wxb(project, "report").stderr
    (project / "reports/ner.html").write_text("")
    write(project / "reports/cost/train/ner-encoder.json", {"seconds": 8.0})
    timed = wxb(project, "table", "ner", "--all").stdout
    assert f"Page: {project / 'reports/ner.html'}" in timed
    assert "| ner-encoder | 2.00 M (1.00 M trained) | 100 | 800 | 100 | 8.0 s |" in timed
    assert wxb(project, "report").returncode == 0
    page = (project / "reports/index.html").read_text()
    assert 'href="ner.html"' in page


@pytest.fixture
def evaluated(project):
    """A project with one clean corpus and one evaluated experiment."""
    gold, predicted = (Span(0, 3, "NAME"),), (Span(5, 6, "NAME"),)
    records = [Record(str(number), "Zoë\u2028東京", gold, "en", "") for number in range(2000)]
    splits = {"train": {}, "valid": {}, "test": {}}
    write(project / "data/clean/pii/profile.json", {"splits": splits})
    clean.write(project / "data/clean/pii/test.parquet", records, LABELLING)
    judged = [metrics.PredictionRow("0", "Zoë\u2028東京", gold, predicted, (0.5,))]
    evaluation.save_predictions(
        metrics.Scorer(), project / "reports/predictions/ner/ner-encoder", judged
    )
    return project


def test_export_writes_the_format_of_the_suffix_below_the_current_folder(evaluated):
    below = evaluated / "some/where"
    below.mkdir(parents=True)
    result = wxb(below, "export", "ner-encoder", "--output", "out/test.conll")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    text = (below / "out/test.conll").read_text(encoding="utf-8")
    assert text == "Zoë\tB-NAME\tO\n東\tO\tO\n京\tO\tB-NAME\n"
    lines = wxb(evaluated, "export", "pii").stdout.splitlines()
    assert len(lines) == 2000
    assert json.loads(lines[7]).items() >= {"id": "7", "language": "en"}.items()


def test_export_is_utf_8_and_quiet_if_the_reader_of_its_output_exits(evaluated):
    command = [sys.executable, "-c", "from wxb.cli.app import main; main()", "export", "pii"]
    export = subprocess.Popen(
        command,
        cwd=evaluated,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONIOENCODING": "ascii"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert json.loads(export.stdout.readline())["input"] == "Zoë\u2028東京"
    export.stdout.close()
    assert export.stderr.read() == b""
    assert export.wait() == 1
    export.stderr.close()


def test_output_is_utf_8_in_every_locale(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    monkeypatch.setattr("wxb.cli.app.app", lambda prog_name: print("東", flush=True))
    main()
    assert sys.stdout.buffer.getvalue() == "東\n".encode()


def test_a_forbidden_file_is_an_error_of_one_line(monkeypatch, capsys):
    def forbidden(prog_name):
        raise PermissionError(13, "Permission denied", "models/x")

    monkeypatch.setattr("wxb.cli.app.app", forbidden)
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err.startswith("wxb: models/x: Permission denied; change")


def test_an_interrupt_while_commands_are_built_leaves_no_traceback():
    code = """
import os, signal, sys, typer.main
sys.argv = ["wxb", "--version"]
from wxb.cli import app

build = typer.main.get_command
typer.main.get_command = lambda *args: os.kill(os.getpid(), signal.SIGINT) or build(*args)
app.main()
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (130, "wxb: interrupted\n")
