"""Load models, tokenizers and adapters in Hugging Face's format, without running their code.

The configuration of a folder may request custom Python code, and transformers then asks on standard
input whether to run it. It may also describe a model or a normalizer that fills the memory. Such
folders are rejected before a library reads them.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError
from safetensors import safe_open

from wxb.core.errors import WxbError, error_line
from wxb.core.files import read_json

if TYPE_CHECKING:
    # These imports take seconds.
    from peft import PeftModel
    from torch import Tensor, nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
MODEL_WEIGHTS = "model*.safetensors"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
# Settings that older transformers wrote, and that native architectures check.
OLD_SETTINGS = {"position_embedding_type"}

MAX_LAYERS = 1000  # of a folder without weights
# Ends of keys of config.json that are numbers of layers, and dimensions of weights.
LAYERS = ("layers", "n_layer")
DIMENSIONS = (
    "hidden_size",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "d_model",
    "ffn_dim",
    "d_ff",
    "n_embd",
    "n_inner",
)
MAX_GROWTH = 1000  # characters that a tokenizer may make of one

SHOWN = 5  # names of tensors in an error

NO_CODE: dict[str, Any] = {"trust_remote_code": False}


def config(folder: str | Path) -> Any:
    """Load the configuration of a model that a stage saved.

    Raises WxbError as `require_no_code` does, and for settings that a stage does not write.
    """
    loaded = checkpoint_config(folder)
    content = read_json(Path(folder, CONFIG))
    if unlisted := sorted(content.keys() - _settings_of(loaded)):
        key = unlisted[0]
        raise WxbError(
            f"{Path(folder, CONFIG)}: found `{key}`: {json.dumps(content[key])[:80]}; expected only"
            f" the settings of {type(loaded).__name__}: remove the key"
        )
    return loaded


def checkpoint_config(folder: str | Path) -> Any:
    """Load the configuration of a published model, which may have settings of other libraries.

    Raises WxbError as `require_no_code` does.
    """
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(require_no_code(folder), **NO_CODE)


def drop_unlisted(config: Any) -> None:
    """Remove the settings that `config` would refuse."""
    for key in vars(config).keys() - _settings_of(config):
        if not key.startswith("_"):
            delattr(config, key)


def _settings_of(config: Any) -> set[str]:
    """The settings of a configuration's class."""
    return {*type(config)().to_dict(), *OLD_SETTINGS}


def tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder.

    Raises WxbError as `require_no_code` and `require_bounded_tokenizer` do.
    """
    from transformers import AutoTokenizer

    path = require_no_code(folder)
    require_bounded_tokenizer(path / TOKENIZER)
    with no_panic(path / TOKENIZER):
        loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path, **NO_CODE)
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
    import torch

    if torch.get_default_device().type == "meta":
        options.pop("quantization_config", None)
        shapes: PreTrainedModel = cls.from_config(options.pop("config"), **options)
        return shapes
    if "config" not in options:
        options["config"] = config(path)
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


class Adapter(BaseModel):
    """The keys of adapter_config.json that training sets; all others keep peft's defaults."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    r: PositiveInt
    lora_alpha: float
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    fan_in_fan_out: bool = False  # peft sets it for the layers of GPT-2
    target_modules: list[str]  # a text would be a regular expression
    trainable_token_indices: list[int] | dict[str, list[int]] | None = None
    task_type: str | None = None
    auto_mapping: dict[Literal["base_model_class", "parent_library"], str] | None = None
    base_model_name_or_path: str | None = None
    peft_type: str
    peft_version: str | None = None
    inference_mode: bool = True


# peft's defaults of all other keys: importing peft takes seconds.
ADAPTER_DEFAULTS: dict[str, Any] = {
    "alora_invocation_tokens": None,
    "alpha_pattern": {},
    "arrow_config": None,
    "bias": "none",
    "corda_config": None,
    "ensure_weight_tying": False,
    "eva_config": None,
    "exclude_modules": None,
    "init_lora_weights": True,
    "kasa_config": None,
    "layer_replication": None,
    "layers_pattern": None,
    "layers_to_transform": None,
    "loftq_config": {},
    "lora_bias": False,
    "lora_ga_config": None,
    "megatron_config": None,
    "megatron_core": "megatron.core",
    "modules_to_save": None,
    "monteclora_config": None,
    "qalora_group_size": 16,
    "rank_pattern": {},
    "revision": None,
    "target_parameters": None,
    "use_bdlora": None,
    "use_dora": False,
    "use_qalora": False,
    "use_rslora": False,
    "velora_config": None,
}


def adapter(base: PreTrainedModel, folder: Path) -> PeftModel:
    """Load a LoRA adapter onto its base model; its parameters stay trainable.

    Raises WxbError as `adapter_settings` does.
    """
    from peft import PeftModel, set_peft_model_state_dict

    adapter_settings(folder)
    weights = read_weights(folder / ADAPTER_WEIGHTS)
    # Trainable parameters are counted later.
    loaded = PeftModel.from_pretrained(base, folder, is_trainable=True)
    keys: Any = set_peft_model_state_dict(loaded, weights)
    trainable = {name for name, weight in loaded.named_parameters() if weight.requires_grad}
    require_complete(
        folder / ADAPTER_WEIGHTS,
        missing=trainable & {*keys.missing_keys},
        # Rows of new tokens are there twice if tables share them.
        unexpected=(name for name in keys.unexpected_keys if ".lora_" in name),
    )
    return loaded


def adapter_settings(folder: Path) -> Adapter:
    """Load the settings of a LoRA adapter.

    Raises WxbError as `require_no_code` does, for other kinds of adapters, which may load files
    from elsewhere, if the weights are not in safetensors, and for settings that training does not
    write: some import modules, or are regular expressions.
    """
    content = read_json(require_no_code(folder) / ADAPTER)
    kind = content.get("peft_type")
    if kind != "LORA":
        raise WxbError(f"{folder / ADAPTER}: found an adapter of kind {kind!r}; expected LORA")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise WxbError(
            f"{folder}: found no {ADAPTER_WEIGHTS}; weights in other formats (adapter_model.bin)"
            " can run code when they are loaded: convert those you trust with `save_pretrained`"
        )
    return _plain_adapter(folder / ADAPTER, content)


def _plain_adapter(file: Path, content: Any) -> Adapter:
    """Validate adapter_config.json, which may only have the keys and values that training writes.

    Raises WxbError for others.
    """
    try:
        settings = Adapter.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"][:1]))
        raise WxbError(
            f"{file}: `{key}`: found {json.dumps(fault['input'])[:80]}; {fault['msg']}; expected an"
            " adapter that `wxb` trained"
        ) from None
    others = _differences(settings.model_extra or {}, ADAPTER_DEFAULTS)
    if others.keys() - ADAPTER_DEFAULTS:  # those of another version of peft
        from peft import LoraConfig

        others = _differences(others, LoraConfig().to_dict())
    library = (settings.auto_mapping or {}).get("parent_library", "transformers.models")
    if not library.startswith("transformers.models"):  # peft's AutoPeftModel imports it
        others["auto_mapping"] = settings.auto_mapping
    if others:
        key, value = next(iter(others.items()))
        raise WxbError(
            f"{file}: found `{key}`: {json.dumps(value)[:80]}; expected only the settings that"
            " training writes, as others may import modules: remove the key, or train the adapter"
            " again"
        )
    shapes = _shapes(file.parent, ADAPTER_WEIGHTS)
    ranks = {shape[0] for name, shape in shapes.items() if "lora_A" in name}
    if ranks - {settings.r}:
        raise WxbError(f"{file}: `r`: found {settings.r}; the weights have {sorted(ranks)[0]}")
    return settings


def _differences(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The values that differ from the default of their key, or have none."""
    return {k: v for k, v in values.items() if k not in defaults or v != defaults[k]}


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

    Raises WxbError if it does not exist, if a file requests Python code or a kernel of the hub, or
    if config.json describes a larger model than the weights in the folder have.
    """
    path = Path(folder)
    if not path.is_dir():  # transformers would look for it on the hub
        raise WxbError(f"{path}: no such folder; expected one with a model or tokenizer")
    for file in sorted(path.glob("*config*.json")):
        for key, value in _settings(read_json(file)):
            if key == "auto_map" and value:
                request = f"`auto_map`, custom Python code: {json.dumps(value)}"
            elif key.endswith("_implementation") and "/" in str(value):
                request = f"`{key}`, code from the hub: {json.dumps(value)}"
            else:
                continue
            raise WxbError(
                f"{file}: found {request}; expected a model or tokenizer without custom code, which"
                " can do anything on this machine: choose another, or, if transformers has its"
                f" `model_type`, remove `{key}` from the file"
            )
    if (path / CONFIG).is_file():
        _require_bounded_model(path / CONFIG)
    return path


def _require_bounded_model(file: Path) -> None:
    """Raise WxbError if config.json describes more or larger layers than the weights have."""
    shapes = _shapes(file.parent, MODEL_WEIGHTS)
    layers = len(shapes) or MAX_LAYERS  # each layer has at least one tensor
    widest = max(chain.from_iterable(shapes.values()), default=2**31)
    for key, value in _settings(read_json(file)):
        if not isinstance(value, int):
            continue
        limit = layers if key.endswith(LAYERS) else widest if key.endswith(DIMENSIONS) else value
        if value > limit:
            origin = "of its weights" if shapes else "supported"
            raise WxbError(
                f"{file}: `{key}`: found {value}; the largest number {origin} is {limit}: correct"
                " it, or fetch the model again"
            )


def _shapes(folder: Path, pattern: str) -> dict[str, list[int]]:
    """The shapes of tensors by name, from the headers of safetensors files."""
    shapes: dict[str, list[int]] = {}
    for file in sorted(folder.glob(pattern)):
        with safe_open(file, "numpy") as tensors:
            for name in [*tensors.keys()]:
                shapes[name] = tensors.get_slice(name).get_shape()
    return shapes


def require_bounded_tokenizer(file: Path) -> None:
    """Raise WxbError if tokenizer.json, if it exists, multiplies the length of texts.

    Running out of memory there ends the process.
    """
    if not file.is_file():
        return
    content = read_json(file)
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        if (growth := _growth(content.get(part))) > MAX_GROWTH:
            raise WxbError(
                f"{file}: `{part}` makes up to {growth:.3g} characters of one; expected at most"
                f" {MAX_GROWTH}: choose another tokenizer"
            )


def _growth(part: Any) -> float:
    """The most characters that a component of a tokenizer, or a sequence of them, makes of one."""
    match part:
        case {"type": "ByteLevel"}:
            return 4.0  # bytes of UTF-8
        case {"type": "Prepend", "prepend": str(text)}:
            return 1.0 + len(text)
        case {"type": "Replace", "pattern": {"String": str(text)}, "content": str(content)} if text:
            return max(1.0, len(content) / len(text))
        case {"type": "Replace", "content": str(content)}:
            return 1.0 + len(content)  # a pattern may match nothing, between all characters
        case {"type": "Precompiled", "precompiled_charsmap": str(encoded)}:
            data = base64.b64decode(encoded)
            size = int.from_bytes(data[:4], "little")  # of its index; replacements follow
            longest = max(map(len, data[4 + size :].split(b"\0")))
            return float(max(1, longest)) if 4 + size <= len(data) else math.inf
        case dict():
            return math.prod(_growth(inner) for inner in part.values())
        case list():
            return math.prod(map(_growth, part))
    return 1.0


@contextmanager
def no_panic(file: str | Path) -> Iterator[None]:
    """Raise WxbError for a panic of the library tokenizers, which is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise WxbError(
            f"{file}: the library tokenizers fails ({error_line(error)}); choose another tokenizer"
        ) from None


def _settings(content: Any) -> Iterator[tuple[str, Any]]:
    """All keys and values of a JSON value, nested ones included."""
    match content:
        case dict():
            yield from content.items()
            yield from _settings([*content.values()])
        case list():
            for inner in content:
                yield from _settings(inner)
