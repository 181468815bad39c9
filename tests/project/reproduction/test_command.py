"""`wxb compare`, as a user meets it."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.reporting.conftest import comparison
from tests.repository import commit, git, write
from wxb.cli.app import app
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.project.reproduction import promise

ROOT = Path(__file__).parents[3]
WIDTH = 80


def wxb(*arguments):
    """Exit code and output of `wxb compare`, on a terminal of 80 columns."""
    told = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, ["compare", *arguments])
    if told.exception and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told.exit_code, told.output


def results(shift=0.0, weights="a", cpu="Abacus"):
    """Write what a run on a CPU would: all scores are moved by `shift`."""
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
    backbones = {load().experiments[name].backbone for name in names}
    stages = [(verb, name) for verb in ("train", "evaluate") for name in names]
    stages += [("pretrain", backbone) for backbone in backbones] + [("lesson", "images")]
    for verb, name in stages:
        machine = {"device": cpu, "cpu": cpu, "capability": "AVX2", "torch": "2"}
        write(f"reports/cost/{verb}/{name}.json", {**machine, "finished": "2030-01-01"})


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with committed results, and no terminal's width but ours."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    git("init", "-q")
    results()
    Path(".gitignore").write_text("reports/cost\nreports/*.html\n")
    commit()
    shutil.rmtree("reports/cost")
    return tmp_path


def head():
    return f"HEAD ({git('rev-parse', '--short', 'HEAD')})"


def test_without_a_run_the_committed_results_are_not_compared_with_themselves(project):
    assert wxb("--brief") == (
        0,
        f"nothing was run here of ner and images; these are the results of {head()}.\n",
    )
    assert wxb("--brief", "--study", "ner")[1].splitlines() == [
        f"ner: nothing was run here; these are the results of {head()}. `dvc repro report@ner`"
        " runs it.",
        "Page: reports/ner.html does not exist; `dvc repro report@ner` makes it",
    ]


def test_a_run_with_the_same_results_has_the_same_bytes(project):
    results()
    write("reports/ner.html", "")
    assert wxb("--brief", "--study", "ner")[1].splitlines() == [
        f"ner: reproduced. Compared with {head()}, 7 of 7 have the same bytes.",
        f"Page: {project / 'reports/ner.html'}",
    ]


@pytest.mark.parametrize(
    ("cpu", "words"),
    [("Abacus", "Same kind of CPU as {}"), ("Pascaline", "Another kind of CPU than {}")],
)
def test_costs_and_provenance_say_on_what_machines_both_were_made(project, cpu, words):
    machine = {"device": "Abacus", "cpu": "Abacus", "capability": "AVX2", "torch": "2"}
    digest = hashlib.sha256(Path("reports/studies/ner.json").read_bytes()).hexdigest()
    noted = {"ner": {"sha256": digest, "machines": [machine], "finished": "2030-01-01"}}
    write("reports/provenance.json", noted)
    commit()
    results(shift=0.005, weights="b", cpu=cpu)
    assert words.format(head()) in wxb("--brief", "--study", "ner")[1]


def test_what_was_run_in_part_names_the_rest(project):
    results()
    kept = load().studies["ner"].experiments[0]
    for verb in ("train", "evaluate"):
        Path(f"reports/cost/{verb}/{kept}.json").unlink()
    told = wxb("--brief", "--study", "ner")[1]
    assert f"6 of 6 have the same bytes. Not run here: {kept}." in told


def test_a_study_of_ones_own_names_its_page(project):
    shutil.rmtree(".git")
    git("init", "-q")
    results()
    write("reports/ner.html", "")
    assert wxb("--brief", "--study", "ner") == (
        0,
        "ner: HEAD (no commits yet) has no results of it to compare with.\n"
        f"Page: {project / 'reports/ner.html'}\n",
    )


def test_a_study_of_another_profile_is_kept_and_counts_no_bytes(project):
    shutil.copytree(ROOT / "params", project / "params")
    study = comparison({"reviews-a": 0.5, "reviews-b": 0.6})
    write("reports/studies/reviews.json", study)
    for name in study["systems"]:
        found = {"accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6}
        write(f"reports/metrics/reviews/{name}.json", found)
    commit()
    told = (
        f"reviews: nothing was run here; these are the results of {head()}."
        " `wxb params reviews && dvc repro report@reviews` runs it."
    )
    assert wxb("--brief", "--study", "reviews")[1] == f"{told}\n"
    assert " ".join(wxb("--study", "reviews")[1].split()) == told
    write("reports/metrics/reviews/reviews-a.json", {**found, "accuracy": 0.3})
    assert "reviews: undecided" in wxb("--brief", "--study", "reviews")[1]


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
    assert "7 of 7 are inside their 95% intervals (test records)" in words
    assert "seed 1 -> 2" in words
    assert "inside" in words


@pytest.mark.parametrize(("shift", "code"), [(0.0, 0), (0.005, 0), (0.02, 1)])
def test_the_exit_code_says_whether_anything_is_outside(project, shift, code):
    results(shift)
    assert wxb("--brief")[0] == 0
    assert wxb("--brief", "--exit-code")[0] == code
    found = json.loads(wxb("--json")[1])
    assert found["outside"] is bool(code)
    assert set(found["results"][0]["scores"]) == set(load().studies["ner"].experiments)


def test_two_revisions_are_compared_without_the_working_tree(project):
    first = git("rev-parse", "HEAD")
    results(shift=0.02)
    commit()
    results(shift=0.9)
    assert "ner: undecided" in wxb("HEAD~1", "HEAD", "--brief")[1]
    assert wxb(first, "HEAD~1", "--brief", "--study", "ner")[1] == (
        f"ner: reproduced. Compared with {first[:7]}, 7 of 7 have the same bytes.\n"
    )


def test_without_results_the_command_is_named_that_makes_them(project):
    shutil.rmtree("reports")
    with pytest.raises(WxbError, match=r"no results to compare.*make run"):
        wxb()
    for study, command in {"ner": "report@ner", "gates": "lesson@gates"}.items():
        with pytest.raises(WxbError, match=f"dvc repro {command}"):
            wxb("--study", study)
    write("reports/metrics/lessons/gates.json", {"or": 1.0})
    told = wxb("--brief")[1]
    assert "ner: no results here; `dvc repro report@ner` makes" in told
    assert f"gates: {head()} has no results of it" in told


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
