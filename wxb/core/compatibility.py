"""Whether the checkpoint of a backbone fits the experiments that use it, by its configuration.

The stages `check`, `tokenizer` and `train` call this module: an experiment may be added after its
backbone's tokenizer was made.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wxb.core import hub, pretrained
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.packages import PACKAGES
from wxb.core.params import Params
from wxb.core.params.experiments import Experiment

TOKENIZER_FILE = re.compile(r"(tokenizer|vocab).*|.*\.model")
SAMPLE = "Zoë paid 1,234.50 in Łódź. Isn't it CHEAP?"  # its tokens differ by case, accents, digits
# Models whose first position comes after that of padding.
OFFSET = (
    *("camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta"),
    *("roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
)

# Model types with a native architecture, by `Experiment.required_weights`.
NATIVE = {"hidden states": ("bert", "llama"), "decoder": ("llama", "gpt2"), "whisper": ("whisper",)}


def require(params: Params, name: str, folder: Path, tokenizer: Any = None, only: str = "") -> None:
    """Raise WxbError if backbone `name` has a checkpoint that does not fit its experiments.

    Returns if `name` is an experiment or has no checkpoint. Refuses adapters, then checks `folder`
    with `tokenizer` if given, pretraining, and all experiments or `only` one, until a check fails.
    """
    if not (backbone := params.backbones.get(name)) or not backbone.checkpoint:
        return
    if (folder / pretrained.ADAPTER).exists():
        cure = "`wxb merge`, or peft's `merge_and_unload`, makes a full model of it"
        raise WxbError(f"backbones.{name}.checkpoint: found an adapter; {cure}")
    config: Any = pretrained.config(folder)
    file = folder / "generation_config.json"
    generation = read_json(file) if file.is_file() else {}
    reasons = [*_checkpoint_faults(folder, config, tokenizer)]
    if not reasons and (settings := backbone.pretraining):
        lengths = {"pretraining.max_length": settings.max_length}
        reasons = [*_model_faults("objective", backbone.objective, lengths, config)]
    faults = [f"backbones.{name}.{fault}" for fault in reasons]
    for key in [only] if only else params.experiments:
        experiment = params.experiments[key]
        if not faults and params.root_backbone(experiment) is backbone:
            reasons = _method_faults(experiment, config, generation)
            faults += [f"experiments.{key}.{fault}" for fault in reasons]
    if faults:
        raise WxbError("\n".join(faults))


def require_checkpoints(params: Params) -> None:
    """WxbError at the first local checkpoint that fails `require`, or hub id without revision."""
    for name, backbone in params.backbones.items():
        source = backbone.checkpoint
        is_pinned = source in PACKAGES or backbone.revision is not None
        if source and (backbone.is_local or not is_pinned):
            with hub.checkpoint(source, weights=True) as folder:
                require(params, name, folder)


def positions(config: Any) -> int | None:
    """The maximum number of text tokens (in Whisper of the decoder); None without a limit."""
    if not getattr(config, "position_biased_input", True):  # DeBERTa: relative positions only
        return None
    names = ("max_target_positions", "max_position_embeddings", "n_positions", "max_seq_len")
    longest = next((n for name in names if (n := getattr(config, name, None))), 0)
    if config.model_type in OFFSET:
        longest -= config.pad_token_id + 1
    return longest if longest > 0 else None  # -1: XLNet


def _checkpoint_faults(folder: Path, config: Any, tokenizer: Any) -> Iterator[str]:
    """Faults of a checkpoint for any use: quantized, not of text alone, no or a wrong tokenizer."""
    cure = "copy tokenizer.json and tokenizer_config.json from the original checkpoint"
    if quantized := getattr(config, "quantization_config", None):
        yield (
            f"checkpoint: found {dict(quantized).get('quant_method', 'bitsandbytes')!r} weights;"
            " expected full precision: name the original checkpoint, and set `tuning.four_bit`"
        )
    if config.get_text_config() is not config or not getattr(config, "vocab_size", 0):
        yield (
            f"checkpoint: found {config.model_type!r}, a model of other input than text; expected"
            " one of text: if it has a language model, save that with `save_pretrained`"
        )
    elif folder.is_dir() and not any(TOKENIZER_FILE.match(f.name) for f in folder.iterdir()):
        yield f"checkpoint: found no tokenizer in {folder}; {cure}"
    elif tokenizer is not None:
        added = tokenizer.get_added_vocab()
        ids = {token: i for token, i in tokenizer.get_vocab().items() if token not in added}
        last = max(ids.values(), default=-1)
        if last >= config.vocab_size or len(ids) < config.vocab_size / 2:
            yield (
                f"checkpoint: found a tokenizer with {len(ids)} tokens, ids up to {last}, and"
                f" `vocab_size` {config.vocab_size}; expected equal vocabularies: {cure}"
            )
        file, backend = folder / "tokenizer.json", tokenizer.backend_tokenizer
        capitals = sum(re.search("[A-Z].|.[A-Z]", token) is not None for token in ids)
        is_lower = backend.normalizer and "A" not in backend.normalizer.normalize_str("A")
        if is_lower and capitals > 0.1 * len(ids):
            yield (
                f"checkpoint: found a tokenizer in lower case, and {capitals:,} tokens with"
                f" capitals; set `do_lower_case` to false in tokenizer_config.json, or {cure}"
            )
        saved = type(backend).from_file(str(file)) if file.is_file() else backend
        ours, theirs = (t.encode(SAMPLE, add_special_tokens=False).ids for t in (backend, saved))
        if ours != theirs:
            yield (
                f"checkpoint: found other tokens by {type(tokenizer).__name__} than by"
                f" tokenizer.json; correct `tokenizer_class` or its settings, or {cure}"
            )


def _model_faults(key: str, use: str, lengths: Mapping[str, int], config: Any) -> Iterator[str]:
    """Why a model is of the wrong type for a `use`, else which `lengths` are too long for it."""
    architecture = (config.architectures or ["no `architectures` in config.json (add it)"])[0]
    is_encoder = architecture.endswith("EncoderModel")  # of T5; its config counts decoder layers
    stacks = ("is_encoder_decoder", "decoder_layers", "num_decoder_layers")
    has_two_stacks = not is_encoder and any(getattr(config, name, None) for name in stacks)
    is_causal = architecture.endswith(("ForCausalLM", "LMHeadModel"))
    is_decoder = is_causal and not has_two_stacks and config.model_type not in ("xlm", "xlnet")
    fits, expected = {
        "hidden states": (not has_two_stacks, "an encoder or a decoder, but not both"),
        "decoder": (is_decoder, "a causal language model, such as LlamaForCausalLM"),
        "mlm+nsp": (config.model_type == "bert", "BERT"),
        "whisper": (config.model_type == "whisper", "WhisperForConditionalGeneration"),
    }["decoder" if use == "causal-lm" else use]
    if not fits:
        yield f"{key}: found {architecture}; expected {expected}: choose other weights or {key}"
    for key, length in lengths.items() if fits else ():
        if length > (longest := positions(config) or length):
            yield f"{key}: found {length} tokens; expected {longest} at most, its positions"


def _method_faults(experiment: Experiment, config: Any, generation: Mapping[str, Any]) -> list[str]:
    """Faults with the method or native code, else with LoRA, else by `checkpoint_faults`."""
    weights, lengths = experiment.required_weights, experiment.required_lengths
    faults = [*_model_faults("method", weights, lengths, config)] if weights else []
    is_native = getattr(experiment.model, "implementation", None) == "native"
    if weights and is_native and config.model_type not in (expected := NATIVE[weights]):
        mismatch = f"found native, and weights of {config.model_type!r}"
        return [*faults, f"model.implementation: {mismatch}; expected {' or '.join(expected)}"]
    if not faults and (lora := experiment.tuning.lora):
        import torch
        from transformers import AutoModel, AutoModelForCausalLM

        cls = AutoModelForCausalLM if weights == "decoder" else AutoModel
        with torch.device("meta"):  # no memory for weights
            fault = pretrained.target_fault(cls.from_config(config), lora.target_modules)
        faults = [fault] if fault else []
    return faults or [*experiment.checkpoint_faults(config, generation)]
