"""READMEs tell of committed results, whatever a run on another machine has put in their place."""

import json
from pathlib import Path

import pytest

from tests.reporting.conftest import Tree
from tests.repository import commit, git, write
from wxb.core.errors import WxbError
from wxb.core.params import Params
from wxb.project import provenance, revisions
from wxb.project.provenance import PROVENANCE
from wxb.project.readme import refreshed
from wxb.reporting.charts.pairs import claim

STUDY = "reports/studies/ner.json"
BLOCK = "<!-- generated: demo -->\n<!-- end -->\n"
PUBLIC = "<!-- generated: public -->\n<!-- end -->\n"
STUDIES = "<!-- generated: studies -->\n<!-- end -->\n"


def ran(path="reports/cost", **told):
    """Let stages have run on this machine, or as `told`."""
    paths = Path(path).rglob("*.json") if Path(path).is_dir() else [Path(path)]
    for cost in paths:
        write(cost, {**json.loads(cost.read_text()), **told})


@pytest.fixture
def params(tmp_path, monkeypatch):
    """The parameters of a study that was made here and staged."""
    monkeypatch.chdir(tmp_path)
    tree = Tree(["ner-encoder", "ner-decoder"])
    ran(device="Abacus, 1 CPU thread(s)", cpu="Abacus", capability="AVX2", torch="2.13.0")
    git("init", "-q")
    write(".gitignore", "/reports/cost/\n")
    git("add", "--all")
    return tree.params


def other_results():
    study = json.loads(Path(STUDY).read_text())
    study["systems"]["ner-encoder"]["f1"]["value"] = 0.123
    write(STUDY, study)


def test_what_was_made_here_is_noted_and_told(params):
    provenance.record(params, revisions.index())
    told = refreshed(BLOCK)
    assert "**Which is better?**" in told
    assert "Made on Abacus, 1 CPU thread(s) (AVX2, torch 2.13.0), finished on 2030-01-02." in told
    noted = json.loads(Path(PROVENANCE).read_text())["ner"]
    assert noted["seconds"] == {"ner-encoder": 100.0, "ner-decoder": 100.0}
    assert "| 1,500 | 12,000 | 120 | 1 min 40 s |" in told


def test_a_run_with_other_results_changes_neither_blocks_nor_what_is_noted(params):
    provenance.record(params, revisions.index())
    before, noted = refreshed(BLOCK), Path(PROVENANCE).read_bytes()
    other_results()
    ran(device="another")
    Path("reports/studies/ner.md").write_text("other")
    assert refreshed(BLOCK) == before
    provenance.record(params, revisions.index())
    assert Path(PROVENANCE).read_bytes() == noted
    commit()
    with pytest.raises(WxbError, match=rf"{STUDY}.*sha256.*git add"):
        refreshed(BLOCK)
    provenance.record(params, revisions.index())
    assert "0.123" in refreshed(BLOCK)
    assert "Made on another" in refreshed(BLOCK)


def test_the_first_machine_that_made_the_same_bytes_stays(params):
    provenance.record(params, revisions.index())
    noted = Path(PROVENANCE).read_bytes()
    ran(device="another")
    provenance.record(params, revisions.index())
    assert Path(PROVENANCE).read_bytes() == noted


def test_several_machines_are_all_told(params):
    ran("reports/cost/train/ner-decoder.json", device="GPU", finished="2031-01-01")
    provenance.record(params, revisions.index())
    assert "(AVX2, torch 2.13.0) and GPU (AVX2, torch 2.13.0), finished on 2031" in refreshed(BLOCK)


@pytest.mark.parametrize("lacking", ["reports/cost/pretrain/encoder.json", STUDY])
def test_results_that_nobody_here_made_are_refused(params, lacking):
    Path(lacking).unlink()
    with pytest.raises(WxbError, match=f"{PROVENANCE} does not tell.*dvc repro report@ner"):
        provenance.record(params, revisions.index())
    assert not Path(PROVENANCE).exists()


def test_a_study_that_is_gone_is_forgotten(params):
    provenance.record(params, revisions.index())
    git("rm", "-q", "--cached", STUDY)
    provenance.record(params, revisions.index())
    assert json.loads(Path(PROVENANCE).read_text()) == {}
    assert refreshed(BLOCK) == BLOCK


@pytest.fixture
def public(params):
    """The same study, which a profile brings; params.yaml has it no longer."""
    write("params/demo.yaml", "studies: {other: {task: ner}}")
    block = "{task: ner, title: x, experiments: [ner-encoder, ner-decoder]}"
    write("params/ner.yaml", f"studies: {{ner: {block}}}")
    write("data/clean/pii/profile.json", {"splits": {"train": {"labelled": 1234}}})
    git("add", "params")
    provenance.record(params, revisions.index())
    return Params.model_construct(**{**dict(params), "studies": {}, "experiments": {}})


def test_what_is_noted_of_a_study_that_params_lack_stays(public):
    noted = Path(PROVENANCE).read_bytes()
    provenance.record(public, revisions.index())
    assert Path(PROVENANCE).read_bytes() == noted
    assert json.loads(noted)["ner"]["trained_on"] == 1234


def test_a_study_that_params_lack_and_nothing_is_noted_of_is_refused(public):
    other_results()
    git("add", STUDY)
    with pytest.raises(WxbError, match="wxb params PROFILE"):
        provenance.record(public, revisions.index())


def test_studies_of_profiles_stand_in_a_table_of_their_own(public):
    assert refreshed(BLOCK) == BLOCK
    told = refreshed(PUBLIC)
    assert told.splitlines()[1] == "| F1 (95% interval) | ner |"
    assert "| encoder | 0." in told
    assert "| training records | 1,234 |" in told
    assert f"- ner: {claim(json.loads(Path(STUDY).read_text()))}\n" in told
    assert "(AVX2, torch 2.13.0), finished on 2030-01-02 (ner). A rerun" in told


def test_a_study_of_another_task_has_its_own_table(public):
    write("params/demo.yaml", "studies: {other: {task: another}}")
    git("add", "params")
    assert refreshed(PUBLIC) == PUBLIC
    told = refreshed(STUDIES).splitlines()
    assert told[1] == f"**{json.loads(Path(STUDY).read_text())['title']}** (`make run STUDY=ner`)"
    assert told[3].startswith("| experiment | F1 (95% interval) |")
    assert told[5].startswith("| ner-encoder | 0.")
    assert any(line.endswith("within what trainings vary.") for line in told)


def test_without_studies_of_profiles_their_blocks_are_empty(params):
    assert refreshed(PUBLIC) == PUBLIC
    assert refreshed(STUDIES) == STUDIES
