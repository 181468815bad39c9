"""Build backbones from a configuration, or load them from a folder or the hub."""

import os
from inspect import signature
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from wxb.core import hub, pretrained
from wxb.core.errors import WxbError
from wxb.core.params.backbones import Architecture, Backbone
from wxb.training.backbones.native import Native

logging.set_verbosity_error()  # missing weights are errors of ours

# Classes with the heads of pretraining, by objective and by model type.
CLASSES: dict[str, Any] = {
    "mlm+nsp": transformers.AutoModelForPreTraining,
    "bert": transformers.AutoModelForPreTraining,
    "causal-lm": AutoModelForCausalLM,
    "llama": AutoModelForCausalLM,
}


def initial_model(backbone: Backbone, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model before pretraining: a checkpoint, or a new model of the backbone's architecture.

    It has the heads of the objective, in float32. Without an objective, a checkpoint keeps its own
    heads and dtype. A checkpoint may be downloaded from the hub, and gets rows for added tokens of
    `tokenizer`, which prints a line. New weights are random, so seed torch before. Raises WxbError
    if the checkpoint cannot be loaded.
    """
    if backbone.checkpoint:
        with hub.checkpoint(backbone.checkpoint, backbone.revision, weights=True) as folder:
            config = pretrained.config(folder)
            own_class, has_objective = _saved_class(config), backbone.objective in CLASSES
            cls = CLASSES.get(backbone.objective, own_class)
            lacks_heads = has_objective and cls._model_mapping.get(type(config), None) != own_class
            model = pretrained.model(cls, folder, new_heads=lacks_heads, config=config)
            if (new := len(tokenizer) - model.config.vocab_size) > 0:  # added tokens
                print(f"added {new} rows to the embeddings, for new tokens")
                model.resize_token_embeddings(len(tokenizer))
            return model.float() if has_objective else model  # half loses small updates
    assert backbone.architecture is not None
    cls = CLASSES[backbone.architecture.model_type]
    return cls.from_config(configuration(backbone.architecture, tokenizer))


def _saved_class(config: Any) -> Any:
    """The class that a checkpoint was saved from, with its heads; AutoModel if unknown."""
    cls = getattr(transformers, (config.architectures or ["AutoModel"])[0], AutoModel)
    return cls if isinstance(cls, type) and issubclass(cls, PreTrainedModel) else AutoModel


def configuration(architecture: Architecture, tokenizer: PreTrainedTokenizerBase) -> Any:
    """The Hugging Face configuration of an architecture, for the vocabulary of a tokenizer.

    The output layer shares the embeddings. `dropout` is that of hidden states and of attention
    weights in BERT, of attention weights only in LLaMA.
    """
    shape = {k: v for k, v in architecture.model_dump().items() if v is not None}
    dropout = shape.pop("dropout")
    names = {"bert": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
    shape |= dict.fromkeys(names.get(architecture.model_type, ("attention_dropout",)), dropout)
    return transformers.AutoConfig.for_model(
        **shape,
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )


def load_backbone(
    folder: str | Path,
    *,
    generative: bool = False,
    bidirectional: bool = False,
    four_bit: bool = False,
    native: bool = False,
) -> Any:
    """Load the backbone of a folder in float32, without heads, pooler or T5's decoder.

    `generative` keeps the head of a language model. `bidirectional` removes the causal mask, or
    raises WxbError. `four_bit` quantizes linear layers to 4 bits, on a GPU if any (NF4 with double
    quantization: Dettmers et al. 2023, section 3). `native` returns a Native, or raises ValueError.
    """
    config = pretrained.config(folder)
    if getattr(config, "attention_type", "") == "block_sparse":
        config.attention_type = "original_full"  # BigBird stays at it after a short batch
    options: dict[str, Any] = {"config": config, "dtype": torch.float32}
    model_class: Any = None if generative else transformers.MODEL_MAPPING[type(config)]
    if model_class and "add_pooling_layer" in signature(model_class).parameters:
        # BERT's pooler is pretrained for NSP only, and most others have none.
        options["add_pooling_layer"] = False
    if four_bit:
        on_gpu = torch.cuda.is_available()
        # By default, each process would load the weights onto the first GPU.
        options["device_map"] = {"": int(os.environ.get("LOCAL_RANK", "0")) if on_gpu else "cpu"}
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            # On a CPU, bfloat16 takes about twice the time of float32.
            bnb_4bit_compute_dtype=torch.bfloat16 if on_gpu else torch.float32,
        )
    cls: Any = transformers.MODEL_FOR_TEXT_ENCODING_MAPPING.get(type(config), AutoModel)
    if generative:
        is_whisper = config.model_type == "whisper"
        cls = transformers.AutoModelForSpeechSeq2Seq if is_whisper else AutoModelForCausalLM
    logging.disable_progress_bar()  # not earlier: downloads show theirs
    model = pretrained.model(cls, folder, **options)
    if four_bit:
        # On CPUs with AVX512-BF16, bitsandbytes would repack the weights at the first evaluation,
        # which rounds their scales: a resumed training would then use other weights.
        for module in model.modules():
            if hasattr(module, "support_avx512bf16_for_cpu"):
                module.support_avx512bf16_for_cpu = False  # type: ignore[assignment]
    if bidirectional:
        # transformers passes this to most layers. Otherwise the flag of the layer would apply in a
        # batch without padding, for which no mask is made.
        model.config.is_causal = False
        for module in model.modules():
            if hasattr(module, "is_causal"):
                module.is_causal = False  # type: ignore[assignment]
        # Some models mask later tokens by themselves: then the last token cannot change the first.
        ids = torch.tensor([[0, 0], [0, 1]], device=model.device)
        with torch.no_grad():
            first = model.eval()(ids).last_hidden_state[:, 0]
        if torch.equal(*first):
            raise WxbError(
                f"model.bidirectional: found {config.model_type!r}, whose causal mask cannot be"
                " removed; leave it out"
            )
    return Native.from_transformers(model) if native else model
