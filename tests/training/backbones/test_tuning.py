"""LoRA, QLoRA and NEFTune: trainable and frozen weights, storage, and the scale of noise."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from bitsandbytes.nn import Linear4bit, Params4bit
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors.torch import load_file
from transformers import set_seed

from tests import tiny
from tests.models.equal import SINGLE, difference
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.ner.models.tagger import Tagger
from wxb.tasks.ner.params import Head, TaggingModel
from wxb.training.backbones import tuning
from wxb.training.backbones.generator import Generator, language_model
from wxb.training.backbones.native import Native
from wxb.training.backbones.tuning import parameter_count
from wxb.training.backbones.weights import load_backbone

VOCABULARY, NEW = 60, [60, 61, 62]
HEAD = TaggingModel(head=Head(projection=12, dropout=0.0))
LORA = LowRank(r=4, alpha=8, dropout=0.0, target_modules=["v_proj", "q_proj"])
BERT_LORA = LORA.model_copy(update={"target_modules": ["value", "query"]})
IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
NEW_IDS = torch.tensor([[1, 7, 60, 3, 0, 0], [1, 30, 61, 32, 62, 2]])
TAGS = torch.where(MASK.bool(), IDS % 5, IGNORED)
FLAGS = torch.where(MASK.bool(), IDS % 2, IGNORED)

QLORA_ON_BERT = "qlora on BERT"
each_kind = pytest.mark.parametrize("kind", ["lora", "qlora", QLORA_ON_BERT])


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A folder with a BERT and two LLaMAs, with tied and with untied embeddings."""
    folder = tmp_path_factory.mktemp("models")
    tiny.bert(folder / "bert", vocab_size=VOCABULARY)
    tiny.llama(folder / "llama", vocab_size=VOCABULARY, tie_word_embeddings=True)
    tiny.llama(folder / "llama-untied", vocab_size=VOCABULARY)
    return folder


def settings_of(kind, **changes):
    lora = {"full": None, QLORA_ON_BERT: BERT_LORA}.get(kind, LORA)
    return Tuning(lora=lora, four_bit=kind.startswith("qlora"), **changes)


def tagger(bases, kind, **changes):
    tuning_settings = settings_of(kind, **changes)
    set_seed(1)
    base = "bert" if kind == QLORA_ON_BERT else "llama"
    backbone = load_backbone(bases / base, four_bit=tuning_settings.four_bit)
    adapted = tuning.adapt(backbone, tuning_settings, task_type="FEATURE_EXTRACTION")
    return Tagger(adapted, 5, HEAD, tuning=tuning_settings)


def generator(bases, kind, new=(), base="llama", **changes):
    tuning_settings = settings_of(kind, **changes)
    set_seed(1)
    size = VOCABULARY + len(new)
    backbone = language_model(bases / base, vocabulary=size, four_bit=tuning_settings.four_bit)
    adapted = tuning.adapt(backbone, tuning_settings, task_type="CAUSAL_LM", new_tokens=list(new))
    return Generator(adapted, tuning=tuning_settings)


def loss_of(model, ids=IDS):
    if isinstance(model, Tagger):
        return model(ids, MASK, tags=TAGS, starts=FLAGS, ends=FLAGS)["loss"]
    return model(ids, MASK, ids.masked_fill((MASK == 0) | (ids == 1), IGNORED))["loss"]


def train(model, steps=3, ids=IDS, between=None):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(steps):
        model.train()
        optimizer.zero_grad()
        loss_of(model, ids).backward()
        optimizer.step()
        if between:
            between(model.eval())
    return model


def frozen(model):
    """Copies of the frozen weights, with the quantization states of those in 4 bits."""
    copies = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            continue
        copies[name] = p.data.clone()
        if isinstance(p, Params4bit):
            state = p.quant_state
            for key, value in {**vars(state), **vars(state.state2)}.items():
                copies[f"{name}: {key}"] = value.clone() if torch.is_tensor(value) else str(value)
            for key in ("absmax", "code", "offset"):
                copies[f"{name}: outer {key}"] = getattr(state, key).clone()
    return copies


def trainable_weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters() if p.requires_grad}


def same(a, b):
    return a.keys() == b.keys() and all(
        torch.equal(a[name], b[name]) if torch.is_tensor(a[name]) else a[name] == b[name]
        for name in a
    )


# Trainable weights


@each_kind
def test_only_matrices_and_head_are_trained(bases, kind):
    model = tagger(bases, kind)
    before, frozen_before = trainable_weights(model), frozen(model)
    assert all("lora_" in name or name.startswith("head.") for name in before)
    assert sum("lora_" in name for name in before) == 2 * 2 * 2  # A and B, two targets, two layers
    assert sum(name.startswith("head.") for name in before) == 8
    train(model)
    with_gradient = {name for name, p in model.named_parameters() if p.grad is not None}
    assert with_gradient == set(before)
    after = trainable_weights(model)
    assert [name for name in before if torch.equal(before[name], after[name])] == []
    assert same(frozen(model), frozen_before)


@pytest.mark.parametrize("kind", ["lora", "qlora"])
@pytest.mark.parametrize("base", ["llama", "llama-untied"])
def test_only_embeddings_of_new_tokens_are_trained(bases, kind, base):
    model = generator(bases, kind, new=NEW, base=base)

    def tables():
        """The input and the output embeddings of all tokens."""
        embed, output = (
            getattr(model.backbone, f"get_{side}_embeddings")() for side in ("input", "output")
        )
        inputs = embed(torch.arange(VOCABULARY + len(NEW)))
        return inputs.detach().clone(), output(torch.eye(64)).T.detach().clone()

    before, frozen_before = tables(), frozen(model)
    train(model, ids=NEW_IDS)
    for old, new in zip(before, tables(), strict=True):
        assert torch.equal(old[:VOCABULARY], new[:VOCABULARY])
        assert (old[VOCABULARY:] != new[VOCABULARY:]).any(dim=1).all()
    assert same(frozen(model), frozen_before)
    for inputs, outputs in (before, tables()):
        assert torch.equal(inputs, outputs) == (base == "llama")
    rows = [name for name in trainable_weights(model) if "trainable_tokens" in name]
    assert len(rows) == (1 if base == "llama" else 2)
    assert len(trainable_weights(model)) == 2 * 2 * 2 + len(rows)


# Quantization


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_linear_layers_are_in_nested_nf4(bases, name):
    full, quantized = load_backbone(bases / name), load_backbone(bases / name, four_bit=True)
    assert parameter_count(quantized) == parameter_count(full)
    linear = [m for m in full.modules() if isinstance(m, torch.nn.Linear)]
    layers = [m for m in quantized.modules() if isinstance(m, Linear4bit)]
    assert len(layers) == len(linear)
    for layer in layers:
        assert layer.weight.quant_state.quant_type == "nf4"
        assert layer.weight.quant_state.nested
        on_gpu = layer.weight.device.type == "cuda"
        assert layer.compute_dtype == (torch.bfloat16 if on_gpu else torch.float32)
    others = [p for p in quantized.parameters() if not isinstance(p, Params4bit)]
    assert {p.dtype for p in others} == {torch.float32}


@each_kind
def test_evaluation_between_steps_changes_nothing(bases, kind):
    """On some CPUs bitsandbytes would repack its weights, and round their scales."""

    def evaluate(model):
        before = frozen(model)
        with torch.no_grad():
            first = loss_of(model)
            assert torch.equal(loss_of(model), first)
        with torch.inference_mode():
            assert torch.equal(loss_of(model), first)
        assert same(frozen(model), before)

    uninterrupted = train(tagger(bases, kind))
    evaluated = tagger(bases, kind)
    evaluate(evaluated.eval())
    train(evaluated, between=evaluate)
    assert same(trainable_weights(uninterrupted), trainable_weights(evaluated))


# Saving


@each_kind
def test_an_adapter_is_saved_without_its_base_and_deterministically(bases, kind, tmp_path):
    for name in ("a", "b"):
        train(tagger(bases, kind)).save_pretrained(tmp_path / name)
    files = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}
    assert files == {p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()}
    weights = {"adapter_model.safetensors", "head.safetensors"}
    assert set(files) == {tuning.ADAPTER, tuning.BASE, *weights}
    config = json.loads(files[tuning.ADAPTER])
    assert config["target_modules"] == sorted(config["target_modules"])
    assert (config["r"], config["lora_alpha"]) == (LORA.r, LORA.alpha)
    name = "bert" if kind == QLORA_ON_BERT else "llama"
    assert Path(config["base_model_name_or_path"]).name == name


@pytest.mark.parametrize("kind", ["lora", "qlora"])
@pytest.mark.parametrize("base", ["llama", "llama-untied"])
def test_only_the_rows_of_new_tokens_are_saved(bases, kind, base, tmp_path):
    model = train(generator(bases, kind, new=NEW, base=base), ids=NEW_IDS).eval()
    folder = bases / f"extended-{kind}-{base}"
    model.save_pretrained(folder)
    saved = load_file(folder / "adapter_model.safetensors")
    assert sum(v.numel() for v in saved.values()) == parameter_count(model, trainable=True)
    four_bit = kind == "qlora"
    loaded = Generator.from_pretrained(folder, vocabulary=VOCABULARY + len(NEW), four_bit=four_bit)
    plain = language_model(bases / base, vocabulary=VOCABULARY + len(NEW), four_bit=four_bit)
    plain = PeftModel.from_pretrained(plain, folder).eval()
    inputs = {"input_ids": NEW_IDS, "attention_mask": MASK}
    with torch.inference_mode():
        expected = model.backbone(**inputs).logits
        assert torch.equal(plain(**inputs).logits, expected)
        assert torch.equal(loaded.backbone(**inputs).logits, expected)


@pytest.mark.parametrize("new", [[], NEW])
def test_a_frozen_language_model_is_stored_once(bases, new):
    model = generator(bases, "full", new=new, frozen=True)
    folder = bases / f"frozen-{len(new)}"
    folder.mkdir()
    model.eval().save_pretrained(folder)
    weights = {path.name for path in folder.rglob("*") if path.suffix == ".safetensors"}
    assert weights == ({"model.safetensors"} if new else set())
    loaded = Generator.from_pretrained(folder, vocabulary=VOCABULARY + len(new))
    assert isinstance(loaded.backbone, Native)
    assert parameter_count(loaded) == parameter_count(model)
    with torch.inference_mode():
        ids = NEW_IDS if new else IDS
        expected = model.backbone(ids, attention_mask=MASK).logits[MASK.bool()]
        own = loaded.backbone(ids, attention_mask=MASK).logits[MASK.bool()]
    assert difference([own], [expected]) <= SINGLE


# Mixed precision


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("four_bit", [False, True])
def test_lora_in_bfloat16_has_the_gradients_of_peft_s_conversions(bases, four_bit, dropout):
    lora = LowRank(r=4, alpha=8, dropout=dropout, target_modules=["o_proj", "down_proj"])
    models = []
    for converts in (False, True):
        set_seed(1)
        backbone = load_backbone(bases / "llama", four_bit=four_bit)
        settings = Tuning(lora=lora, four_bit=four_bit)
        models.append(tuning.adapt(backbone, settings, task_type="FEATURE_EXTRACTION").train())
        for module in models[-1].modules():
            if converts and isinstance(module, BaseTunerLayer):
                module.cast_input_dtype_enabled = True
        with torch.autocast("cpu", torch.bfloat16):
            output = models[-1](IDS, MASK).last_hidden_state
        output.square().mean().backward()
    assert same(*map(gradients, models))


# Gradient checkpointing


@pytest.mark.parametrize("make", [tagger, generator])
@pytest.mark.parametrize("kind", ["full", "lora", "qlora"])
def test_gradient_checkpointing_recomputes_the_same_gradients(bases, kind, make):
    by_setting = {}
    for checkpointing in (False, True):
        model, calls = make(bases, kind, gradient_checkpointing=checkpointing), []
        (block,) = [m for name, m in model.named_modules() if name.endswith("layers.0.mlp")]
        block.register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
        loss_of(model.train()).backward()
        by_setting[checkpointing] = gradients(model)
        assert len(calls) == 1 + checkpointing
    assert all(gradient is not None for gradient in by_setting[True].values())
    assert same(by_setting[False], by_setting[True])


# Noise


@pytest.mark.parametrize("alpha", [1.0, 5.0, 15.0])
@pytest.mark.parametrize("padded", [False, True])
def test_noise_is_uniform_on_the_scale_of_its_row_and_the_same_on_every_cpu(alpha, padded):
    lengths = torch.arange(60)
    mask = (torch.arange(70) < lengths[:, None]).long()
    embeddings = torch.randn(60, 70, 32, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    noisy = tuning.add_noise(embeddings, mask, alpha, padded=padded)
    torch.manual_seed(1)
    uniform = torch.empty(60, 70, 32).uniform_(-1, 1).numpy()
    # numpy's square roots are those of IEEE 754; MKL's differ in some of longer vectors.
    counted = np.full(60, 70) if padded else lengths.clamp(min=1).numpy()
    scale = np.float32(alpha) * (np.float32(1) / np.sqrt((counted * 32).astype(np.float32)))
    noise = uniform * scale[:, None, None] * mask[:, :, None].numpy().astype(np.float32)
    assert np.array_equal(noisy.numpy(), embeddings.numpy() + noise)


@pytest.mark.parametrize("make", [tagger, generator])
@pytest.mark.parametrize("kind", ["full", "lora", "qlora"])
def test_only_training_has_noise(bases, kind, make):
    noisy, plain = make(bases, kind, neftune_alpha=5.0), make(bases, kind)
    assert torch.equal(loss_of(noisy.eval()), loss_of(plain.eval()))
    expected = loss_of(plain.train())
    first, second = loss_of(noisy.train()), loss_of(noisy)
    assert expected != first != second != expected
    noisy.tuning = Tuning(neftune_alpha=1e-12)  # embeddings instead of ids change nothing
    assert difference([loss_of(noisy)], [expected]) <= SINGLE


def test_new_tokens_are_trained_with_noise(bases):
    model = generator(bases, "lora", new=NEW, neftune_alpha=5.0)
    loss_of(model.train(), NEW_IDS).backward()
    (rows,) = [p for name, p in model.named_parameters() if "trainable_tokens" in name]
    assert rows.grad.any(dim=1).all()
