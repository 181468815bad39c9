"""Loading a model, tokenizer or adapter never runs code of its folder."""

import ast
import builtins
import json
import pickle
import shutil
from functools import partial
from pathlib import Path

import pytest
from peft import PeftModel
from safetensors.torch import save_file
from transformers import AutoModel
from typer.testing import CliRunner

import wxb
from tests import tiny
from wxb.cli.app import app
from wxb.core import paths, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params.backbones import Backbone
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text.tokenizers import load, train
from wxb.lessons import attention
from wxb.training.backbones import tuning, weights
from wxb.training.backbones.native import Native

ROOT = Path(__file__).parents[2]
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
HOSTILE = {
    "model": ("config.json", {"model_type": "unheard-of", "auto_map": MODEL}),
    "old model": ("config.4.0.0.json", {"model_type": "unheard-of", "auto_map": MODEL}),
    "tokenizer": (
        "tokenizer_config.json",
        {
            "tokenizer_class": "Tokenizer",
            "auto_map": {"AutoTokenizer": ["code.Tokenizer", "code.Tokenizer"]},
        },
    ),
    "kernel": ("config.json", {"_attn_implementation": "some/kernel"}),
    "experts": ("config.json", {"experts_implementation": "some/kernel"}),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An encoder without custom code, in the layout of a trained experiment."""
    folder = tmp_path_factory.mktemp("plain") / "encoder"
    tokenizer = train("wordpiece", 300, TEXTS)
    tiny.bert(folder, vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder)
    head = {"projection": 8, "dropout": 0.0}
    settings = {
        "task": "ner",
        "method": "tagging",
        "types": ["NAME"],
        "head": head,
        "word_features": None,
    }
    settings |= {"bidirectional": False, "four_bit": False, "implementation": "transformers"}
    write_json(folder / paths.SETTINGS, settings)
    return folder


@pytest.fixture
def folder(plain, tmp_path, monkeypatch):
    """A copy in the working folder, which is otherwise empty."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(plain, tmp_path / "encoder")


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
    write_json(path, {**(read_json(path) if path.exists() else {}), **changes})


def add_code(folder, kind, trace):
    """Make the configuration of a folder request code, by one of HOSTILE."""
    (folder / "code.py").write_text(CODE.format(trace=str(trace)))
    name, changes = HOSTILE[kind]
    if "4.0.0" in name:
        shutil.copy(folder / "config.json", folder / name)
        edit(folder / "config.json", configuration_files=[name])
    edit(folder / name, **changes)
    return name


def command(*arguments):
    def run(folder):
        Path("lines.txt").write_text("\n".join(TEXTS))
        done = CliRunner().invoke(app, [*arguments, str(folder)], input="y\n")
        raise done.exception

    return run


def through_an_adapter(load_adapter):
    def run(folder):
        settings = {"peft_type": "LORA", "base_model_name_or_path": folder.name}
        settings |= {"r": 2, "lora_alpha": 4.0, "target_modules": ["query"]}
        write_json(Path("adapter/adapter_config.json"), settings)
        save_file({}, Path("adapter/adapter_model.safetensors"))
        load_adapter(Path("adapter"))

    return run


LOADERS = {
    "backbone": weights.load_backbone,
    "initial": lambda folder: weights.initial_model(
        Backbone(corpus="c", objective="none", checkpoint=str(folder)), None
    ),
    "tokenizer": load,
    "adapter": through_an_adapter(partial(tuning.load, load_backbone=weights.load_backbone)),
    "merged": through_an_adapter(Native.from_folder),
    "attention": lambda folder: attention.attention_weights(folder, TEXTS[0]),
    "load": wxb.load,
    "mask": command("mask", "-e"),
    "search": command("search", "Ann", "--file", "lines.txt", "--encoder"),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("loader", LOADERS)
def test_no_code_runs_and_no_question_is_asked(folder, trace, loader, kind):
    name = add_code(folder, kind, trace)
    with pytest.raises(WxbError, match=rf"encoder/{name}: found `.*(code|kernel).*remove `"):
        LOADERS[loader](folder)


@pytest.mark.parametrize("loader", ["tokenizer", "backbone", "attention", "load"])
def test_invalid_json_is_an_error(folder, loader):
    (folder / "config.json").write_text("[1, {")
    with pytest.raises((WxbError, json.JSONDecodeError), match=r"Expecting|expected"):
        LOADERS[loader](folder)


def test_a_missing_folder_is_not_looked_up_on_the_hub(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for kind in (pretrained.config, pretrained.tokenizer, weights.load_backbone):
        with pytest.raises(WxbError, match="models/encoder: no such folder"):
            kind("models/encoder")


class Attack:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("loader", ["backbone", "initial", "attention", "search"])
def test_pickles_are_not_read(folder, trace, loader):
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "training_args.bin"):
        (folder / name).write_bytes(pickle.dumps(Attack(trace)))
    with pytest.raises((WxbError, OSError), match=r"found no (model|file).*safetensors|no file"):
        LOADERS[loader](folder)


@pytest.fixture
def adapter(folder):
    """An adapter that belongs to the encoder beside it."""
    low = LowRank(r=2, alpha=4, dropout=0.0, target_modules=["query"])
    settings = Tuning(lora=low, four_bit=False, gradient_checkpointing=False, neftune_alpha=None)
    backbone = tuning.adapt(weights.load_backbone(folder), settings, task_type="FEATURE_EXTRACTION")
    tuning.save(backbone, folder.parent / "adapter")
    return folder.parent / "adapter"


def test_an_adapter_is_loaded_onto_the_model_beside_it_wherever_it_points(adapter):
    edit(adapter / "adapter_config.json", base_model_name_or_path="/elsewhere/on/disk/encoder")
    loaded = tuning.load(adapter, weights.load_backbone)
    assert isinstance(loaded, PeftModel)
    assert Path(loaded.get_base_model().name_or_path) == adapter.parent / "encoder"
    other_seed = adapter.parent / "experiment" / "seed-2"
    shutil.copytree(adapter, other_seed)
    loaded = tuning.load(other_seed, weights.load_backbone)
    assert Path(loaded.get_base_model().name_or_path) == adapter.parent / "encoder"
    edit(adapter / "adapter_config.json", base_model_name_or_path="some/other")
    with pytest.raises(WxbError, match=r"adapter: its base model 'other' is not in .*/other"):
        tuning.load(adapter, weights.load_backbone)


def test_only_lora_adapters_in_safetensors_are_loaded(adapter, trace):
    backbone = weights.load_backbone(adapter.parent / "encoder")
    (adapter / "adapter_model.safetensors").rename(adapter / "saved")
    (adapter / "adapter_model.bin").write_bytes(pickle.dumps(Attack(trace)))
    with pytest.raises(WxbError, match=r"adapter: found no adapter_model\.safetensors"):
        pretrained.adapter(backbone, adapter)
    (adapter / "saved").rename(adapter / "adapter_model.safetensors")
    edit(adapter / "adapter_config.json", peft_type="PROMPT_TUNING")
    with pytest.raises(WxbError, match="found an adapter of kind 'PROMPT_TUNING'; expected LORA"):
        pretrained.adapter(backbone, adapter)


def test_a_model_is_not_loaded_from_where_an_adapter_points(folder):
    """transformers would look on the hub for the model that the adapter names."""
    write_json(folder / "adapter_config.json", {"base_model_name_or_path": "some/other"})
    with pytest.raises(WxbError, match=r"found adapter_config\.json; expected a full model"):
        pretrained.model(AutoModel, folder)


def test_a_class_that_is_no_model_is_not_looked_up(folder):
    edit(folder / "config.json", architectures=["pipeline"])
    assert type(LOADERS["initial"](folder)).__name__ == "BertModel"


# Our classes, which load through wxb.core.pretrained or from safetensors, and torch's, which
# reads no file.
SAFE_CLASSES = {
    "Tagger",
    "Generator",
    "Model",
    "Tfidf",
    "CRF",
    "model.Classifier",
    "model.Recurrent",
    "model.Transcriber",
    "nn.Embedding",
}


def test_only_one_module_calls_from_pretrained():
    """So no other call can forget to reject code."""
    calls = {
        (path.relative_to(ROOT).as_posix(), ast.unparse(node.func.value))
        for folder in ("wxb", "stages")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "from_pretrained"
    }
    others = {(path, owner) for path, owner in calls if owner not in SAFE_CLASSES}
    assert {path for path, _ in others} == {"wxb/core/pretrained.py"}, others
    assert (ROOT / "wxb/core/pretrained.py").read_text().count("trust_remote_code") == 1
