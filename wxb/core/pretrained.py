"""Load models, tokenizers and adapters in Hugging Face's format, without running their code.

Configuration files may request custom Python code, and transformers then asks on standard input
whether to run it. Such folders are rejected before a library reads them. Weights are read from
safetensors only, and must be complete and finite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wxb.core.errors import WxbError
from wxb.core.files import read_json

if TYPE_CHECKING:
    # These imports take seconds.
    from peft import LoraConfig, PeftModel
    from torch import Tensor, nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"

# The settings of an adapter that training sets, and those that peft adds when it saves one.
LORA_SETTINGS = (
    *("r", "lora_alpha", "lora_dropout", "target_modules"),
    *("fan_in_fan_out", "trainable_token_indices", "task_type"),
)
LORA_RECORDS = ("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version")

SHOWN = 5  # names of tensors in an error
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


def model(
    cls: Any, folder: str | Path, *, new_heads: bool = False, **options: Any
) -> PreTrainedModel:
    """Load a model from safetensors with the class `cls` of transformers.

    With `new_heads`, weights outside the backbone may be missing, and are then random. Surplus
    heads are dropped, and poolers are never needed. Raises WxbError as `require_no_code` does, for
    other missing, unexpected or non-finite weights, and for an adapter: transformers would load the
    model that it names, which may be anywhere.
    """
    path = require_no_code(folder)
    if (path / ADAPTER).exists():
        raise WxbError(
            f"{path}: found {ADAPTER}; expected a full model, not an adapter: name another folder,"
            " or remove that file if config.json and the weights of a full model are in this one"
        )
    loaded: PreTrainedModel
    loaded, info = cls.from_pretrained(
        path, use_safetensors=True, output_loading_info=True, **NO_CODE, **options
    )
    base = loaded.base_model
    parts = tuple(f"{name}." for name, _ in base.named_children() if name != "pooler")

    def is_in_backbone(key: str) -> bool:
        return key.removeprefix(f"{loaded.base_model_prefix}.").startswith(parts)

    missing = [key for key in info["missing_keys"] if "pooler." not in key]
    require_complete(
        path / WEIGHTS,
        missing=filter(is_in_backbone, missing) if new_heads else missing,
        unexpected=filter(is_in_backbone, info["unexpected_keys"]),
    )
    require_finite(path / WEIGHTS, dict(loaded.named_parameters()))
    return loaded


def adapter(base: PreTrainedModel, folder: Path) -> PeftModel:
    """Load a LoRA adapter onto its base model; its parameters stay trainable.

    Raises WxbError as `lora_config` does, and for missing, unexpected or non-finite weights.
    """
    from peft import get_peft_model, set_peft_model_state_dict

    loaded: Any = get_peft_model(base, lora_config(folder))
    weights = read_weights(folder / ADAPTER_WEIGHTS)
    keys: Any = set_peft_model_state_dict(loaded, weights)
    trainable = {name for name, weight in loaded.named_parameters() if weight.requires_grad}
    require_complete(
        folder / ADAPTER_WEIGHTS,
        missing=trainable & {*keys.missing_keys},
        # Rows of new tokens are there twice if tables share them.
        unexpected=(name for name in keys.unexpected_keys if ".lora_" in name),
    )
    adapted: PeftModel = loaded
    return adapted


def lora_config(folder: Path) -> LoraConfig:
    """The settings of a LoRA adapter.

    Raises WxbError as `require_no_code` does, for other kinds of adapters, for weights that are not
    in safetensors, and for settings that training does not write: some import modules, or are
    regular expressions.
    """
    from peft import LoraConfig

    file = require_no_code(folder) / ADAPTER
    content = read_json(file)
    if content.get("peft_type") != "LORA":
        raise WxbError(f"{file}: found an adapter of kind {content.get('peft_type')!r}; use LORA")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise WxbError(f"{folder}: found no {ADAPTER_WEIGHTS}; other formats can run code")
    settings = {key: content[key] for key in LORA_SETTINGS if key in content}
    lora = LoraConfig(**settings)
    expected = {**lora.to_dict(), **settings}
    for key, value in content.items():
        is_list = isinstance(value, list) or key != "target_modules"
        if key not in LORA_RECORDS and (value != expected.get(key) or not is_list):
            raise WxbError(
                f"{file}: found `{key}`: {json.dumps(value)[:80]}; expected only the settings that"
                " training writes: remove the key, or train the adapter again"
            )
    return lora


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises WxbError as `require_finite` does."""
    from safetensors.torch import load_file

    weights: dict[str, Tensor] = load_file(file)
    require_finite(file, weights)
    return weights


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], file: Path) -> None:
    """Load weights of a file into a module; shared ones may be in it once.

    Raises WxbError if some are missing or unexpected.
    """
    keys = module.load_state_dict(weights, strict=False)
    once = {*dict(module.named_parameters()), *dict(module.named_buffers())}
    missing = once & {*keys.missing_keys}
    require_complete(file, missing=missing, unexpected=keys.unexpected_keys)


def require_complete(file: Path, *, missing: Iterable[str], unexpected: Iterable[str]) -> None:
    """Raise WxbError if tensors of a file are missing or unexpected."""
    for fault, names in (("missing", sorted(missing)), ("unexpected", sorted(unexpected))):
        if names:
            raise WxbError(f"{file}: {fault} tensors: {_listed(names)}; train the model again")


def require_finite(file: Path, weights: Mapping[str, Any]) -> None:
    """Raise WxbError if tensors of a file, or arrays, have NaN or infinite values."""
    # x - x is NaN for these, and 0 for all others.
    if names := [name for name, values in weights.items() if not (values - values == 0).all()]:
        raise WxbError(
            f"{file}: values that are not finite in tensors: {_listed(names)}; train the model"
            " again"
        )


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def require_no_code(folder: str | Path) -> Path:
    """Return the folder as a Path if its configuration files request no custom code.

    Raises WxbError if it does not exist, or if a file requests Python code or a kernel of the hub.
    """
    path = Path(folder)
    if not path.is_dir():  # transformers would look for it on the hub
        raise WxbError(f"{path}: no such folder; expected one with a model or tokenizer")
    for file in sorted(path.glob("*config*.json")):
        for key, value in _settings(read_json(file)):
            is_kernel = key.endswith("_implementation") and "/" in str(value)
            if is_kernel or (key == "auto_map" and value):
                raise WxbError(
                    f"{file}: `{key}` requests custom code: {json.dumps(value)}; choose a model or"
                    " tokenizer without it, as it can do anything on this machine"
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
