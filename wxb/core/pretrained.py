"""Load models, tokenizers and adapters in Hugging Face's format, without running their code.

The configuration of a folder may request custom Python code, and transformers then asks on standard
input whether to run it. Such folders are rejected before transformers reads them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wxb.core.errors import WxbError
from wxb.core.files import read_json

if TYPE_CHECKING:
    # These imports take seconds.
    from peft import PeftModel
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"

NO_CODE: dict[str, Any] = {"trust_remote_code": False}


def config(folder: str | Path) -> Any:
    """Load the configuration of a model. Raises WxbError as `require_no_code` does."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(require_no_code(folder), **NO_CODE)


def tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder. Raises WxbError as `require_no_code` does."""
    from transformers import AutoTokenizer

    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        require_no_code(folder), **NO_CODE
    )
    return loaded


def model(cls: Any, folder: str | Path, **options: Any) -> PreTrainedModel:
    """Load a model from safetensors with the class `cls` of transformers.

    If `meta` is torch's default device, no weights are read and the model has the shapes of
    `options["config"]`.

    Raises WxbError as `require_no_code` does, and for an adapter: transformers would load the model
    that it names, which may be anywhere.
    """
    path = require_no_code(folder)
    if (path / ADAPTER).exists():
        raise WxbError(
            f"{path}: found {ADAPTER}; expected a full model, not an adapter: name another folder,"
            " or remove that file if config.json and the weights of a full model are in this one"
        )
    import torch

    if torch.get_default_device().type == "meta":
        options.pop("quantization_config", None)
        shapes: PreTrainedModel = cls.from_config(options.pop("config"), **options)
        return shapes
    loaded: PreTrainedModel = cls.from_pretrained(path, use_safetensors=True, **NO_CODE, **options)
    return loaded


def adapter(base: PreTrainedModel, folder: Path) -> PeftModel:
    """Load a LoRA adapter onto its base model; its parameters stay trainable.

    Raises WxbError as `require_no_code` does, for other kinds of adapters, which may load files
    from elsewhere, and if the weights are not in safetensors.
    """
    from peft import PeftModel

    kind = read_json(require_no_code(folder) / ADAPTER).get("peft_type")
    if kind != "LORA":
        raise WxbError(f"{folder / ADAPTER}: found an adapter of kind {kind!r}; expected LORA")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise WxbError(
            f"{folder}: found no {ADAPTER_WEIGHTS}; weights in other formats (adapter_model.bin)"
            " can run code when they are loaded: convert those you trust with `save_pretrained`"
        )
    with warnings.catch_warnings():
        # peft 0.19 uses an old name of transformers; users cannot fix that.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        # Trainable parameters are counted later.
        return PeftModel.from_pretrained(base, folder, is_trainable=True)


def require_no_code(folder: str | Path) -> Path:
    """Return the folder as a Path if its configuration files request no custom code.

    Raises WxbError if it does not exist, or if a file requests Python code or a kernel of the hub.
    """
    path = Path(folder)
    if not path.is_dir():  # transformers would look for it on the hub
        raise WxbError(f"{path}: no such folder; expected one with a model or tokenizer")
    for file in sorted(path.glob("*config*.json")):
        for key, value in _settings(read_json(file)):
            if key == "auto_map" and value:
                request = f"`auto_map`, custom Python code: {json.dumps(value)}"
            elif key.endswith("attn_implementation") and "/" in str(value):
                request = f"`{key}`, code from the hub: {json.dumps(value)}"
            else:
                continue
            raise WxbError(
                f"{file}: found {request}; expected a model or tokenizer without custom code, which"
                " can do anything on this machine: choose another, or, if transformers has its"
                f" `model_type`, remove `{key}` from the file"
            )
    return path


def _settings(content: Any) -> Iterator[tuple[str, Any]]:
    """All keys and values of a JSON value, nested ones included."""
    match content:
        case dict():
            yield from content.items()
            yield from _settings([*content.values()])
        case list():
            for inner in content:
                yield from _settings(inner)
