"""A study of every combination of some settings, written into params.yaml."""

import pytest
from ruamel.yaml import YAML

from tests.project_copy import ROOT
from wxb.cli.new.sweeps import add_sweep, parse_grid
from wxb.core.errors import WxbError
from wxb.core.params import ParamsError, check

TEXT = (ROOT / "params.yaml").read_text(encoding="utf-8")


def with_sweep(*settings, name="rates", like="ner-decoder-lora", seeds=(1,)):
    text = add_sweep(TEXT, name, like, parse_grid(settings), seeds, "Which?")
    return text, check(YAML(typ="safe").load(text))


def test_every_combination_is_an_experiment():
    text, params = with_sweep(
        "training.learning_rate=0.001,2.0e-3", "tuning.lora.r=4,8", seeds=(1, 2, 3)
    )
    study = params.studies["rates"]
    assert study.seeds == [1, 2, 3]
    assert study.experiments == [
        "rates-0_001-4",
        "rates-0_001-8",
        "rates-0_002-4",
        "rates-0_002-8",
    ]
    last, copied = params.experiments["rates-0_002-8"], params.experiments["ner-decoder-lora"]
    assert (last.training.learning_rate, last.tuning.lora.r) == (0.002, 8)
    assert last.tuning.lora.target_modules == copied.tuning.lora.target_modules
    assert (last.backbone, last.corpus) == (copied.backbone, copied.corpus)
    assert not {*TEXT.splitlines()} - {*text.splitlines()}  # what was there keeps its bytes


def test_a_default_may_be_set():
    _, params = with_sweep("training.weight_decay=0,0.1", like="ner-decoder")
    assert params.experiments["rates-0_1"].training.weight_decay == 0.1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (["training.learning_rate"], WxbError, "expected a key of an experiment and its values"),
        (["training.learning_rat=1"], ParamsError, "did you mean 'learning_rate'"),
        (["study.name=1"], ParamsError, "found 'rates'; expected settings in it"),
    ],
)
def test_invalid_settings_are_errors(settings, error, message):
    with pytest.raises(error, match=message):
        with_sweep(*settings)


def test_nothing_is_overwritten():
    with pytest.raises(WxbError, match="has the study 'ner' already"):
        with_sweep("training.epochs=1", name="ner")
