"""The command `wxb compare`."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests import demo
from tests.reporting.conftest import comparison
from tests.repository import commit, git, write
from wxb.cli.app import app
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.project import status

WIDTH = 80


def wxb(*arguments):
    """Exit code and output of `wxb compare`, on a terminal of 80 columns."""
    result = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, ["compare", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def write_results(shift=0.0, weights="a"):
    """Write the results of a run; `shift` is added to all scores."""
    names = load().studies["ner"].experiments
    scores = {name: 0.5 + index / 100 + shift for index, name in enumerate(names)}
    study = {**comparison(scores), "documents": 1971, "spans": 6620, "seed": 1}
    write("reports/studies/ner.json", study)
    for name, f1 in scores.items():
        metrics = {"f1": f1, "f1_low": f1 - 0.01, "f1_high": f1 + 0.01}
        further = {f"situations_{key}": value for key, value in metrics.items()}
        write(f"reports/metrics/ner/{name}.json", {"precision": f1 / 2, **metrics, **further})
    write("reports/metrics/lessons/images.json", {"accuracy": 0.9 + shift})
    outs = [{"path": f"models/{name}", "md5": weights} for name in names]
    backbones = {load().experiments[name].backbone for name in names}
    stages = [(verb, name) for verb in ("train", "evaluate") for name in names]
    stages += [("pretrain", backbone) for backbone in backbones] + [("lesson", "images")]
    for verb, name in stages:
        write(path := f"reports/cost/{verb}/{name}.json", {"device": "a CPU"})
        outs.append({"path": path, "md5": hashlib.md5(Path(path).read_bytes()).hexdigest()})
    write("dvc.lock", {"stages": {"train": {"outs": outs}}})


@pytest.fixture
def project(cwd):
    """A repository with committed results."""
    demo.write(cwd)
    git("init", "-q")
    write_results()
    Path(".gitignore").write_text("reports/cost\nreports/*.html\n")
    commit()
    shutil.rmtree("reports/cost")


def summary(*arguments):
    """The first line of `wxb compare --brief`, without the versions."""
    return wxb("--brief", *arguments)[1].splitlines()[0].partition(": ")[2]


def test_committed_results_are_not_compared_with_themselves(project):
    assert summary() == "10 not run here"
    code, output = wxb("--study", "ner")
    assert code == 0
    assert output.startswith(f"ner, compared with HEAD ({git('rev-parse', '--short', 'HEAD')}): 9")


def test_a_run_with_the_same_results_has_the_same_bytes(project):
    write_results()
    assert summary("--study", "ner") == "9 of 9 have the same bytes"
    assert len(wxb("--brief", "--study", "ner")[1].splitlines()) == 1


def test_stale_results_are_named(project, monkeypatch):
    changes = {"report@ner": [status.Change("threads", "1 -> 2")]}
    monkeypatch.setattr("wxb.project.status.staleness", lambda: status.Staleness(changes))
    assert "ner is stale: report@ner" in CliRunner().invoke(app, ["compare"]).stderr
    assert CliRunner().invoke(app, ["compare", "HEAD", "HEAD"]).stderr == ""


def test_a_partial_run_counts_the_rest(project):
    write_results()
    other = load().studies["ner"].experiments[0]
    for verb in ("train", "evaluate"):
        Path(f"reports/cost/{verb}/{other}.json").unlink()
    assert summary("--study", "ner") == "8 of 8 have the same bytes, 1 not run here"


def test_the_table_fits_80_columns(project):
    write_results(shift=0.005, weights="b")
    code, output = wxb("--study", "ner")
    assert code == 0
    rows = output.split("\n\n")[0].splitlines()
    assert max(map(len, rows)) <= WIDTH
    names = [row.strip() for row in rows[2::3]]
    assert names == load().studies["ner"].experiments
    assert {row.split()[0] for row in rows[4::3]} == {"situations_f1"}
    assert "9 within (ranges: 95% intervals" in output


@pytest.mark.parametrize(("shift", "outside"), [(0.0, False), (0.005, False), (0.02, True)])
def test_json_and_exit_code_say_whether_a_score_is_outside(project, shift, outside):
    write_results(shift)
    assert wxb("--brief")[0] == 0
    assert wxb("--brief", "--exit-code")[0] == outside
    content = json.loads(wxb("--json", "--study", "ner")[1])
    assert content["outside"] is outside
    names = [score["name"] for score in content["scores"]]
    assert names[::2] == load().studies["ner"].experiments


def test_two_revisions_are_compared_without_the_working_tree(project):
    first = git("rev-parse", "HEAD")
    write_results(shift=0.02)
    commit()
    write_results(shift=0.9)
    assert "9 outside" in summary("HEAD~1", "HEAD", "--study", "ner")
    assert summary(first, "HEAD~1", "--study", "ner") == "9 of 9 have the same bytes"


def test_without_results_the_error_names_the_command(project):
    shutil.rmtree("reports")
    with pytest.raises(WxbError, match=r"no results to compare.*make run"):
        wxb()
    with pytest.raises(WxbError, match="STUDY=gates"):
        wxb("--study", "gates")
    write("reports/metrics/lessons/gates.json", {"or": 1.0})
    assert summary() == "0 of 11 have the same bytes, 1 new, 10 missing"
