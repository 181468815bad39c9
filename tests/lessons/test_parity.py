"""The comparison detects faults in native architectures, and loads all kinds of checkpoints."""

import math

import pytest
import torch
import transformers
from torch.nn import functional as F  # noqa: N812

from tests.project_copy import ROOT
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.core.params.backbones import Parity
from wxb.corpora.text.encoded import IGNORED
from wxb.lessons import parity
from wxb.models import bert, gpt2, masks
from wxb.models.decoding import extend

BLOCKS = load(ROOT / "params.yaml").parity
EXACT = {"missing_keys": 0, "unexpected_keys": 0}
each_block = pytest.mark.parametrize("name", sorted(BLOCKS))


def measure(block, seed=1):
    torch.manual_seed(seed)
    return parity.measure(parity.load(block, "it"), seed)


@each_block
def test_ours_equals_transformers(name):
    metrics = measure(BLOCKS[name])
    parity.check(metrics)
    assert metrics["parameters"] > 1000
    assert metrics == measure(BLOCKS[name])


def faults():
    """By name: block, module or dictionary, key, and faulty replacement."""

    def additive(query, key, value, mask=None, *, dropout=0.0):
        mask = mask if mask is None else torch.ones_like(mask)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return {
        "the activation": ("bert", bert.ACTIVATIONS, "gelu", F.relu),
        "the mask of BERT": ("bert", masks, "attend", additive),
        "the mask of GPT-2": ("gpt2", masks, "attend", additive),
        "the scale": (
            "gpt2",
            masks,
            "attend",
            lambda q, k, v, mask=None, **_: additive(2 * q, k, v),
        ),
        "the values": (
            "gpt2",
            gpt2,
            "extend",
            lambda past, key, value: extend(past, key, value * 1.001),
        ),
    }


@pytest.mark.parametrize("fault", faults())
def test_a_fault_is_detected(fault, monkeypatch):
    name, owner, key, replacement = faults()[fault]
    patch = monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr
    patch(owner, key, replacement)
    with pytest.raises(WxbError, match=r"not equal to transformers in .*difference"):
        parity.check(measure(BLOCKS[name]))


@pytest.mark.parametrize("padded", [False, True])
def test_a_wrong_gradient_on_one_kind_of_batch_is_detected(padded, monkeypatch):
    attend = masks.attend

    def steeper(query, key, value, mask=None, **settings):
        output = attend(query, key, value, mask, **settings)
        is_wrong = (mask is not None) == padded
        return output.detach() + 1.01 * (output - output.detach()) if is_wrong else output

    monkeypatch.setattr(masks, "attend", steeper)
    with pytest.raises(WxbError, match="transformers in gradient_difference: found"):
        parity.check(measure(BLOCKS["bert"]))


@pytest.mark.parametrize("padded", [False, True])
def test_a_wrong_loss_on_one_kind_of_batch_is_detected(padded, monkeypatch):
    cross_entropy = bert._cross_entropy

    def larger(logits, labels):
        is_mlm = labels.ndim == 2  # the labels of NSP have no padding
        is_wrong = is_mlm and bool((labels == IGNORED).any()) == padded
        return cross_entropy(logits, labels) * (1.01 if is_wrong else 1)

    monkeypatch.setattr(bert, "_cross_entropy", larger)
    with pytest.raises(WxbError, match="in loss_difference, gradient_difference: found"):
        parity.check(measure(BLOCKS["bert"]))


def test_a_faulty_cache_is_detected(monkeypatch):
    def forget(past, key, value):
        return (key, value) if past is None else extend((past[0], past[1] * 0), key, value)

    monkeypatch.setattr(gpt2, "extend", forget)
    metrics = measure(BLOCKS["gpt2"])
    assert metrics["generation_equal"] == 1
    assert metrics["generation_equal_cached"] == 0
    with pytest.raises(WxbError, match="generation_equal_cached"):
        parity.check(metrics)


@pytest.mark.parametrize(
    "wrong",
    [
        {"logits_difference": 1.1e-5},
        {"gradient_difference": math.nan},
        {"loss_difference": math.inf},
        {"missing_keys": 1},
        {"unexpected_keys": 2},
        {"generation_equal": 0},
    ],
)
def test_one_wrong_metric_fails_and_all_are_reported(wrong):
    metrics = {"parameters": 5, **EXACT, "logits_difference": 1e-6, "generation_equal": 1, **wrong}
    (name,) = wrong
    with pytest.raises(WxbError, match=f"in {name}: found parameters 5, .*at most 1e-05"):
        parity.check(metrics)


def test_differences_are_relative_and_infinite_for_nan():
    expected = torch.tensor([100.0, -200.0])
    assert parity.difference(torch.tensor([101.0, -200.0]), expected) == pytest.approx(1 / 200)
    assert parity.difference(torch.tensor([math.nan, -200.0]), expected) == math.inf
    assert parity.difference(torch.zeros(2), torch.zeros(2)) == 0.0
    assert parity.difference(torch.tensor([1e-9]), torch.tensor([1e-12]), 1e-3) == pytest.approx(
        1e-6, rel=0.01
    )


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("BertModel", "BertModel"),
        ("BertForMaskedLM", "BertForMaskedLM"),
        ("BertForSequenceClassification", "BertForSequenceClassification"),
        ("BertForTokenClassification", "BertForTokenClassification"),
        ("BertForQuestionAnswering", "BertModel"),  # an unsupported head: its backbone
        ("GPT2Model", "GPT2Model"),
        ("GPT2LMHeadModel", "GPT2LMHeadModel"),
    ],
)
def test_a_saved_checkpoint_is_compared_by_its_class(name, compared, tmp_path):
    settings = dict(BLOCKS["gpt2" if name.startswith("GPT2") else "bert"].architecture)
    config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
    torch.manual_seed(0)
    getattr(transformers, name)(config).save_pretrained(tmp_path)
    theirs = parity.load(Parity(checkpoint=str(tmp_path)), "it")
    assert type(theirs).__name__ == compared
    metrics = parity.measure(theirs, seed=1)
    parity.check(metrics)
    assert metrics["gradient_difference"] < parity.TOLERANCE
    assert ("generation_equal" in metrics) == (name == "GPT2LMHeadModel")


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        (
            {"model_type": "gpt3"},
            "parity.it: found an architecture 'gpt3'; expected one of bert, gpt2, ",
        ),
        ({"model_type": "bert", "hiden_size": 8}, "BertConfig has no 'hiden_size'"),
    ],
)
def test_unknown_architectures_and_settings_are_errors(architecture, message):
    with pytest.raises(WxbError, match=message):
        parity.load(Parity(architecture=architecture), "it")


def test_ours_equals_transformers_on_a_public_checkpoint():
    theirs = parity.load(Parity(checkpoint="minilm"), "minilm")
    metrics = parity.measure(theirs, 1)
    parity.check(metrics)
    assert metrics["parameters"] == 22_713_216
    assert (metrics["missing_keys"], metrics["unexpected_keys"]) == (0, 0)


def test_a_folder_without_weights_is_an_error(tmp_path):
    with pytest.raises(WxbError, match=r"found no model\.safetensors"):
        parity.load(Parity(checkpoint=str(tmp_path)), "it")


def test_missing_and_unexpected_keys_are_counted():
    torch.manual_seed(0)
    theirs = parity.load(BLOCKS["bert"], "it")
    theirs.bert.extra = torch.nn.Linear(2, 2)
    del theirs.bert.pooler.dense.bias
    theirs.bert.pooler.dense.bias = None
    _, missing, unexpected = parity.twin(theirs)
    assert missing == ["bert.pooler.dense.bias"]
    assert sorted(unexpected) == ["bert.extra.bias", "bert.extra.weight"]
