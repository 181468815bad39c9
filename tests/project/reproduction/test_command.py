"""`wxb compare`, as a user meets it."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.reporting.conftest import comparison
from tests.repository import commit, git, write
from wxb import paths
from wxb.cli.app import app
from wxb.errors import WxbError
from wxb.params import load
from wxb.project.reproduction import promise

ROOT = Path(__file__).parents[3]
WIDTH = 80


def wxb(*arguments):
    """Exit code and output of `wxb compare`, on a terminal of 80 columns."""
    told = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, ["compare", *arguments])
    if told.exception and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told.exit_code, told.output


def results(shift=0.0, weights="a"):
    """Write what the pipeline would: all scores are moved by `shift`."""
    names = load().studies["ner"].experiments
    scores = {name: 0.5 + place / 100 + shift for place, name in enumerate(names)}
    study = {**comparison(scores), "documents": 1971, "spans": 6620, "seed": 1}
    write("reports/studies/ner.json", study)
    for name, f1 in scores.items():
        found = {"precision": f1 / 2, "f1": f1, "f1_low": f1 - 0.01, "f1_high": f1 + 0.01}
        write(f"reports/metrics/ner/{name}.json", found)
    write("reports/metrics/lessons/images.json", {"accuracy": 0.9 + shift})
    outs = [{"path": f"models/{name}", "md5": weights} for name in names]
    write("dvc.lock", {"stages": {"train": {"outs": outs}}})


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with committed results, and no terminal's width but ours."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    git("init", "-q")
    results()
    commit()
    return tmp_path


def test_without_a_run_everything_is_as_committed(project):
    head = f"HEAD ({git('rev-parse', '--short', 'HEAD')})"
    code, told = wxb("--brief")
    assert code == 0
    assert told.splitlines() == [
        f"ner: same bytes as {head}: 7 of 7",
        f"images: same bytes as {head}: 1 of 1",
    ]


def test_a_study_of_another_profile_is_kept_and_counts_no_bytes(project):
    shutil.copytree(ROOT / "params", project / "params")
    study = comparison({"reviews-a": 0.5, "reviews-b": 0.6})
    write("reports/studies/reviews.json", study)
    for name in study["systems"]:
        found = {"accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6}
        write(f"reports/metrics/reviews/{name}.json", found)
    commit()
    head = f"HEAD ({git('rev-parse', '--short', 'HEAD')})"
    told = (
        f"reviews: kept from {head}, of another profile;"
        " `wxb params reviews && dvc repro report@reviews` makes it here"
    )
    assert told in wxb("--brief")[1].splitlines()
    assert " ".join(wxb("--study", "reviews")[1].split()) == told
    write("reports/metrics/reviews/reviews-a.json", {**found, "accuracy": 0.3})
    assert "not all reproduced, beyond noise" in wxb("--brief", "--study", "reviews")[1]


def test_all_is_told_in_80_columns_and_nothing_is_cut(project):
    results(shift=0.005, weights="b")
    params = Path("params.yaml").read_text()
    Path("params.yaml").write_text(params.replace("seed: 1 ", "seed: 2 ", 1))
    code, told = wxb("--study", "ner")
    assert code == 0
    assert max(map(len, told.splitlines())) <= WIDTH
    assert "…" not in told
    words = " ".join(told.split())
    for name in load().studies["ner"].experiments:
        assert name in words
        assert f"{name} precision 0." in words
    assert "7 of 7 scores inside their 95% intervals, 0 of 7 same bytes" in words
    assert "seed 1 -> 2" in words
    assert "within noise" in words


@pytest.mark.parametrize(("shift", "code"), [(0.0, 0), (0.005, 0), (0.02, 1)])
def test_the_exit_code_says_whether_anything_is_beyond_noise(project, shift, code):
    results(shift)
    assert wxb("--brief")[0] == 0
    assert wxb("--brief", "--exit-code")[0] == code
    found = json.loads(wxb("--json")[1])
    assert found["beyond_noise"] is bool(code)
    assert set(found["results"][0]["scores"]) == set(load().studies["ner"].experiments)


def test_two_revisions_are_compared_without_the_working_tree(project):
    first = git("rev-parse", "HEAD")
    results(shift=0.02)
    commit()
    results(shift=0.9)
    assert "not reproduced" in wxb("HEAD~1", "HEAD", "--brief")[1]
    assert wxb(first, "HEAD~1", "--brief", "--study", "ner")[1] == (
        f"ner: same bytes as {first[:7]}: 7 of 7\n"
    )


def test_without_results_the_command_is_named_that_makes_them(project):
    shutil.rmtree("reports")
    with pytest.raises(WxbError, match=r"nothing made yet.*make run"):
        wxb()
    for study, command in {"ner": "report@ner", "gates": "lesson@gates"}.items():
        with pytest.raises(WxbError, match=f"dvc repro {command}"):
            wxb("--study", study)
    write("reports/metrics/lessons/gates.json", {"or": 1.0})
    told = wxb("--brief")[1]
    assert "ner: nothing to compare, no results of it here; `dvc repro report@ner` makes" in told
    assert "gates: nothing to compare, no results of it at HEAD" in told


def test_a_repository_without_commits_has_nothing_to_compare_with(project):
    shutil.rmtree(".git")
    git("init", "-q")
    assert wxb("--brief", "--study", "ner") == (
        0,
        "ner: nothing to compare, no results of it at HEAD (no commits yet)\n",
    )


def test_a_promise_for_these_parameters_is_told(project):
    write("models/a/model.safetensors", "weights")
    paths.PROMISE.write_text(json.dumps(promise.promised()))
    told = wxb("--brief", "--study", "ner")[1]
    assert "portable: 9 of 9 files have the bytes that reports/tiny.json promises" in told
    assert json.loads(wxb("--json")[1])["portable"] == {
        "files": 9,
        "missing": [],
        "differing": [],
    }
    assert "portable" not in wxb("HEAD", "HEAD", "--brief")[1]


def test_unknown_names_are_told_with_the_nearest(project):
    with pytest.raises(WxbError, match=r"'mian'.*git log"):
        wxb("mian")
    with pytest.raises(WxbError, match="did you mean 'images'"):
        wxb("--study", "image")
