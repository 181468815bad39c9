"""Profiles set sizes in params.yaml, and bring blocks that go again."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wxb.cli.app import app
from wxb.core.params import ParamsError, load, read_yaml
from wxb.project.params_file import updated
from wxb.project.profiles import BASE, additions, names, of, sizes, switch
from wxb.project.revisions import WorkingTree

ROOT = Path(__file__).parents[2]
SIZES = ["full", "seeds", "tiny"]
PUBLIC = ["conll2003", "presidio", "weibo"]


@pytest.fixture
def params(tmp_path, monkeypatch):
    """A project of which only the parameters are there."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "params", "params")
    return Path(shutil.copy(ROOT / "params.yaml", "params.yaml"))


def edit(path, change):
    content = read_yaml(path)
    change(content)
    path.write_text(updated(path.read_text(), content))


def test_there_are_sizes_and_studies(params):
    """A profile that is no size adds the study of its name; `full-` ones have published data."""
    own = {name: blocks for name, blocks in additions(of(WorkingTree())).items() if blocks}
    assert names() == sorted([BASE, *SIZES, *own])
    demos = {name: blocks for name, blocks in own.items() if not name.startswith("full-")}
    assert all(name in blocks["studies"] for name, blocks in demos.items())
    assert {*PUBLIC} <= own.keys()


def test_the_committed_parameters_are_the_demo(params):
    before = params.read_text()
    assert switch("demo").size == 0
    assert params.read_text() == before


@pytest.mark.parametrize("profile", SIZES)
def test_there_and_back_again(params, profile):
    before = load()
    changes = switch(profile).changes
    assert load() != before
    assert changes
    assert all(change.before != change.after for change in changes)
    back = switch("demo").changes
    assert {c.key for c in back} >= {c.key for c in changes if c.after is not None}
    assert load() == before


@pytest.mark.parametrize("profile", [BASE, "tiny", "weibo"])
def test_sizes_are_those_of_every_switch_without_making_it(params, profile, tmp_path):
    switch(profile)
    edit(params, lambda content: content.update(threads=7))
    text = params.read_text()
    found = sizes()
    assert params.read_text() == text
    for name, size in found.items():
        copy = Path(shutil.copy(params, tmp_path / "copy.yaml"))
        assert switch(name, copy).size == size


def test_changes_are_told_with_both_values(params):
    told = {change.key: (change.before, change.after) for change in switch("tiny").changes}
    assert told["resamples"] == (1000, 100)
    assert told["experiments.ner-encoder.training.epochs"][1] == 8


def test_comments_and_blocks_of_the_user_stay(params):
    mine = {"task": "ner", "path": "x.json", "split": {"test": 0.2, "valid": 0.1}}
    edit(params, lambda content: content["corpora"].update(mine=mine))
    switch("tiny")
    assert load().corpora["mine"].path == "x.json"
    assert "# every knob" in params.read_text().lower()
    assert params.read_text().count("#") == (ROOT / "params.yaml").read_text().count("#")


def test_a_removed_block_stays_removed(params):
    def remove(content):
        del content["experiments"]["ner-generative"]
        content["studies"]["ner"]["experiments"].remove("ner-generative")

    edit(params, remove)
    before = params.read_text()
    for profile in ("tiny", "demo"):
        switch(profile)
        assert "ner-generative" not in load().experiments
    assert params.read_text() == before


def test_unknown_profile_names_those_there_are(params):
    with pytest.raises(
        ParamsError, match=r"conll2003, demo, full, .*presidio, .*seeds, .*tiny, .*weibo"
    ):
        switch("huge")


def test_invalid_outcome_leaves_the_file_alone(params):
    Path("params/broken.yaml").write_text(
        "experiments: {ner-encoder: {encoding: {max_length: 100000}}}"
    )
    before = params.read_text()
    with pytest.raises(ParamsError, match="max_position_embeddings"):
        switch("broken")
    assert params.read_text() == before


# Profiles with blocks of their own


@pytest.mark.parametrize("profile", PUBLIC)
def test_blocks_come_and_go_and_leave_the_file_as_it_was(params, profile):
    before, text = load(), params.read_text()
    come = switch(profile)
    now = load()
    assert come.changes == come.removed == []
    assert come.kept == {}
    assert {f"corpora.{profile}", f"studies.{profile}"} < {*come.added}
    assert {*now.studies} == {"ner", profile}
    assert now.experiments["ner-encoder"] == before.experiments["ner-encoder"]
    assert "&" not in params.read_text()  # the aliases of the profile are written out
    there = params.read_text()
    assert switch(profile).size == 0
    assert params.read_text() == there
    gone = switch("demo")
    assert {*gone.removed} == {*come.added}
    assert params.read_text() == text


def test_from_one_public_set_to_another_and_through_the_sizes(params):
    before = load()
    for profile in [*PUBLIC, *SIZES, *reversed(PUBLIC)]:
        switch(profile)
        expected = {"ner", profile} & {"ner", *PUBLIC}
        assert {*load().studies} == {*load().corpora} - {"pii"} | {"ner"} == expected
    switch("demo")
    assert load() == before


def test_comments_around_blocks_that_go_stay(params):
    switch("weibo")
    text = params.read_text()
    params.write_text(re.sub(r"\n*^studies:", "\n  # mine\n\nstudies:", text, flags=re.MULTILINE))
    switch("demo")
    assert "\n  # mine\n\nstudies:\n" in params.read_text()
    assert params.read_text().count("#") == (ROOT / "params.yaml").read_text().count("#") + 1


def changed(content):
    content["experiments"]["weibo-encoder"]["training"]["epochs"] = 1


def used(content):
    content["backbones"]["encoder"]["corpus"] = "weibo"


def shown(content):
    content["lessons"]["attention"]["path"] = "models/weibo-encoder"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed, "experiments.weibo-encoder.training.epochs"),
        (used, "backbones.encoder.corpus"),
        (shown, "lessons.attention.path"),
    ],
)
def test_blocks_that_were_changed_or_are_used_stay(params, change, why):
    switch("weibo")
    edit(params, change)
    before = load()
    done = switch("conll2003")
    assert (done.removed, done.kept) == ([], {"weibo": why})
    assert {*load().studies} == {"ner", "weibo", "conll2003"}
    switch("demo")
    assert load() == before


def test_setting_the_profile_again_undoes_changes_to_its_blocks(params):
    switch("weibo")
    before = load()
    edit(params, changed)
    (undone,) = switch("weibo").changes
    assert undone == ("experiments.weibo-encoder.training.epochs", 1, 4)
    assert load() == before


def test_two_profiles_may_add_blocks_of_one_name(params):
    text = Path("params/weibo.yaml").read_text()
    Path("params/weibo-short.yaml").write_text(
        text.replace("epochs: 4, batch_size: 8", "epochs: 1, batch_size: 8")
    )
    for profile in ("weibo", "weibo-short", "weibo", "weibo-short"):
        switch(profile)
        assert load().experiments["weibo-encoder"].training.epochs in (1, 4)
    done = switch("demo")
    assert (done.kept, {*load().studies}) == ({}, {"ner"})


def test_sections_may_be_empty(params):
    edit(params, lambda content: content.update(studies={}, experiments={}))
    before = load()
    switch("presidio")
    assert {*load().studies} == {"presidio"}
    switch("demo")
    assert load() == before


def test_blocks_are_told_by_name(params):
    def told(profile):
        done = CliRunner().invoke(app, ["params", profile], catch_exceptions=False)
        return done.stdout.splitlines()

    (added,) = told("weibo")
    assert added.startswith("added: corpora.weibo, backbones.weibo-bert, ")
    assert told("weibo") == ["params.yaml is weibo already"]
    edit(params, changed)
    kept = "kept: the blocks of weibo, as experiments.weibo-encoder.training.epochs is not of"
    assert told("demo") == [f"{kept} params/weibo.yaml", "params.yaml is demo already"]
    told("weibo")
    assert told("demo") == [added.replace("added", "removed")]


# What the public sets ask for


@pytest.mark.parametrize("profile", PUBLIC)
def test_what_is_compared_reads_the_same_as_often(params, profile):
    switch(profile)
    now = load()
    assert all(download.sha256 for download in now.corpora[profile].urls)
    names = [f"ner{name.removeprefix(profile)}" for name in now.studies[profile].experiments]
    assert names == [*now.studies["ner"].experiments, "ner-pretrained"]
    *made, pretrained = (now.experiments[name] for name in now.studies[profile].experiments)
    assert len({block.training.model_dump_json() for block in made}) == 1
    assert all(block.training.early_stopping_patience >= block.training.epochs for block in made)
    assert {now.backbones[block.backbone].corpus for block in made} == {profile}
    assert now.backbones[pretrained.backbone].checkpoint == "minilm"
