"""Models, tokenizers and adapters of local folders: nothing that a folder holds is ever run.

Whatever is loaded in Hugging Face's layout is loaded here. A folder may ask for Python code, of its
own or of the hub; transformers then asks on standard input whether to run it. Such folders are
refused before transformers reads them, and it is told to run none.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wxb.core.errors import WxbError

if TYPE_CHECKING:
    # Their imports take seconds, which few uses need.
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"

SAFE: dict[str, Any] = {"trust_remote_code": False}


def config(folder: str | Path) -> Any:
    """The configuration of a model. Raises WxbError for a folder that asks for code."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(harmless(folder), **SAFE)


def tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder; errors as of `config`."""
    from transformers import AutoTokenizer

    found: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(harmless(folder), **SAFE)
    return found


def model(cls: Any, folder: str | Path, **options: Any) -> PreTrainedModel:
    """The model of a folder, by a class of transformers, from safetensors; errors as of `config`.

    Raises WxbError too for an adapter, in whose place transformers loads the model that it names,
    from wherever that is. While `meta` is torch's device no weights are read: the model has a shape
    alone, of the `config` among the options.
    """
    path = harmless(folder)
    if (path / ADAPTER).exists():
        raise WxbError(
            f"{path}: found {ADAPTER}; expected a whole model, not an adapter of another: take one,"
            " or remove that file where config.json and the weights of a whole model lie beside it"
        )
    import torch

    if torch.get_default_device().type == "meta":
        options.pop("quantization_config", None)
        shape: PreTrainedModel = cls.from_config(options.pop("config"), **options)
        return shape
    found: PreTrainedModel = cls.from_pretrained(path, use_safetensors=True, **SAFE, **options)
    return found


def adapter(base: PreTrainedModel, folder: Path) -> PeftModel:
    """Low-rank matrices put onto the model that they belong to; errors as of `config`.

    Raises WxbError too for adapters of other kinds, which may load files from elsewhere, and where
    the weights are not there as safetensors.
    """
    from peft import PeftModel

    kind = json.loads((harmless(folder) / ADAPTER).read_text(encoding="utf-8")).get("peft_type")
    if kind != "LORA":
        raise WxbError(f"{folder / ADAPTER}: found an adapter of kind {kind!r}; expected LORA")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise WxbError(
            f"{folder}: found no {ADAPTER_WEIGHTS}; weights in other formats (adapter_model.bin)"
            " can run code when they are loaded: convert those you trust with `save_pretrained`"
        )
    with warnings.catch_warnings():
        # peft 0.19 asks transformers 5 by the old name: nothing that a user could mend.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        # What learned stays marked as such, so that it can be counted.
        return PeftModel.from_pretrained(base, folder, is_trainable=True)


def harmless(folder: str | Path) -> Path:
    """The folder itself. Raises WxbError where it is none, or asks for code."""
    path = Path(folder)
    if not path.is_dir():  # transformers would ask the hub for it
        raise WxbError(f"{path}: no such folder; expected one with a model or tokenizer")
    for file in sorted(path.glob("*config*.json")):
        for key, value in _settings(json.loads(file.read_text(encoding="utf-8"))):
            if key == "auto_map" and value:
                found = f"`auto_map`, Python code of its own: {json.dumps(value)}"
            elif key.endswith("attn_implementation") and "/" in str(value):
                found = f"`{key}`, code from the hub: {json.dumps(value)}"
            else:
                continue
            raise WxbError(
                f"{file}: found {found}; expected a model or tokenizer that transformers loads"
                " without, as code can do anything on this machine: take another, or, where its"
                f" `model_type` is one of transformers' own, remove `{key}` from the file"
            )
    return path


def _settings(content: Any) -> Iterator[tuple[str, Any]]:
    """All keys of a JSON value with their values, those of settings within settings too."""
    match content:
        case dict():
            yield from content.items()
            yield from _settings([*content.values()])
        case list():
            for inner in content:
                yield from _settings(inner)
