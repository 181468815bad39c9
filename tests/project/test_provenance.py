"""READMEs show committed results, even after a run on another machine."""

import json
from pathlib import Path

import pytest

from docs.generate import refresh_blocks
from tests.reporting.conftest import Tree
from tests.repository import commit, git, write
from wxb.core.errors import WxbError
from wxb.core.params import Params
from wxb.core.paths import PROVENANCE
from wxb.project import provenance, revisions
from wxb.reporting.pairs import conclusion

STUDY = "reports/studies/ner.json"
BLOCK = "<!-- generated: demo -->\n<!-- end -->\n"


def set_costs(**values):
    """Change values in files of reports/cost."""
    for cost in Path("reports/cost").rglob("*.json"):
        write(cost, {**json.loads(cost.read_text()), **values})


@pytest.fixture
def params(cwd):
    """The parameters of a study that ran here and is staged."""
    tree = Tree(["ner-encoder", "ner-decoder"])
    set_costs(device="Abacus, 1 CPU thread(s)", cpu="Abacus", capability="AVX2", torch="2.13.0")
    git("init", "-q")
    write(".gitignore", "/reports/cost/\n")
    git("add", "--all")
    return tree.params


def test_a_study_that_ran_here_is_recorded(params):
    provenance.write(params, revisions.index())
    text = refresh_blocks(BLOCK)
    assert "**Which is better?**" in text
    assert "Made on Abacus, 1 CPU thread(s) (AVX2, torch 2.13.0), finished on 2030-01-02 (" in text
    recorded = json.loads(Path(PROVENANCE).read_text())["ner"]
    assert recorded["seconds"] == {"ner-encoder": 100.0, "ner-decoder": 100.0}


def test_a_run_with_other_results_changes_neither_blocks_nor_provenance(params):
    provenance.write(params, revisions.index())
    before, recorded = refresh_blocks(BLOCK), Path(PROVENANCE).read_bytes()
    study = json.loads(Path(STUDY).read_text())
    study["systems"]["ner-encoder"]["f1"]["value"] = 0.123
    write(STUDY, study)
    set_costs(device="another")
    Path("reports/studies/ner.md").write_text("other")
    assert refresh_blocks(BLOCK) == before
    provenance.write(params, revisions.index())
    assert Path(PROVENANCE).read_bytes() == recorded
    commit()
    with pytest.raises(WxbError, match=rf"sha256 of {STUDY}.*git add"):
        refresh_blocks(BLOCK)
    provenance.write(params, revisions.index())
    assert "0.123" in refresh_blocks(BLOCK)
    assert "Made on another" in refresh_blocks(BLOCK)


@pytest.mark.parametrize("lacking", ["reports/cost/pretrain/encoder.json", STUDY])
def test_results_without_provenance_are_an_error(params, lacking):
    Path(lacking).unlink()
    with pytest.raises(WxbError, match=f"{PROVENANCE} lacks.*make run STUDY=ner"):
        provenance.write(params, revisions.index())
    assert not Path(PROVENANCE).exists()


def test_a_removed_study_loses_its_entry(params):
    provenance.write(params, revisions.index())
    git("rm", "-q", "--cached", STUDY)
    provenance.write(params, revisions.index())
    assert json.loads(Path(PROVENANCE).read_text()) == {}
    assert refresh_blocks(BLOCK) == BLOCK


def test_the_entry_of_a_study_that_params_lack_stays(params):
    write("data/clean/pii/profile.json", {"splits": {"train": {"labelled": 1234}}})
    provenance.write(params, revisions.index())
    recorded = Path(PROVENANCE).read_bytes()
    lacking = Params.model_construct(**{**dict(params), "studies": {}, "experiments": {}})
    provenance.write(lacking, revisions.index())
    assert Path(PROVENANCE).read_bytes() == recorded
    assert json.loads(recorded)["ner"]["trained_on"] == 1234
    study, lines = json.loads(Path(STUDY).read_text()), refresh_blocks(BLOCK).splitlines()
    assert lines[1] == f"**{study['title']}** (`make run STUDY=ner`)"
    assert lines[5].startswith("| ner-encoder | a | 0.")
    assert conclusion(study) in lines
