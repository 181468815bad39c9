"""Profiles set sizes in params.yaml, and add blocks that another profile removes."""

import pytest
from typer.testing import CliRunner

from tests import demo
from wxb.cli.app import app
from wxb.core.params import ParamsError, load, read_yaml
from wxb.project.params_file import update
from wxb.project.profiles import switch

PUBLIC = ["conll2003", "presidio", "weibo"]


def edit(path, change):
    content = read_yaml(path)
    change(content)
    path.write_text(update(path.read_text(), content))


@pytest.mark.parametrize("profile", ["full", "tiny"])
def test_the_demo_undoes_the_sizes_of_a_profile(params, profile):
    before = load()
    assert switch(profile).changed
    assert load() != before
    assert switch("demo").changed
    assert load() == before


def test_comments_and_blocks_of_the_user_are_kept(params):
    mine = {"task": "ner", "path": "x.json", "split": {"test": 0.2, "valid": 0.1}}
    edit(params, lambda content: content["corpora"].update(mine=mine))
    switch("tiny")
    assert load().corpora["mine"].path == "x.json"
    assert "# The settings of the demo" in params.read_text()
    assert params.read_text().count("#") == demo.TEXT.count("#")


def test_a_changed_setting_of_the_demo_is_kept(params):
    edit(params, lambda content: content["experiments"]["ner-encoder"]["training"].update(epochs=9))
    before = load()
    assert switch("reviews").changed == []
    switch("weibo")
    assert load().experiments["ner-encoder"] == before.experiments["ner-encoder"]
    assert "experiments.ner-encoder" in switch("demo").changed


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


@pytest.mark.parametrize("profile", [*PUBLIC, "news", "reviews"])
def test_the_demo_removes_the_blocks_of_a_profile(params, profile):
    before, text = load(), params.read_text()
    first = switch(profile)
    now = load()
    assert (first.removed, first.kept) == ([], [])
    assert {f"corpora.{profile}", f"studies.{profile}"} < {*first.added}
    assert {*now.studies} == {"ner", profile}
    assert now.experiments["ner-encoder"] == before.experiments["ner-encoder"]
    assert "&" not in params.read_text()  # the aliases of the profile are written out
    with_blocks = params.read_text()
    assert switch(profile)[:3] == ([], [], [])
    assert params.read_text() == with_blocks
    second = switch("demo")
    assert {*second.removed} == {*first.added}
    assert params.read_text() == text


def change_epochs(content):
    content["experiments"]["weibo-encoder"]["training"]["epochs"] = 1


def test_a_block_of_a_profile_that_others_use_is_not_removed(params):
    switch("weibo")
    edit(params, lambda content: content["backbones"]["encoder"].update(corpus="weibo"))
    before = params.read_text()
    with pytest.raises(ParamsError, match="weibo"):
        switch("conll2003")
    assert params.read_text() == before


def test_blocks_that_were_changed_are_kept(params):
    switch("weibo")
    edit(params, change_epochs)
    before = load()
    result = switch("conll2003")
    assert (result.removed, result.kept) == ([], ["weibo"])
    assert {*load().studies} == {"ner", "weibo", "conll2003"}
    switch("demo")
    assert load() == before


def test_the_command_prints_the_names_of_blocks(params):
    def lines(profile):
        done = CliRunner().invoke(app, ["params", profile], catch_exceptions=False)
        return done.stdout.splitlines()

    added, _ = lines("weibo")
    assert added.startswith("added: corpora.weibo, backbones.weibo-bert, ")
    assert lines("weibo") == ["params.yaml is already weibo"]
    edit(params, change_epochs)
    assert "params/weibo.yaml" in lines("demo")[0]
    lines("weibo")
    assert lines("demo") == [added.replace("added", "removed"), "params.yaml is now demo"]


@pytest.mark.parametrize("profile", PUBLIC)
def test_compared_experiments_have_the_same_data_and_epochs(params, profile):
    switch(profile)
    now = load()
    assert all(download.sha256 for download in now.corpora[profile].urls)
    names = [f"ner{name.removeprefix(profile)}" for name in now.studies[profile].experiments]
    *demo, crf, baseline = now.studies["ner"].experiments
    assert names == [*demo, "ner-pretrained", crf, baseline]
    *native, pretrained, _, _ = (now.experiments[name] for name in now.studies[profile].experiments)
    assert len({block.training.model_dump_json() for block in native}) == 1
    assert all(block.training.early_stopping_patience >= block.training.epochs for block in native)
    assert {now.backbones[block.backbone].corpus for block in native} == {profile}
    assert now.backbones[pretrained.backbone].checkpoint == "minilm"
