"""Profiles set sizes in params.yaml and nothing else."""

import shutil
from pathlib import Path

import pytest

from wxb.params import ParamsError, load, read_yaml
from wxb.profiles import dump, names, switch

ROOT = Path(__file__).parents[1]


@pytest.fixture
def params(tmp_path, monkeypatch):
    """A project of which only the parameters are there."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "params", "params")
    return Path(shutil.copy(ROOT / "params.yaml", "params.yaml"))


def test_there_are_three():
    assert sorted(path.stem for path in (ROOT / "params").iterdir()) == ["demo", "full", "tiny"]


def test_the_committed_parameters_are_the_demo(params):
    before = params.read_text()
    assert switch("demo") == []
    assert params.read_text() == before


@pytest.mark.parametrize("profile", ["tiny", "full"])
def test_there_and_back_again(params, profile):
    before = load()
    changes = switch(profile)
    assert load() != before
    assert changes
    assert all(change.before != change.after for change in changes)
    assert {c.key for c in switch("demo")} >= {c.key for c in changes if c.after is not None}
    assert load() == before


def test_changes_are_told_with_both_values(params):
    told = {change.key: (change.before, change.after) for change in switch("tiny")}
    assert told["resamples"] == (1000, 100)
    assert told["experiments.ner-encoder.training.epochs"][1] == 8


def test_comments_and_blocks_of_the_user_stay(params):
    content = read_yaml(params, comments=True)
    content["corpora"]["mine"] = {"path": "x.json", "split": {"test": 0.2, "valid": 0.1}}
    params.write_text(dump(content))
    switch("tiny")
    assert load().corpora["mine"].path == "x.json"
    assert "# every knob" in params.read_text().lower()
    assert params.read_text().count("#") == (ROOT / "params.yaml").read_text().count("#")


def test_a_removed_block_stays_removed(params):
    content = read_yaml(params, comments=True)
    del content["experiments"]["ner-generative"]
    content["studies"]["ner"]["experiments"].remove("ner-generative")
    params.write_text(dump(content))
    for profile in ("tiny", "demo"):
        switch(profile)
        assert "ner-generative" not in load().experiments
    assert params.read_text() == dump(content)


def test_unknown_profile_names_those_there_are(params):
    with pytest.raises(ParamsError, match="demo, full, tiny"):
        switch("huge")
    assert names() == ["demo", "full", "tiny"]


def test_invalid_outcome_leaves_the_file_alone(params):
    Path("params/broken.yaml").write_text("experiments: {ner-encoder: {max_length: 100000}}")
    before = params.read_text()
    with pytest.raises(ParamsError, match="max_position_embeddings"):
        switch("broken")
    assert params.read_text() == before
