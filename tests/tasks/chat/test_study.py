"""The study at a tiny size, from the questions to the page, as the profile has it."""

import json
import re

import pytest

from tests import forked, traced
from tests.copied import Project

MEMBERS = ["chat-few-shot", "chat-qlora-neftune", "chat-qlora-neftune-padded"]


def tiny(params):
    params["portable"] = False  # which takes twice the time
    params["corpora"]["chat"]["generate"].update(labelled=400, unlabelled=100)
    params["corpora"]["chat"]["split"].update(test=0.15, valid=0.15)
    backbone = params["backbones"]["chat-llama"]
    backbone["tokenizer"]["vocabulary"] = 400
    backbone["architecture"].update(hidden_size=64, num_hidden_layers=1, intermediate_size=64)
    backbone["pretraining"].update(steps=4, batch_size=8)
    for name in {*params["studies"]["chat"]["experiments"]} - {*MEMBERS}:
        del params["experiments"][name]
    for name in MEMBERS:
        params["experiments"][name]["training"].update(epochs=1)
        params["experiments"][name]["prediction"].update(max_new_tokens=6)
        params["experiments"][name]["prediction"]["grid"] = ["zero-shot", "system"]
    params["studies"]["chat"]["experiments"] = MEMBERS


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("chat") / "project")
    made.run("wxb", "params", "chat")
    made.edit(tiny)
    return made


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


def test_the_study_runs_from_the_questions_to_the_page(project, traces):
    forked.stages(project, "report@chat", traces=traces)
    assert traced.undeclared(project, traces) == {}
    profile = json.loads((project.folder / "data/clean/chat/profile.json").read_text())
    records = profile["records"]
    assert records["raw"] == sum(value for name, value in records.items() if name != "raw")
    study = json.loads((project.folder / "reports/studies/chat.json").read_text())
    assert [*study["systems"]] == MEMBERS
    assert [*study["further"]] == ["kinds", "wordings"]
    for name in MEMBERS:
        measured = json.loads((project.folder / f"reports/metrics/chat/{name}.json").read_text())
        assert measured["perplexity"] > 1
        assert measured["scored"] == study["support"]
        account = json.loads((project.folder / f"data/targets/{name}/alignment.json").read_text())
        for row in account.values():
            assert row["gold"] == row["kept"] + row["shortened"] + row["lost"]
    page = (project.folder / "reports/chat.html").read_text()
    for section in ("kinds", "prompts", "replies", "published"):
        assert f'<section id="{section}">' in page
    assert "1.881" in page


def test_another_prompt_reruns_evaluate_alone(project):
    project.edit(
        lambda params: params["experiments"]["chat-few-shot"]["prediction"].update(shots=2)
    )
    ran = re.findall(
        r"Running stage '(\w+)@", project.run("dvc", "repro", "evaluate@chat-few-shot")
    )
    assert ran == ["evaluate"]


def test_what_is_trained_answers_in_a_pipe_and_is_merged(project):
    project.run("wxb", "merge", "chat-qlora-neftune", "--output", "merged")
    asked = "printf 'What is 1 plus 2?\\n你好\\n/reset\\n' | wxb chat -e merged"
    assert "begun anew" in project.run("bash", "-c", asked)
    found = project.run("wxb", "predict", "-e", "chat-qlora-neftune", "--json", "Spell cat.")
    rows = [json.loads(line) for line in found.splitlines() if line.startswith("{")]
    assert [row["input"] for row in rows] == ["Spell cat."]
    assert {"reply", "ended"} <= rows[0].keys()
    code, told = project.attempt("wxb", "chat", "-e", "chat-nothing")
    assert code == 1
    assert "chat-nothing" in told
