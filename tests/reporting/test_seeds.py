"""The committed study of several seeds, and its table in README."""

import pytest

from docs.generate import refresh_blocks
from tests import demo
from tests.repository import Files, write
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import PARAMS, load
from wxb.project import params_file, provenance, revisions
from wxb.reporting.tables import headline_table, score_table


@pytest.fixture
def study(tree):
    content = tree(["ner-encoder", "ner-a"], further=["new"]).comparison
    content["seeds"] = [4, 5]
    for system in (*content["systems"].values(), *content["further"]["new"]["systems"].values()):
        system["f1_by_run"] = [0.25, 0.75]
    return content


def test_the_mean_of_seeds_is_shown(study):
    table = headline_table(study)
    assert table.header[3:] == ["new: tier", "new: F1 (95% interval)"]
    score = study["systems"]["ner-encoder"]["f1"]["value"]
    assert table.rows[0][:2] == ["ner-encoder", "a"]
    assert table.rows[0][2].startswith(f"{score:.3f} ± 0.354 (")


def test_readme_shows_what_the_index_has(study, monkeypatch):
    study["made"] = {"finished": "2030-01-02T03:04:05", "machines": [{"device": "Abacus"}]}
    study_run = {"finished": "2029-01-02T03:04:05", "machines": [{"device": "Quipu"}]}
    contents = {paths.study("ner").as_posix(): {}, paths.seeds("ner").as_posix(): study}
    monkeypatch.setattr(revisions, "index", lambda: Files("", contents))
    monkeypatch.setattr(provenance, "find", lambda study, tree: {**study_run, "seconds": {}})
    block = refresh_blocks("<!-- generated: demo -->\n<!-- end -->\n")
    assert score_table(study, with_counts=False).markdown() in block
    assert "Made on Abacus, finished on 2030-01-02" in block
    assert "Made on Quipu, finished on 2029-01-02" in block  # of the times


def test_the_study_of_several_seeds_is_kept_with_its_machine(tree):
    made = tree(["ner-encoder", "ner-a"])
    content = made.params.model_dump(mode="json")
    content["studies"]["ner"]["seed"] = [4, 5]
    write("params.yaml", content)
    write("reports/studies/ner.json", {**made.comparison, "seeds": [4, 5]})
    found = provenance.comparison_with_machines("ner")
    assert found["seeds"] == [4, 5]
    assert found["made"]["machines"] == [{"device": "some machine"}]


@pytest.mark.parametrize("profile", ["chat", "news", "speech"])
def test_any_study_gets_several_seeds_and_no_other_does(cwd, profile):
    PARAMS.write_text(params_file.to_yaml(demo.content(profile)))
    provenance.write_seeds(profile)
    with pytest.raises(WxbError, match=f"did you mean '{profile}'"):
        provenance.write_seeds(f"{profile}s")
    studies = load().studies
    assert {name: len(study.seeds) for name, study in studies.items()} == {
        name: 3 if name == profile else 1 for name in studies
    }
