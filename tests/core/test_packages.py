"""Checkpoints of packages, of GGUF and of CTranslate2: the same weights, and the errors."""

import hashlib
import json
import struct
import sys

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    WhisperConfig,
    WhisperForConditionalGeneration,
    set_seed,
)

from tests import tiny
from wxb.core import packages, pretrained
from wxb.core.ctranslate2 import write_whisper
from wxb.core.errors import WxbError
from wxb.core.hub import checkpoint
from wxb.core.params.backbones import Backbone
from wxb.corpora.text import tokenizers
from wxb.training.backbones.weights import initial_model

TEXT = "Call Ann Smith at 112 in Zürich."


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A folder with a causal language model and its tokenizer."""
    folder = tmp_path_factory.mktemp("llama")
    tokenizer = tokenizers.train("byte-level-bpe", 300, [TEXT] * 9)
    tiny.llama(folder, vocab_size=len(tokenizer), tie_word_embeddings=False)
    tokenizer.save_pretrained(folder)
    return folder


def to_gguf(folder, file, architecture="llama"):
    """Write a saved LLaMA in GGUF's format."""
    gguf = pytest.importorskip("gguf", reason="the extra `pretrained` is not installed")
    model = AutoModelForCausalLM.from_pretrained(folder)
    config, tokenizer = model.config, tokenizers.load(folder)
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    special = {*tokenizer.all_special_tokens}
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        if count := heads.get(name.split(".")[-2]):  # GGUF has the halves of each head alternating
            rows, columns = weight.shape
            halves = weight.reshape(count, 2, rows // count // 2, columns)
            weight = halves.swapaxes(1, 2).reshape(rows, columns)
        own = names.get_name(name, try_suffixes=(".weight",))
        writer.add_tensor(own, weight.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def test_a_gguf_file_is_a_checkpoint_with_the_same_weights_and_tokens(llama, tmp_path):
    file = to_gguf(llama, tmp_path / "tiny.gguf")
    backbone = Backbone(corpus="c", objective="none", checkpoint=str(file))
    tokenizer = tokenizers.load(backbone.checkpoint)
    expected = tokenizers.load(llama)
    assert tokenizer(TEXT)["input_ids"][-5:] == expected(TEXT)["input_ids"][-5:]
    model = initial_model(backbone, tokenizer)
    model.save_pretrained(tmp_path / "saved")
    saved = pretrained.model(AutoModelForCausalLM, tmp_path / "saved").state_dict()
    weights = AutoModelForCausalLM.from_pretrained(llama).state_dict()
    assert saved.keys() == weights.keys()
    assert all(torch.equal(saved[name][: len(w)], w) for name, w in weights.items())  # new at end


def test_errors_of_gguf_files_name_the_cure(llama, tmp_path, monkeypatch):
    file = to_gguf(llama, tmp_path / "tiny.gguf")
    truncated = tmp_path / "truncated.gguf"
    faults = {"does not exist; correct": tmp_path / "none.gguf"}
    for size in (0, 20, 2000, file.stat().st_size - 1):
        truncated.write_bytes(file.read_bytes()[:size])
        for cure, source in {**faults, "download it again": truncated}.items():
            with pytest.raises(WxbError, match=cure), checkpoint(source):
                pass
    other = to_gguf(llama, tmp_path / "other.gguf", architecture="clip")
    match = "other.gguf: expected a checkpoint .* architecture clip is not supported"
    with pytest.raises(WxbError, match=match), checkpoint(other):
        pretrained.config(other)
    monkeypatch.setattr(packages, "find_spec", lambda _: None)
    with pytest.raises(WxbError, match=r"make \.venv/pretrained"), checkpoint(file):
        pass


def test_files_of_a_package_are_checked_and_its_code_is_not_run(llama, tmp_path, monkeypatch):
    file = to_gguf(llama, tmp_path / "tiny.gguf")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package/__init__.py").write_text("1 / 0")
    packed = file.rename(tmp_path / "own_package/tiny.gguf")
    own = {"smollm2": ("own-package", {digest: ["own_package/tiny.gguf"]})}
    monkeypatch.setattr(packages, "PACKAGES", own)
    monkeypatch.setattr("wxb.core.hub.PACKAGES", own)
    with pytest.raises(WxbError, match=r"make \.venv/pretrained"), checkpoint("smollm2"):
        pass
    monkeypatch.syspath_prepend(tmp_path)
    with checkpoint("smollm2", weights=True) as source:
        assert source == packed
    assert "own_package" not in sys.modules
    packed.write_bytes(packed.read_bytes()[:-1] + b"x")
    with pytest.raises(WxbError, match=rf"expected {digest}.*make \.venv/pretrained"):
        packages.verified_files("smollm2")
    packed.unlink()
    with pytest.raises(WxbError, match="uninstall own-package"):
        packages.verified_files("smollm2")


ATTENTION = {  # of transformers, by those of CTranslate2
    "self_attention": ("self_attn", ["q_proj k_proj v_proj", "out_proj"]),
    "attention": ("encoder_attn", ["q_proj", "k_proj v_proj", "out_proj"]),
}


def layer_arrays(weights, ours, theirs):
    """The arrays of a layer with CTranslate2's names; `weights` are those of a Whisper."""
    width = len(weights[f"{ours}.final_layer_norm.bias"])
    plain = {"ffn/linear_0": "fc1", "ffn/linear_1": "fc2", "ffn/layer_norm": "final_layer_norm"}
    for name, (own, groups) in ATTENTION.items():
        if f"{ours}.{own}.q_proj.weight" in weights:
            plain[f"{name}/layer_norm"] = f"{own}_layer_norm"
            for index, group in enumerate(groups):
                for leaf in ("weight", "bias"):
                    keys = [f"{ours}.{own}.{part}.{leaf}" for part in group.split()]
                    values = [weights.get(key, torch.zeros(width)) for key in keys]
                    yield f"{theirs}/{name}/linear_{index}/{leaf}", torch.cat(values)
    for name, own in plain.items():
        leaves = ("gamma", "beta") if "norm" in name else ("weight", "bias")
        for leaf, key in zip(leaves, ("weight", "bias"), strict=True):
            yield f"{theirs}/{name}/{leaf}", weights[f"{ours}.{own}.{key}"]


def to_ctranslate2(model):
    """The bytes of a Whisper in CTranslate2's format, in float16."""
    weights = model.model.state_dict()
    arrays = {
        "decoder/embeddings/weight": weights["decoder.embed_tokens.weight"],
        **{
            f"encoder/{conv}/{leaf}": weights[f"encoder.{conv}.{leaf}"]
            for conv in ("conv1", "conv2")
            for leaf in ("weight", "bias")
        },
    }
    for side in ("encoder", "decoder"):
        arrays[f"{side}/layer_norm/gamma"] = weights[f"{side}.layer_norm.weight"]
        arrays[f"{side}/layer_norm/beta"] = weights[f"{side}.layer_norm.bias"]
        arrays[f"{side}/position_encodings/encodings"] = weights[f"{side}.embed_positions.weight"]
        for layer in range(getattr(model.config, f"{side}_layers")):
            arrays |= layer_arrays(weights, f"{side}.layers.{layer}", f"{side}/layer_{layer}")
    heads = {
        f"{side}/num_heads": np.array(getattr(model.config, f"{side}_attention_heads"), np.int16)
        for side in ("encoder", "decoder")
    }
    content = struct.pack("<I", 6) + text("WhisperSpec")
    content += struct.pack("<II", 3, len(arrays) + len(heads))
    halves = {name: values.numpy().astype(np.float16) for name, values in arrays.items()}
    for name, values in {**halves, **heads}.items():
        shape = struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
        kind = {"int16": 2, "float16": 4}[values.dtype.name]
        content += text(name) + shape + struct.pack("<BI", kind, values.nbytes) + values.tobytes()
    return content + struct.pack("<I", 0)  # aliases


def text(value):
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def test_a_whisper_of_ctranslate2_becomes_that_of_transformers(tmp_path):
    set_seed(0)
    shape = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 16, "max_source_positions": 10}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 4}
    widths = {"encoder_ffn_dim": 24, "decoder_ffn_dim": 40, "max_target_positions": 9}
    config = WhisperConfig(**shape, **heads, **widths, num_mel_bins=5, vocab_size=50300)
    model = WhisperForConditionalGeneration(config).half()
    content = to_ctranslate2(model)
    files = [tmp_path / name for name in ("model.bin.1", "model.bin.2", "original.json")]
    for file, part in zip(files, (content[:999], content[999:], b"{}"), strict=True):
        file.write_bytes(part)
    write_whisper(files, tmp_path)
    converted = pretrained.model(WhisperForConditionalGeneration, tmp_path)
    assert converted.config.encoder_attention_heads == 2
    assert converted.config.decoder_attention_heads == 4
    state = model.state_dict()
    assert converted.state_dict().keys() == state.keys()
    assert all(torch.equal(state[name], v) for name, v in converted.state_dict().items())
