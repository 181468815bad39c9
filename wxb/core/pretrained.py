"""Load models, tokenizers and adapters in Hugging Face's format, without running their code.

Configuration files may request custom Python code, and transformers then asks on standard input
whether to run it. Such folders are rejected before a library reads them. Weights are read from
safetensors or GGUF, and must be complete and finite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wxb.core.errors import WxbError, shortened
from wxb.core.files import read_json
from wxb.core.packages import GGUF

if TYPE_CHECKING:
    # These imports take seconds.
    from peft import PeftModel
    from torch import Tensor, nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
CONFIG = "config.json"
WEIGHTS = "model.safetensors"

# The settings of an adapter that training sets; others may import modules.
LORA_SETTINGS = (
    *("r", "lora_alpha", "lora_dropout", "target_modules"),
    *("fan_in_fan_out", "trainable_token_indices", "task_type"),
)
CONSTANTS = (".attn.bias", ".attention.bias", ".masked_bias")  # older transformers saved them


def config(folder: str | Path) -> Any:
    """Load a folder's config, or a GGUF's with its causal LM class; errors of `require_no_code`."""
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    path, options = _path_and_options(folder)
    loaded = AutoConfig.from_pretrained(path, **options)
    if "gguf_file" in options:
        loaded.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[loaded.model_type]]
    return loaded


def tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder or GGUF file. Raises WxbError as `require_no_code` does."""
    from transformers import AutoTokenizer

    path, options = _path_and_options(folder)
    return AutoTokenizer.from_pretrained(path, **options)


def model(
    cls: Any, folder: str | Path, *, new_heads: bool = False, **options: Any
) -> PreTrainedModel:
    """Load a model from safetensors or a GGUF file with the class `cls` of transformers.

    GGUF is dequantized. Surplus heads are dropped, and poolers are never needed. With `new_heads`,
    weights outside the backbone that are missing or of another shape are random. If the output
    layer is not tied, `tie_word_embeddings` becomes False. Raises WxbError as `require_no_code`
    does, for adapters, and for other missing, mismatched, unexpected or non-finite weights.
    """
    path, own_options = _path_and_options(folder)
    if "gguf_file" in own_options:
        from transformers import GgufConfig

        own_options["quantization_config"] = GgufConfig(dequantize=True)
    if (path / ADAPTER).exists():  # transformers would load the model that it names
        raise WxbError(f"{path}: found {ADAPTER}; expected a full model, not an adapter")
    loaded, info = cls.from_pretrained(
        path,
        use_safetensors=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they are errors of ours
        **own_options,
        **options,
    )
    parts = tuple(f"{name}." for name, _ in loaded.base_model.named_children() if name != "pooler")

    def is_in_backbone(key: str) -> bool:
        own = key.removeprefix(f"{loaded.base_model_prefix}.")
        return own.startswith(parts) and not own.endswith(CONSTANTS)

    missing = [key for key in info["missing_keys"] if "pooler." not in key]
    mismatched = [key for key, *_ in info["mismatched_keys"]]
    require_no_faults(
        path / WEIGHTS,
        mismatched=filter(is_in_backbone, mismatched) if new_heads else mismatched,
        missing=filter(is_in_backbone, missing) if new_heads else missing,
        unexpected=filter(is_in_backbone, info["unexpected_keys"]),
    )
    require_finite(path / WEIGHTS, dict(loaded.named_parameters()))
    head = loaded.get_output_embeddings()
    if head is not None and head.weight is not loaded.get_input_embeddings().weight:
        loaded.config.tie_word_embeddings = False  # else new tokens would tie it again
    return loaded


def adapter(base: PreTrainedModel, folder: Path) -> PeftModel:
    """Load a LoRA adapter onto its base model, in place; only the adapter stays trainable.

    Only settings that training writes are read. Raises WxbError as `require_no_code` does, and for
    weights that are not in safetensors, missing or not finite, or unexpected matrices of LoRA.
    """
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict

    content = read_json(require_no_code(folder) / ADAPTER)
    file = folder / ADAPTER_WEIGHTS
    if not file.is_file():
        raise WxbError(f"{folder}: found no {ADAPTER_WEIGHTS}; other formats can run code")
    settings = {key: content[key] for key in LORA_SETTINGS if key in content}
    settings["target_modules"] = [*settings["target_modules"]]  # a text is a regular expression
    loaded: PeftModel = get_peft_model(base, LoraConfig(**settings))
    keys: Any = set_peft_model_state_dict(loaded, read_weights(file))
    trainable = {name for name, weight in loaded.named_parameters() if weight.requires_grad}
    # Rows of new tokens are there twice if tables share them.
    unexpected = [name for name in keys.unexpected_keys if ".lora_" in name]
    require_no_faults(file, missing=trainable & {*keys.missing_keys}, unexpected=unexpected)
    return loaded


def target_fault(model: nn.Module, targets: Iterable[str]) -> str:
    """A message if any `targets` name no linear layer of a model, or only its head; else ""."""
    head = getattr(model, "get_output_embeddings", lambda: None)()
    linear = [
        name
        for name, module in model.named_modules()
        if type(module).__name__.endswith(("Linear", "Linear4bit", "Conv1D")) and module is not head
    ]
    missing = [t for t in targets if not any(f".{name}".endswith(f".{t}") for name in linear)]
    names = ", ".join(sorted({name.rpartition(".")[2] for name in linear}))
    expected = f"expected linear layers of {type(model).__name__}: {names}"
    found = f"tuning.lora.target_modules: found {', '.join(missing)}"
    return f"{found}; {expected}" if missing else ""


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises WxbError only for values that are not finite."""
    from safetensors.torch import load_file

    weights: dict[str, Tensor] = load_file(file)
    require_finite(file, weights)
    return weights


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], file: Path) -> None:
    """Load weights into a module. Missing or unknown names raise WxbError, shapes RuntimeError."""
    keys = module.load_state_dict(weights, strict=False)
    once = {*dict(module.named_parameters()), *dict(module.named_buffers())}  # shared ones once
    missing = once & {*keys.missing_keys}
    require_no_faults(file, missing=missing, unexpected=keys.unexpected_keys)


def require_no_faults(file: Path, **faults: Iterable[str]) -> None:
    """Raise WxbError that lists the tensors with the first fault, such as `missing`, if any."""
    for fault, names in faults.items():
        if listed := sorted(names):
            shown = shortened(listed, most=5)
            raise WxbError(f"{file}: {fault} tensors: {shown}; replace or retrain it")


def require_finite(file: Path, weights: Mapping[str, Any]) -> None:
    """Raise WxbError if tensors of a file, or arrays, have NaN or infinite values."""
    # x - x is NaN for these, and 0 for all others.
    wrong = [name for name, values in weights.items() if not (values - values == 0).all()]
    require_no_faults(file, **{"not finite": wrong})


def _path_and_options(source: str | Path) -> tuple[Path, dict[str, Any]]:
    """Folder and options for `from_pretrained`. Raises WxbError as `require_no_code` does."""
    path, options = Path(source), {"trust_remote_code": False}
    if path.suffix == GGUF:
        return require_no_code(path.parent), {**options, "gguf_file": path.name}
    return require_no_code(path), options


def require_no_code(folder: str | Path) -> Path:
    """Return the folder as a Path if its configuration files request no custom code.

    Raises WxbError for no folder, Python code or a kernel of the hub; ValueError for invalid JSON.
    """
    path = Path(folder)
    if not path.is_dir():  # transformers would look for it on the hub
        raise WxbError(f"{path}: no such folder; expected one with a model or tokenizer")
    for file in sorted(path.glob("*config*.json")):

        def refuse_code(pairs: list[tuple[str, Any]], file: Path = file) -> dict[str, Any]:
            for key, value in pairs:
                is_kernel = key.endswith("_implementation") and "/" in str(value)
                if is_kernel or (key == "auto_map" and value):
                    raise WxbError(
                        f"{file}: `{key}` requests custom code: {json.dumps(value)}; choose a model"
                        " or tokenizer without it, as it can do anything on this machine"
                    )
            return dict(pairs)

        json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=refuse_code)  # also nested
    return path
