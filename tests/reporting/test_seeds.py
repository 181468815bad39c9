"""The committed study of several seeds, and its table in README."""

import json
from pathlib import Path

import pytest

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.project import readme, revisions
from wxb.project.reproduction import seeds
from wxb.reporting.tables import over_seeds


class Index:
    """A git index with a study of two seeds."""

    name = "the index"

    def __init__(self, study):
        self.study = study

    def read(self, path):
        return (
            json.dumps(self.study).encode()
            if path == paths.SEEDS.as_posix() and self.study
            else None
        )


@pytest.fixture
def study(tree):
    content = tree(["ner-encoder", "ner-a"], further=["new"]).comparison
    content["seeds"] = [4, 5]
    for system in (*content["systems"].values(), *content["further"]["new"]["systems"].values()):
        system["f1_by_run"] = [0.25, 0.75]
    return content


def test_every_seed_and_the_mean_are_shown(study):
    header, _, encoder, _ = over_seeds(study).splitlines()
    assert header.startswith(
        "| experiment | seed 4 | seed 5 | test: mean ± deviation (95% interval)"
    )
    assert "| new: mean ± deviation (95% interval) |" in header
    score = study["systems"]["ner-encoder"]["f1"]["value"]
    assert encoder.startswith(f"| ner-encoder | 0.250 | 0.750 | {score:.3f} ± 0.354 (")


def test_readme_shows_what_the_index_has(study, monkeypatch):
    made = {"finished": "2030-01-02T03:04:05+00:00", "machines": [{"device": "Abacus"}]}
    monkeypatch.setattr(revisions, "index", lambda: Index({**study, "made": made}))
    block = readme.refreshed("<!-- generated: seeds -->\n<!-- end -->\n")
    assert over_seeds(study) in block
    assert "Made on Abacus, finished on 2030-01-02." in block
    monkeypatch.setattr(revisions, "index", lambda: Index(None))
    assert readme.refreshed(block) == "<!-- generated: seeds -->\n<!-- end -->\n"


def test_one_seed_is_not_kept(tree):
    made = tree(["ner-encoder", "ner-a"])
    Path("params.yaml").write_text(json.dumps(made.params.model_dump(mode="json")))
    with pytest.raises(WxbError, match=r"several seeds; run `wxb params seeds`"):
        seeds.study_with_seeds()


def test_the_study_of_several_seeds_is_kept_whatever_its_name(tree, monkeypatch):
    made = tree(["ner-encoder", "ner-a"])
    content = made.params.model_dump(mode="json")
    content["studies"]["ner"]["seed"] = [4, 5]
    Path("params.yaml").write_text(json.dumps(content))
    with pytest.raises(WxbError, match="several seeds"):  # it was made with one
        seeds.study_with_seeds()
    path = Path("reports/studies/ner.json")
    path.write_text(json.dumps({**made.comparison, "seeds": [4, 5]}))
    found = seeds.study_with_seeds()
    assert found["seeds"] == [4, 5]
    assert found["made"]["machines"] == [{"device": "some machine"}]
