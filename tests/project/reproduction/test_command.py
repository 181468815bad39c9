"""The command `wxb compare`."""

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
from wxb.project.reproduction.expected_hashes import current_hashes

ROOT = Path(__file__).parents[3]
WIDTH = 80


def wxb(*arguments):
    """Exit code and output of `wxb compare`, on a terminal of 80 columns."""
    result = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, ["compare", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def write_results(shift=0.0, weights="a", cpu="Abacus"):
    """Write the results of a run; `shift` is added to all scores."""
    names = load().studies["ner"].experiments
    scores = {name: 0.5 + index / 100 + shift for index, name in enumerate(names)}
    study = {**comparison(scores), "documents": 1971, "spans": 6620, "seed": 1}
    write("reports/studies/ner.json", study)
    for name, f1 in scores.items():
        metrics = {"precision": f1 / 2, "f1": f1, "f1_low": f1 - 0.01, "f1_high": f1 + 0.01}
        write(f"reports/metrics/ner/{name}.json", metrics)
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
    """A repository with committed results."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    git("init", "-q")
    write_results()
    Path(".gitignore").write_text("reports/cost\nreports/*.html\n")
    commit()
    shutil.rmtree("reports/cost")
    return tmp_path


def head():
    return f"HEAD ({git('rev-parse', '--short', 'HEAD')})"


def test_committed_results_are_not_compared_with_themselves(project):
    assert wxb("--brief") == (
        0,
        f"Nothing was run here, so nothing is compared: all results are those of {head()}.\n",
    )
    assert wxb("--brief", "--study", "ner")[1].splitlines() == [
        f"ner: not run here; these are the results of {head()}. `dvc repro report@ner` runs it.",
        "Page: reports/ner.html does not exist; run `dvc repro report@ner`",
    ]


def test_a_run_with_the_same_results_has_the_same_bytes(project):
    write_results()
    write("reports/ner.html", "")
    assert wxb("--brief", "--study", "ner")[1].splitlines() == [
        f"ner: reproduced. Compared with {head()}, 9 of 9 have the same bytes.",
        f"Page: {project / 'reports/ner.html'}",
    ]


@pytest.mark.parametrize(
    ("cpu", "words"),
    [("Abacus", "Same type of CPU as {}"), ("Pascaline", "Another type of CPU than {}")],
)
def test_machines_come_from_costs_and_provenance(project, cpu, words):
    machine = {"device": "Abacus", "cpu": "Abacus", "capability": "AVX2", "torch": "2"}
    digest = hashlib.sha256(Path("reports/studies/ner.json").read_bytes()).hexdigest()
    provenance = {"ner": {"sha256": digest, "machines": [machine], "finished": "2030-01-01"}}
    write("reports/provenance.json", provenance)
    commit()
    write_results(shift=0.005, weights="b", cpu=cpu)
    assert words.format(head()) in wxb("--brief", "--study", "ner")[1]


def test_a_partial_run_names_the_rest(project):
    write_results()
    other = load().studies["ner"].experiments[0]
    for verb in ("train", "evaluate"):
        Path(f"reports/cost/{verb}/{other}.json").unlink()
    output = wxb("--brief", "--study", "ner")[1]
    assert f"8 of 8 have the same bytes. Not run here: {other}." in output


def test_a_new_study_names_only_its_page(project):
    shutil.rmtree(".git")
    git("init", "-q")
    write_results()
    write("reports/ner.html", "")
    assert wxb("--brief", "--study", "ner") == (0, f"Page: {project / 'reports/ner.html'}\n")
    assert "(no commits yet) has no results to compare with." in wxb("--study", "ner")[1]


def test_a_committed_study_of_another_profile_was_not_run(project):
    shutil.copytree(ROOT / "params", project / "params")
    study = comparison({"reviews-a": 0.5, "reviews-b": 0.6})
    write("reports/studies/reviews.json", study)
    for name in study["systems"]:
        metrics = {"accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6}
        write(f"reports/metrics/reviews/{name}.json", metrics)
    commit()
    line = (
        f"reviews: not run here; these are the results of {head()}."
        " `wxb params reviews && dvc repro report@reviews` runs it."
    )
    assert wxb("--brief", "--study", "reviews")[1] == f"{line}\n"
    assert " ".join(wxb("--study", "reviews")[1].split()) == line
    write("reports/metrics/reviews/reviews-a.json", {**metrics, "accuracy": 0.3})
    assert "reviews: undecided" in wxb("--brief", "--study", "reviews")[1]


def test_all_details_fit_80_columns(project):
    write_results(shift=0.005, weights="b")
    params = Path("params.yaml").read_text()
    Path("params.yaml").write_text(params.replace("seed: 1 ", "seed: 2 ", 1))
    code, output = wxb("--study", "ner")
    assert code == 0
    assert max(map(len, output.splitlines())) <= WIDTH
    assert "…" not in output
    words = " ".join(output.split())
    for name in load().studies["ner"].experiments:
        assert name in words
        assert f"{name} precision 0." in words
    assert "9 of 9 are inside their 95% intervals (test records)" in words
    assert "seed 1 -> 2" in words
    assert "inside" in words


@pytest.mark.parametrize(("shift", "code"), [(0.0, 0), (0.005, 0), (0.02, 1)])
def test_the_exit_code_is_1_if_a_score_is_outside(project, shift, code):
    write_results(shift)
    assert wxb("--brief")[0] == 0
    assert wxb("--brief", "--exit-code")[0] == code
    content = json.loads(wxb("--json")[1])
    assert content["outside"] is bool(code)
    assert set(content["results"][0]["scores"]) == set(load().studies["ner"].experiments)


def test_a_comment_has_only_changes_beyond_noise(project):
    comment = wxb("--markdown")[1]
    assert comment.startswith("### Results of the working tree compared with HEAD (")
    assert "No score changed beyond noise." in comment
    write_results(shift=0.005)
    metrics = {"precision": 0.1, "f1": 0.9, "f1_low": 0.8, "f1_high": 1.0}
    write("reports/metrics/ner/ner-decoder.json", metrics)
    comment = wxb("--markdown", "--study", "ner")[1]
    rows = [line for line in comment.splitlines() if line.startswith("| ner")]
    assert rows == ["| ner | ner-decoder | f1 | 0.5100 (0.5000–0.5200) | 0.9000 | outside |"]
    assert "8 of 9 are inside their 95% intervals" in comment
    assert "Parameters that differ" not in comment
    params = Path("params.yaml").read_text()
    Path("params.yaml").write_text(params.replace("seed: 1 ", "seed: 2 ", 1))
    comment = wxb("--markdown", "--study", "ner")[1]
    assert (
        "<details><summary>Parameters that differ: 1</summary>\n\n```text\nseed: 1 -> 2" in comment
    )
    assert "0 of 8 are." not in comment


def test_a_comment_names_changes_of_order_beyond_noise(project):
    write_results()
    scores = {"ner-encoder": 0.9, "ner-decoder": 0.1}
    write("reports/studies/ner.json", comparison(scores))
    commit()
    write("reports/studies/ner.json", comparison(dict(zip(scores, (0.1, 0.9), strict=True))))
    metrics = {"precision": 0.1, "f1": 0.1, "f1_low": 0.0, "f1_high": 0.2}
    write("reports/metrics/ner/ner-encoder.json", metrics)
    comment = wxb("--markdown", "--study", "ner")[1]
    swap = f"- ner-encoder and ner-decoder: +0.800 at {head()} (beyond noise), -0.800 here (beyond"
    assert swap in comment


def test_two_revisions_are_compared_without_the_working_tree(project):
    first = git("rev-parse", "HEAD")
    write_results(shift=0.02)
    commit()
    write_results(shift=0.9)
    assert "ner: undecided" in wxb("HEAD~1", "HEAD", "--brief")[1]
    assert wxb(first, "HEAD~1", "--brief", "--study", "ner")[1] == (
        f"ner: reproduced. Compared with {first[:7]}, 9 of 9 have the same bytes.\n"
    )


def test_without_results_the_error_names_the_command(project):
    shutil.rmtree("reports")
    with pytest.raises(WxbError, match=r"no results to compare.*make run"):
        wxb()
    for study, command in {"ner": "report@ner", "gates": "lesson@gates"}.items():
        with pytest.raises(WxbError, match=f"dvc repro {command}"):
            wxb("--study", study)
    write("reports/metrics/lessons/gates.json", {"or": 1.0})
    output = wxb("--brief")[1]
    assert "ner: no results here; run `dvc repro report@ner`." in output
    assert f"gates: {head()} has no results" in output


def test_expected_hashes_of_these_parameters_are_checked(project):
    write_results()
    write("models/a/model.safetensors", "weights")
    paths.EXPECTED_HASHES.write_text(json.dumps(current_hashes()))
    output = wxb("--brief", "--study", "ner")[1]
    assert "portable: 10 of 10 files have the hashes in reports/tiny.json" in output
    assert json.loads(wxb("--json")[1])["portable"] == {
        "files": 10,
        "missing": [],
        "differing": [],
    }
    assert "portable" not in wxb("HEAD", "HEAD", "--brief")[1]


def test_unknown_names_are_errors_with_the_nearest(project):
    with pytest.raises(WxbError, match=r"'mian'.*git log"):
        wxb("mian")
    with pytest.raises(WxbError, match="did you mean 'images'"):
        wxb("--study", "image")
