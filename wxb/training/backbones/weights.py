"""Bodies of models: made from a configuration, or loaded from a folder or the hub."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForPreTraining,
    AutoModelForSpeechSeq2Seq,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from wxb.core import hub, pretrained
from wxb.core.params.backbones import Architecture, Backbone
from wxb.training.backbones.initialization import initialize

# The classes with the heads of pretraining, by objective and by type of architecture.
CLASSES: dict[str, Any] = {
    "mlm+nsp": AutoModelForPreTraining,
    "bert": AutoModelForPreTraining,
    "causal-lm": AutoModelForCausalLM,
    "llama": AutoModelForCausalLM,
}
# Those that write what they hear, or read elsewhere; others go on from what they have written.
WRITERS: dict[str, Any] = {"whisper": AutoModelForSpeechSeq2Seq}


def initial(backbone: Backbone, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model that pretraining starts from: initial weights, or those of the checkpoint.

    Seed torch before: initial weights are random.
    """
    model: PreTrainedModel
    if backbone.checkpoint:
        with hub.checkpoint(backbone.checkpoint, backbone.revision, weights=True) as folder:
            config = pretrained.config(folder)
            cls = CLASSES.get(backbone.objective) or _class_of(config)
            model = pretrained.model(cls, folder, config=config)
        return model
    assert backbone.architecture is not None
    cls = CLASSES[backbone.architecture.model_type]
    model = cls.from_config(configuration(backbone.architecture, tokenizer))
    initialize(model.base_model)
    return model


def _class_of(config: Any) -> Any:
    """The class that a checkpoint was saved from: loading it as another would lose its heads."""
    found = getattr(transformers, (config.architectures or ["AutoModel"])[0], AutoModel)
    return found if isinstance(found, type) and issubclass(found, PreTrainedModel) else AutoModel


def configuration(architecture: Architecture, tokenizer: PreTrainedTokenizerBase) -> Any:
    """The configuration of a model of a shape, for the tokens of a tokenizer."""
    shape = {k: v for k, v in architecture.model_dump().items() if v is not None}
    dropout = shape.pop("dropout")
    # BERT drops hidden states too; LLaMA has dropout in attention only.
    names = {"bert": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
    for name in names.get(architecture.model_type, ("attention_dropout",)):
        shape[name] = dropout
    return AutoConfig.for_model(
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
    writes: bool = False,
    bidirectional: bool = False,
    four_bit: bool = False,
    native: bool = False,
) -> Any:
    """The embeddings and blocks saved in a folder, in float32, without the heads of pretraining.

    `writes` keeps the language model's head; `bidirectional` lifts the causal mask; `four_bit`
    keeps the linear layers in 4 bits (NF4, their scales quantized too: Dettmers et al. 2023,
    section 3); `native` puts the weights into the architecture of this package.
    """
    config = pretrained.config(folder)
    options: dict[str, Any] = {"config": config, "dtype": torch.float32}
    if config.model_type == "bert":
        # BERT's pooler serves NSP only; a tagger reads the tokens.
        options["add_pooling_layer"] = False
    if four_bit:
        options["quantization_config"] = _four_bits()
    cls = WRITERS.get(config.model_type, AutoModelForCausalLM) if writes else AutoModel
    with _quiet():
        model = pretrained.model(cls, folder, **options)
    if four_bit:
        _keep_scales(model)
    if bidirectional:
        _lift_causal_mask(model)
    if native:
        from wxb.training.backbones.native import Native  # pretraining does without it

        return Native.of(model)
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep libraries from telling how loading goes on, and of kernels that could be had besides.

    What a model needs and its folder lacks is still told; what it has no use for is not.
    """
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    reports = logging.getLogger("transformers.modeling_utils")
    reports.addFilter(_matters)
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        reports.removeFilter(_matters)
        if shown:
            transformers_logging.enable_progress_bar()


def _matters(record: logging.LogRecord) -> bool:
    told = record.getMessage()
    return "LOAD REPORT" not in told or "MISSING" in told or "MISMATCH" in told


def _four_bits() -> BitsAndBytesConfig:
    # On a CPU, bfloat16 takes about twice the time of float32.
    compute = torch.bfloat16 if torch.cuda.is_available() else torch.float32
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )


def _keep_scales(model: PreTrainedModel) -> None:
    """Keep bitsandbytes from repacking weights when they are first used for evaluation.

    On CPUs with AVX512-BF16 it does, and rounds their scales for good: training would go on with
    other weights than those that a resumed run or the finished model loads.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False  # type: ignore[assignment]


def _lift_causal_mask(model: PreTrainedModel) -> None:
    """Let every token of a decoder see those after it.

    The configuration alone decides: transformers passes what it says to every attention layer,
    whose own flag would otherwise count in a batch without padding, for which no mask is made.
    """
    model.config.is_causal = False


@contextmanager
def logits_only_at(model: Any, chosen: Tensor) -> Iterator[None]:
    """Meanwhile a language model's logits are those of the chosen positions (B, T): (N, V).

    The vocabulary is its widest layer, and where nothing is to be predicted its work is lost.
    """

    def choose(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        return (inputs[0][chosen],)

    hook = model.get_output_embeddings().register_forward_pre_hook(choose)
    try:
        yield
    finally:
        hook.remove()
