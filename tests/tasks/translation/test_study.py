"""The study at a tiny size, from the grammar to the page, as the profile has it."""

import json
import re

import pytest

from tests import forked, traced
from tests.copied import Project

MEMBERS = ["translation-attention", "translation-gpt2"]


def tiny(params):
    params["portable"] = False  # which takes twice the time
    params["corpora"]["phrases"]["generate"]["labelled"] = 400
    params["backbones"]["phrases-pieces"]["tokenizer"]["vocabulary"] = 400
    small = {"embedding_size": 16, "hidden_size": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    for name in {*params["studies"]["translation"]["experiments"]} - {*MEMBERS}:
        del params["experiments"][name]
    for name in MEMBERS:
        block = params["experiments"][name]
        block["model"].update({k: v for k, v in small.items() if k in block["model"]})
        block["training"].update(epochs=1, batch_size=16)
    params["studies"]["translation"]["experiments"] = MEMBERS


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("translation") / "project")
    made.run("wxb", "params", "translation")
    made.edit(tiny)
    return made


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


def test_the_study_runs_from_the_grammar_to_the_page(project, traces):
    forked.stages(project, "report@translation", traces=traces)
    assert traced.undeclared(project, traces) == {}
    clean = json.loads((project.folder / "data/clean/phrases/profile.json").read_text())
    counts = clean["records"]
    assert counts["raw"] == sum(value for name, value in counts.items() if name != "raw")
    references = sum(split["references"] for split in clean["splits"].values())
    assert references == 400
    study = json.loads((project.folder / "reports/studies/translation.json").read_text())
    assert [*study["systems"]] == MEMBERS
    assert [*study["further"]] == ["combinations"]
    assert "sacrebleu" in study["signature"]
    page = (project.folder / "reports/translation.html").read_text()
    for section in ("kinds", "translations", "attention", "published"):
        assert f'<section id="{section}">' in page
    assert "23.23" in page


def test_another_beam_reruns_evaluate_alone(project):
    project.edit(
        lambda params: params["experiments"]["translation-gpt2"]["prediction"].update(
            beam=2, length_penalty=0.5
        )
    )
    ran = re.findall(
        r"Running stage '(\w+)@", project.run("dvc", "repro", "evaluate@translation-gpt2")
    )
    assert ran == ["evaluate"]


def test_what_is_trained_translates_with_the_options_asked_for(project):
    command = ["wxb", "predict", "-e", "translation-attention", "--json"]
    given = ["", "老师昨天买了三本书。", "\0 and 😀"]
    (project.folder / "given.txt").write_text("\n".join(given))
    greedy = project.run(*command, "--beam", "1", "given.txt")
    best = project.run(*command, "--beam=3", "--n-best", "2", "given.txt")
    for output, others in ((greedy, 0), (best, 1)):
        rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        assert [row["input"] for row in rows] == given
        assert rows[0]["translation"] == ""
        assert len(rows[1].get("others", [])) == others
    code, output = project.attempt(*command, "--bean", "3", "x")
    assert code != 0
    assert "bean" in output
    assert "beam (4)" in output
    assert project.attempt(*command, "--beam", "2", "--n-best", "3", "x")[0] != 0
