"""Loading a model, tokenizer or adapter never runs code of its folder."""

import ast
import builtins
import json
import pickle
import shutil
from functools import partial
from pathlib import Path

import pytest
from peft import LoraConfig, PeftModel
from transformers import AutoModel

import wxb
from tests import tiny
from tests.project_copy import ROOT
from wxb.core import paths, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params.backbones import Backbone
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text.tokenizers import load, train
from wxb.lessons import attention
from wxb.training.backbones import tuning, weights
from wxb.training.backbones.native import Native

TEXTS = ["Ann Lee met Bob in Rome."]

# A module in the folder of a model, which creates a file on import.
CODE = """
from pathlib import Path
from transformers import BertConfig, BertModel, BertTokenizerFast
Path({trace!r}).touch()
class Config(BertConfig):
    model_type = "unheard-of"
class Model(BertModel):
    config_class = Config
class Tokenizer(BertTokenizerFast):
    pass
"""
MODEL = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
TOKENIZER = {"AutoTokenizer": ["code.Tokenizer", "code.Tokenizer"]}
HOSTILE = {
    "model": ("config.json", {"model_type": "unheard-of", "auto_map": MODEL}),
    "old model": ("config.4.0.0.json", {"model_type": "unheard-of", "auto_map": MODEL}),
    "tokenizer": ("tokenizer_config.json", {"auto_map": TOKENIZER}),
    "nested": ("config.json", {"text_config": {"auto_map": MODEL}}),
    "kernel": ("config.json", {"_attn_implementation": "some/kernel"}),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """An encoder in the layout of a trained experiment, and an adapter on it."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = train("wordpiece", 300, TEXTS)
    tiny.bert(folder / "encoder", vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder / "encoder")
    settings = {"task": "ner", "method": "tagging", "types": ["NAME"], "word_features": None}
    settings |= {"head": {"projection": 8, "dropout": 0.0}, "bidirectional": False}
    settings |= {"four_bit": False, "implementation": "transformers"}
    write_json(folder / "encoder" / paths.SETTINGS, settings)
    low = LowRank(r=2, alpha=4, target_modules=["query", "value"])
    backbone = weights.load_backbone(folder / "encoder")
    adapted = tuning.adapt(backbone, Tuning(lora=low), task_type=None)
    tuning.BackboneModel(adapted).save_pretrained(folder / "adapter")
    return folder


@pytest.fixture
def folder(models, cwd):
    """A copy of the encoder in the working folder, with the adapter beside it."""
    shutil.copytree(models, cwd, dirs_exist_ok=True)
    return cwd / "encoder"


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """The file that custom code creates; standard input answers yes to all questions."""
    questions = []
    monkeypatch.setattr(builtins, "input", lambda *_: questions.append(1) or "y")
    path = tmp_path / "trace"
    yield path
    assert not questions, "standard input was read"
    assert not path.exists(), "code of the folder ran"


def edit(path, **changes):
    path.write_text(json.dumps({**(read_json(path) if path.exists() else {}), **changes}))


LOADERS = {
    "backbone": weights.load_backbone,
    "initial": lambda folder: weights.initial_model(
        Backbone(corpus="c", objective="none", checkpoint=str(folder)), []
    ),
    "tokenizer": load,
    "adapter": lambda folder: tuning.load(folder.parent / "adapter", weights.load_backbone),
    "native": Native.from_folder,
    "attention": lambda folder: attention.attention_weights(folder, TEXTS[0]),
    "load": wxb.load,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("loader", LOADERS)
def test_no_code_runs_and_no_question_is_asked(folder, trace, loader, kind):
    (folder / "code.py").write_text(CODE.format(trace=str(trace)))
    name, changes = HOSTILE[kind]
    if kind == "old model":
        shutil.copy(folder / "config.json", folder / name)
        edit(folder / "config.json", configuration_files=[name])
    edit(folder / name, **changes)
    with pytest.raises(WxbError, match=rf"encoder/{name}: .*`(auto_map|_attn_implementation)`"):
        LOADERS[loader](folder)


def test_a_missing_folder_is_not_looked_up_on_the_hub(cwd):
    for kind in (pretrained.config, pretrained.tokenizer, weights.load_backbone):
        with pytest.raises(WxbError, match="models/encoder: no such folder"):
            kind("models/encoder")


class Attack:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("loader", ["backbone", "initial", "attention"])
def test_pickles_are_not_read(folder, trace, loader):
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "training_args.bin"):
        (folder / name).write_bytes(pickle.dumps(Attack(trace)))
    with pytest.raises((WxbError, OSError), match=r"found no (model|file).*safetensors|no file"):
        LOADERS[loader](folder)


def test_an_adapter_is_loaded_onto_the_model_beside_it_wherever_it_points(folder):
    adapter = folder.parent / "adapter"
    load_adapter = partial(tuning.load, load_backbone=weights.load_backbone)
    edit(adapter / "adapter_config.json", base_model_name_or_path="/elsewhere/on/disk/encoder")
    other_seed = folder.parent / "experiment" / "seed-2"
    shutil.copytree(adapter, other_seed)
    for path in (adapter, other_seed):
        loaded = load_adapter(path)
        assert isinstance(loaded, PeftModel)
        assert Path(loaded.get_base_model().name_or_path) == folder
    edit(adapter / "base_model.json", folder="other")
    with pytest.raises(WxbError, match=r"adapter: its base model 'other' is not in .*/other"):
        load_adapter(adapter)


def test_adapters_in_other_formats_are_not_loaded(folder, trace):
    adapter = folder.parent / "adapter"
    (adapter / "adapter_model.safetensors").unlink()
    (adapter / "adapter_model.bin").write_bytes(pickle.dumps(Attack(trace)))
    with pytest.raises(WxbError, match=r"adapter: found no adapter_model\.safetensors"):
        LOADERS["adapter"](folder)


def test_an_adapter_has_only_the_settings_that_training_writes(folder):
    file = folder.parent / "adapter/adapter_config.json"
    edit(file, use_dora=True, megatron_config={}, megatron_core="wxb_attack")
    loaded = LOADERS["adapter"](folder)
    assert loaded.peft_config["default"].megatron_core == LoraConfig().megatron_core
    edit(file, target_modules=r"(.*.*.*.*.*)*x")  # a regular expression
    with pytest.raises(ValueError, match="not found in the base model"):
        LOADERS["adapter"](folder)


def test_a_model_is_not_loaded_from_where_an_adapter_points(folder):
    """transformers would look on the hub for the model that the adapter names."""
    write_json(folder / "adapter_config.json", {"base_model_name_or_path": "some/other"})
    with pytest.raises(WxbError, match=r"found adapter_config\.json; expected a full model"):
        pretrained.model(AutoModel, folder)


def test_weights_of_another_size_are_named(folder):
    edit(folder / "config.json", vocab_size=9)
    with pytest.raises(WxbError, match=r"mismatched tensors: .*word_embeddings"):
        weights.load_backbone(folder)


def test_a_class_that_is_no_model_is_not_looked_up(folder):
    edit(folder / "config.json", architectures=["pipeline"])
    assert type(LOADERS["initial"](folder)).__name__ == "BertModel"


def test_settings_that_are_no_numbers_are_an_error(tmp_path):
    (tmp_path / paths.SETTINGS).write_text('{"task": "ner", "method": "tagging", "threshold": NaN}')
    with pytest.raises(WxbError, match="found NaN; expected a finite number"):
        wxb.load(tmp_path)


def loading_calls(path):
    """What a module calls `from_pretrained` of, but safe classes: its own, ours and torch's."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    safe = {"super()", *(node.name for node in nodes if isinstance(node, ast.ClassDef))}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("wxb", "torch"):
            safe |= {alias.asname or alias.name for alias in node.names}
    owners = [
        ast.unparse(node.func.value)
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "from_pretrained"
    ]
    # The MODEL of a method is a class of ours.
    return [o for o in owners if o.split(".")[0] not in safe and not o.endswith(".MODEL")]


def test_only_one_module_calls_from_pretrained():
    """So no other call can forget to reject code."""
    files = [path for folder in ("wxb", "stages") for path in (ROOT / folder).rglob("*.py")]
    calls = [path.relative_to(ROOT).as_posix() for path in files if loading_calls(path)]
    assert calls == ["wxb/core/pretrained.py"]
    assert (ROOT / "wxb/core/pretrained.py").read_text().count("trust_remote_code") == 1
