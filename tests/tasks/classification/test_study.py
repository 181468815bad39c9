"""A study of texts as users run it, at the smallest size: stages, table, page, card, use."""

import hashlib
import json

import pytest

import wxb
from tests import forked, traced
from tests.copied import Project
from tests.test_pipeline import ran

KEPT = ["reviews-tfidf", "reviews-bilstm", "reviews-transformer-cls"]


def small(params):
    """Three ways of the study on few records, seconds each."""
    params["portable"], params["resamples"] = False, 50
    params["corpora"]["reviews"]["generate"].update(labelled=200, unlabelled=0)
    for name in {*params["experiments"]} - {*KEPT}:
        del params["experiments"][name]
    params["studies"]["reviews"]["experiments"] = KEPT
    del params["studies"]["ner"]
    for name in ("reviews-encoder", "reviews-minilm", "encoder", "decoder"):
        del params["backbones"][name]
    params["lessons"], params["parity"] = {}, {}
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    params["backbones"]["reviews-initial"]["architecture"].update(shape, intermediate_size=32)
    for name in KEPT[1:]:
        params["experiments"][name]["training"].update(epochs=1)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("reviews") / "project")
    made.run("wxb", "params", "reviews")
    made.edit(small)
    traces = made.folder.parent / "traces"
    traces.mkdir()
    forked.stages(made, "report@reviews", traces=traces)
    made.traces = traces
    return made


def test_its_stages_declare_what_they_import(project):
    verbs = {stage.partition("@")[0] for stage in traced.imported(project.traces)}
    assert verbs > {"train", "evaluate", "report"}
    assert traced.undeclared(project, project.traces) == {}


def test_dvc_finds_nothing_to_do_and_makes_the_same_bytes(project):
    assert "up to date" in project.run("dvc", "repro", "report@reviews")
    files = [
        path
        for name in ("models/reviews-tfidf", "models/reviews-bilstm", "reports/metrics/reviews")
        for path in sorted((project.folder / name).rglob("*"))
        if path.is_file()
    ]
    before = [hashlib.sha256(path.read_bytes()).digest() for path in files]
    again = ["train@reviews-tfidf", "train@reviews-bilstm"]
    output = project.run("dvc", "repro", "--force", "--single-item", *again)
    assert ran(output) == {*again}
    assert [hashlib.sha256(path.read_bytes()).digest() for path in files] == before


def test_tables_pages_and_cards_tell_of_it(project):
    assert "accuracy" in project.run("wxb", "table", "reviews")
    page = (project.folder / "reports/reviews.html").read_text(encoding="utf-8")
    answer = page[page.index('class="answer"') :]
    assert answer.index("A neural network is") < answer.index("</p>")
    for told in ("By class", "Calibration", "What decides", "AUROC", "expected calibration error"):
        assert told in page
    assert "inputs a second" in page
    card = project.run("wxb", "card", "reviews-transformer-cls")
    assert 'pipeline("text-classification"' in card
    assert "It is no model of transformers." in project.run("wxb", "card", "reviews-tfidf")


def test_a_text_gets_its_class_and_probabilities(project):
    told = project.run("wxb", "predict", "-e", "reviews-tfidf", "--json", "The plot is good.")
    row = json.loads(told.splitlines()[-1])
    assert row["label"] in ("positive", "negative")
    assert sum(row["probabilities"].values()) == pytest.approx(1)
    assert "evidence" not in row  # which params.yaml asks for, but for the page


def test_what_decides_is_told_where_it_is_asked_for(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    good = ["The plot is good."]
    assert wxb.load("reviews-tfidf").predict(good)[0].evidence is None
    assert wxb.load("reviews-tfidf", batch_size=8).predict(good)[0].evidence is None
    assert wxb.load("reviews-tfidf", explained=1).predict(good)[0].evidence is not None


def test_nothing_that_loads_code_is_kept(project):
    kept = [path for path in (project.folder / "models").rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} == {".json", ".safetensors"}
