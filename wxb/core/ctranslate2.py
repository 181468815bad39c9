"""Convert a Whisper of CTranslate2 to the format of transformers."""

import re
import shutil
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from wxb.core.files import write_json

Arrays = dict[str, NDArray[np.generic]]
TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
RENAMED = {  # in this order, from CTranslate2 to transformers
    r"layer_(\d+)": r"layers/\1",
    "self_attention/linear_0": "self_attn/q_proj+k_proj+v_proj",
    "self_attention/linear_1": "self_attn/out_proj",
    "attention/linear_0": "encoder_attn/q_proj",
    "attention/linear_1": "encoder_attn/k_proj+v_proj",
    "attention/linear_2": "encoder_attn/out_proj",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
    "position_encodings/encodings": "embed_positions/weight",
    "embeddings": "embed_tokens",
    "gamma": "weight",
    "beta": "bias",
}
END = 50257  # the id of the end of texts; the start of transcripts follows


def write_whisper(files: Sequence[Path], folder: Path) -> None:
    """Write a Whisper for transformers from `files`: the parts of a model.bin, then a tokenizer."""
    *parts, tokenizer = files
    arrays = read_arrays(parts)
    state = weights(arrays)
    tokens = dict.fromkeys(("bos_token", "eos_token", "pad_token"), "<|endoftext|>")
    config = {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "vocab_size": len(state["model.decoder.embed_tokens.weight"]),
        "d_model": len(state["model.encoder.conv1.weight"]),
        "num_mel_bins": state["model.encoder.conv1.weight"].shape[1],
        "max_source_positions": len(state["model.encoder.embed_positions.weight"]),
        "max_target_positions": len(state["model.decoder.embed_positions.weight"]),
        **{f"{name}_id": END for name in tokens},
        "decoder_start_token_id": END + 1,
    }
    for side in ("encoder", "decoder"):
        widths = [len(v) for k, v in state.items() if re.match(rf"model.{side}.*fc1.bias", k)]
        config[f"{side}_layers"], config[f"{side}_ffn_dim"] = len(widths), widths[0]
        config[f"{side}_attention_heads"] = int(arrays[f"{side}/num_heads"])
    write_json(folder / "config.json", config)
    tokens |= {"unk_token": "<|endoftext|>", "tokenizer_class": "WhisperTokenizer"}
    write_json(folder / "tokenizer_config.json", tokens)
    shutil.copyfile(tokenizer, folder / "tokenizer.json")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def read_arrays(parts: Sequence[Path]) -> Arrays:
    """The arrays of a Whisper by CTranslate2's names, from the parts of its model.bin.

    The file has its version, name, revision and number of arrays; then name, rank, shape, type,
    size and content of each. `verified_files` has checked its hash.
    """
    file = BytesIO(b"".join(part.read_bytes() for part in parts))

    def integer(size: int) -> int:
        return int.from_bytes(file.read(size), "little")

    arrays: Arrays = {}
    _version, _name, _revision = integer(4), file.read(integer(2)), integer(4)
    for _ in range(integer(4)):
        key = file.read(integer(2))[:-1].decode()  # names end with a zero
        shape = [integer(4) for _ in range(integer(1))]
        kind, size = TYPES[integer(1)], integer(4)
        arrays[key] = np.frombuffer(file.read(size), kind).reshape(shape)
    return arrays


def weights(arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """The weights of `read_arrays` by transformers' names, with queries, keys and values split.

    Their types stay. Scalars, which are settings, and biases of keys, which are 0, are left out.
    """
    state: Arrays = {}
    for name, values in arrays.items():
        if not values.ndim:
            continue  # a setting
        for theirs, ours in RENAMED.items():
            name = re.sub(f"(?<![^/]){theirs}(?![^/])", ours, name)
        *path, module, leaf = f"model/{name}".split("/")
        parts = module.split("+")
        for part, own in zip(parts, np.split(values, len(parts)), strict=True):
            if (part, leaf) != ("k_proj", "bias"):
                state[".".join([*path, part, leaf])] = own
    return state
