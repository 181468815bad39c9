"""Adapters and heads return the same logits in another process, with wxb and with peft alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import set_seed

from tests import tiny
from wxb import tasks
from wxb.core.params.experiments import LowRank, Tuning
from wxb.core.params.training import Training
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import load, train
from wxb.tasks.ner.params import METHODS
from wxb.tasks.ner.tagging.bio import tag_names

ROOT = Path(__file__).parents[3]
TYPES = ["AGE", "NAME"]
TEXTS = ["Ann is 9 and Bob is 12.", "Zoë is 34"]
TOKENIZERS = {
    "bert": train("wordpiece", 300, TEXTS),
    "llama": train("byte-level-bpe", 300, TEXTS),
}
TOKENIZERS["llama-untied"] = TOKENIZERS["llama"]
IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])

# Method, backbone and settings of tuning.
CASES = {
    "tagger-lora": ("tagging", "llama", {}),
    "tagger-qlora": ("tagging", "llama", {"four_bit": True}),
    "tagger-bert-qlora": ("tagging", "bert", {"four_bit": True}),
    "tagger-bidirectional-qlora": ("tagging", "llama", {"four_bit": True}),
    "generator-lora": ("generation", "llama", {}),
    "generator-qlora": ("generation", "llama", {"four_bit": True}),
    "generator-new-tokens-lora": ("generation", "llama", {}),
    "generator-new-tokens-qlora": ("generation", "llama", {"four_bit": True}),
    "generator-new-tokens-untied": ("generation", "llama-untied", {"four_bit": True}),
}

pytestmark = pytest.mark.slow


def experiment(name):
    method, backbone, changes = CASES[name]
    targets = ["value", "query"] if backbone == "bert" else ["v_proj", "q_proj", "up_proj"]
    lora = LowRank(r=4, alpha=8, dropout=0.1, target_modules=targets)
    is_generator = method == "generation"
    head = {"projection": 12, "dropout": 0.1}
    return METHODS[method](
        study="s",
        corpus="c",
        task="ner",
        method=method,
        backbone=backbone,
        architecture="wxb/models",
        encoding={"max_length": 16, "stride": 4}
        | ({"special_tokens": "new-tokens" in name} if is_generator else {}),
        model={} if is_generator else {"head": head, "bidirectional": "bidirectional" in name},
        prediction={},
        tuning=Tuning(lora=lora, **changes),
        training=Training(epochs=1, batch_size=1, learning_rate=1e-3),
    )


def save_base(folder, kind):
    size = len(TOKENIZERS[kind])
    if kind == "bert":
        tiny.bert(folder, vocab_size=size)
    else:
        tied = kind == "llama"
        tiny.llama(folder, vocab_size=size, tie_word_embeddings=tied, pad_token_id=0)
    TOKENIZERS[kind].save_pretrained(folder)


def trained(folder, name):
    """The predictor of a case after three steps of training."""
    settings = experiment(name)
    task, backbone = tasks.get(settings.task).method(settings.method), folder / settings.backbone
    tokenizer = tasks.method_of(settings, TYPES, load(backbone)).tokenizer
    set_seed(1)
    model = task(settings, TYPES, tokenizer).build(backbone).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    ids = torch.where(IDS > 9, IDS % 4 + len(tokenizer) - 4, IDS)  # includes new tokens
    for _ in range(3):
        optimizer.zero_grad()
        targets = ids.masked_fill((MASK == 0) | (IDS == 1), IGNORED)
        if settings.method == "generation":
            loss = model(ids, MASK, targets)["loss"]
        else:
            tags = torch.where(targets == IGNORED, IGNORED, targets % len(tag_names(TYPES)))
            flags = tags.clamp(max=1)
            loss = model(ids, MASK, tags=tags, starts=flags, ends=flags)["loss"]
        loss.backward()
        optimizer.step()
    lengths = {"max_length": 16, "stride": 4, "longest": 9}
    return task.Predictor(model, tokenizer, types=TYPES, threshold=0.0, **lengths)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of all cases, saved in this process and loaded in another."""
    folder = tmp_path_factory.mktemp("models")
    for kind in TOKENIZERS:
        save_base(folder / kind, kind)
    batch = {"input_ids": IDS, "attention_mask": MASK}
    save_file(batch, folder / "batch.safetensors")
    expected = {}
    for name in CASES:
        predictor = trained(folder, name)
        predictor.save(folder / name, experiment(name), updates=3, examples=20)
        model = predictor.model
        with torch.inference_mode():
            logits = (
                model(**batch)
                if hasattr(model, "head")
                else {"logits": model.backbone(**batch).logits}
            )
        for key, values in logits.items():
            expected[f"{name}/{key}"] = values.contiguous()
    save_file(expected, folder / "expected.safetensors")
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("reload.py")), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "5"},
        check=True,
    )
    return folder


def assert_same(folder, name, loader):
    actual = load_file(folder / f"logits/{name}-{loader}")
    expected = load_file(folder / "expected.safetensors")
    assert actual.keys() == {k.split("/")[1] for k in expected if k.startswith(f"{name}/")}
    for key, values in actual.items():
        assert torch.equal(values, expected[f"{name}/{key}"]), key


@pytest.mark.parametrize("name", CASES)
def test_wxb_loads_the_same_logits_bit_for_bit(folder, name):
    assert_same(folder, name, "wxb")


@pytest.mark.parametrize("name", [name for name in CASES if "bidirectional" not in name])
def test_peft_alone_loads_the_same_logits_bit_for_bit(folder, name):
    assert_same(folder, name, "plain")


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_is_saved_as_the_same_bytes(folder, name):
    again = sorted((folder / "again" / name).iterdir())
    assert "adapter_model.safetensors" in [path.name for path in again]
    for path in again:
        assert path.read_bytes() == (folder / name / path.name).read_bytes(), path.name


def test_cases_differ(folder):
    """If all cases were equal, the tests above would be weak."""
    expected = load_file(folder / "expected.safetensors")
    taggers = [expected[f"{name}/tags"] for name in CASES if name.startswith("tagger")]
    generators = [expected[f"{name}/logits"] for name in CASES if name.startswith("generator")]
    for group in (taggers, generators):
        for index, logits in enumerate(group):
            assert not any(torch.equal(logits, earlier) for earlier in group[:index])
