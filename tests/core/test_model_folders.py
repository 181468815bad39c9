"""A model folder cannot run code, hang or fill the memory when it is loaded."""

import base64
import json
import shutil
import struct
import sys
from functools import partial
from pathlib import Path

import pytest
from peft import LoraConfig

import wxb
from tests import tiny
from wxb.core import paths, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.backbones import Backbone
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text.saved import SavedTokenizer
from wxb.corpora.text.tokenizers import encode, load, train
from wxb.training.backbones import tuning, weights
from wxb.training.backbones.native import Native

TEXTS = ["Ann Lee met Bob in Rome."]
LOW_RANK = LowRank(r=2, alpha=4, target_modules=["query", "value"])


ADAPTER_LOADERS = [Native.from_folder, partial(tuning.load, load_backbone=weights.load_backbone)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """An encoder and adapters on it, as training saves them."""
    folder = tmp_path_factory.mktemp("models")
    tiny.bert(folder / "encoder", vocab_size=300)
    for task_type in ("FEATURE_EXTRACTION", None):
        backbone = weights.load_backbone(folder / "encoder")
        adapted = tuning.adapt(backbone, Tuning(lora=LOW_RANK), task_type=task_type)
        tuning.save(adapted, folder / f"adapter-{task_type}")
    return folder


@pytest.fixture
def folder(models, tmp_path, monkeypatch):
    """A copy of these models; the working folder is that of an adapter."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path / "adapter-None")
    return tmp_path


def edit(path, **changes):
    path.write_text(json.dumps({**read_json(path), **changes}))


@pytest.mark.parametrize("task_type", ["FEATURE_EXTRACTION", None])
def test_what_training_saves_is_loaded(folder, task_type):
    assert tuning.load(folder / f"adapter-{task_type}", weights.load_backbone)
    assert isinstance(Native.from_folder(folder / f"adapter-{task_type}"), Native)
    weights.load_backbone(folder / "encoder").save_pretrained(folder / "tuned")
    assert isinstance(Native.from_folder(folder / "tuned"), Native)


def test_an_adapter_imports_no_module(folder, monkeypatch):
    Path("megatron").mkdir()
    Path("megatron/__init__.py").touch()
    Path("megatron/evil.py").write_text("from pathlib import Path; Path('trace').touch()")
    monkeypatch.syspath_prepend(Path.cwd())
    for config in ({}, {"a": 1}, None):
        edit(Path("adapter_config.json"), megatron_config=config, megatron_core="megatron.evil")
        for load_adapter in ADAPTER_LOADERS:
            with pytest.raises(WxbError, match=r"_config\.json: found `megatron_co(nfig|re)`"):
                load_adapter(Path.cwd())
    assert not Path("trace").exists()
    assert "megatron.evil" not in sys.modules


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("target_modules", r"(.*.*.*.*.*)*x", "`target_modules`: found"),
        ("rank_pattern", {"(.*)*x": 3}, "found `rank_pattern`"),
        ("auto_mapping", {"parent_library": "os", "base_model_class": "x"}, "found `auto_mapping`"),
        ("unheard_of", 1, "found `unheard_of`: 1"),
        ("unheard_of", None, "found `unheard_of`: null"),
        ("use_dora", True, "found `use_dora`: true"),
        ("r", 10**9, r"`r`: found 1000000000; the weights have 2"),
        ("r", True, "`r`: found true"),
        ("lora_alpha", float("nan"), "`lora_alpha`: found NaN"),
    ],
)
def test_an_adapter_has_only_the_settings_that_training_writes(folder, key, value, fault):
    edit(Path("adapter_config.json"), **{key: value})
    for load_adapter in ADAPTER_LOADERS:
        with pytest.raises(WxbError, match=fault):
            load_adapter(Path.cwd())


def test_defaults_of_adapters_are_those_of_peft():
    """Keys and values that training writes are compared without importing peft."""
    theirs = LoraConfig().to_dict().items()
    others = {k: v for k, v in theirs if k not in pretrained.Adapter.model_fields}
    assert others == pretrained.ADAPTER_DEFAULTS


@pytest.mark.parametrize(("key", "value"), [("megatron_core", "evil"), ("save_pretrained", 1)])
def test_a_model_has_only_the_settings_of_its_class(folder, key, value):
    edit(folder / "encoder/config.json", **{key: value})
    for load_folder in (pretrained.config, partial(weights.load_backbone, strict=True)):
        with pytest.raises(WxbError, match=rf"config\.json: found `{key}`: .* of BertConfig"):
            load_folder(folder / "encoder")


def test_settings_of_other_libraries_in_a_checkpoint_are_not_saved(folder):
    unlisted = {"gradient_checkpointing": False, "transformers.js_config": {"dtype": "q8"}}
    edit(folder / "encoder/config.json", position_embedding_type="absolute", **unlisted)
    checkpoint = Backbone(checkpoint=str(folder / "encoder"), corpus="x", objective="none")
    weights.initial_model(checkpoint, None).save_pretrained(folder / "saved")
    saved = read_json(folder / "saved/config.json")
    assert not unlisted.keys() & saved.keys()
    assert saved["position_embedding_type"] == "absolute"
    assert weights.load_backbone(folder / "saved")


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "head_dim", "vocab_size"])
@pytest.mark.parametrize("loader", [Native.from_folder, weights.load_backbone])
def test_a_configuration_larger_than_the_weights_is_an_error(folder, loader, key):
    edit(folder / "encoder/config.json", **{key: 10**6})
    with pytest.raises(WxbError, match=rf"config\.json: `{key}`: found 1000000; the largest"):
        loader(folder / "encoder")


def test_without_weights_the_number_of_layers_is_bounded(folder):
    (folder / "encoder/model.safetensors").unlink()
    assert pretrained.config(folder / "encoder").num_hidden_layers == 2
    edit(folder / "encoder/config.json", num_hidden_layers=10**6)
    with pytest.raises(WxbError, match="largest number supported is 1000"):
        pretrained.config(folder / "encoder")


def precompiled(data):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(key, parts):
    return {"type": "Sequence", key: parts}


DOUBLE = replace({"String": "a"}, "aa")
HUGE = {
    "replacement": ("normalizer", sequence("normalizers", [DOUBLE] * 40)),
    "expression": ("normalizer", replace({"Regex": ""}, "x" * 10**6)),
    "index": ("normalizer", precompiled(struct.pack("<I", 2**32 - 4) + bytes(8))),
    "no index": ("normalizer", precompiled(b"")),
    "long entry": ("normalizer", precompiled(struct.pack("<I", 0) + b"x" * 10**6)),
    "bytes": ("pre_tokenizer", sequence("pretokenizers", [{"type": "ByteLevel"}] * 40)),
    "decoder": ("decoder", sequence("decoders", [DOUBLE] * 40)),
}


@pytest.mark.parametrize("kind", ["words", "byte-level-bpe"])
@pytest.mark.parametrize("part", HUGE)
def test_a_tokenizer_that_multiplies_texts_is_an_error(tmp_path, part, kind):
    train(kind, 300, TEXTS).save_pretrained(tmp_path)
    key, content = HUGE[part]
    edit(tmp_path / "tokenizer.json", **{key: content})
    for loader in (load, SavedTokenizer):
        with pytest.raises(WxbError, match=rf"`{key}` makes up to .* expected at most 1000"):
            loader(tmp_path)


def test_usual_normalizers_are_no_error(tmp_path):
    train("words", 300, TEXTS).save_pretrained(tmp_path)
    parts = [
        {"type": "Prepend", "prepend": "▁"},
        replace({"String": " "}, "▁"),
        replace({"Regex": " {2,}"}, "▁"),
        {"type": "NFKC"},
    ]
    edit(tmp_path / "tokenizer.json", normalizer=sequence("normalizers", parts))
    assert load(tmp_path).backend_tokenizer.normalizer.normalize_str("a  b") == "▁a▁▁b"


def test_a_panic_of_the_library_is_an_error(tmp_path, capfd):
    train("words", 300, TEXTS).save_pretrained(tmp_path)
    slow = {"type": "Split", "pattern": {"Regex": "(a|aa|a?)+$"}, "behavior": "Isolated"}
    edit(tmp_path / "tokenizer.json", pre_tokenizer={**slow, "invert": False})
    with pytest.raises(WxbError, match=r"the library tokenizers fails .*retry-limit-in-match"):
        encode(load(tmp_path), [f"{'a' * 60}b"])


def test_settings_that_are_no_numbers_are_an_error(tmp_path):
    settings = '{"task": "ner", "method": "tagging", "threshold": NaN}'
    (tmp_path / paths.SETTINGS).write_text(settings)
    with pytest.raises(WxbError, match="found NaN; expected a finite number"):
        wxb.load(tmp_path)
