"""Compare native architectures with those of transformers, on the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoConfig, GenerationConfig, GenerationMixin, PreTrainedModel

from wxb.core import hub, pretrained
from wxb.core.errors import WxbError, did_you_mean
from wxb.core.params.backbones import Parity
from wxb.corpora.text.encoded import IGNORED
from wxb.models import bert, gpt2, llama, whisper

TOLERANCE = 1e-5  # relative; float32 has about seven digits
ROWS, LENGTH = 3, 12  # of the compared batch; LENGTH is also the number of generated tokens
FLOOR = 1e-2  # of the largest gradient of a model; smaller ones may be only rounding

Batch = dict[str, Tensor]


class Family(NamedTuple):
    """An architecture: our module, and random batches for its models.

    `module` has `Config` and classes with the names of transformers. `batch` draws inputs for a
    Hugging Face configuration: ROWS rows, with or without padding. `heads` draws the labels for
    each class; the first class is that of a block with an `architecture`, the last is the backbone.
    `prompt` are the inputs of a batch that `generate` needs.
    """

    module: ModuleType
    batch: Callable[[Any, torch.Generator, bool], Batch]
    heads: Mapping[str, Callable[[Any, torch.Generator, Batch], Batch]]
    prompt: tuple[str, ...] = ()


def load(block: Parity, name: str) -> PreTrainedModel:
    """Load the model of a block `name` in transformers, to evaluate, in float32.

    A block with a checkpoint gets its weights, which may be downloaded from the hub. The class is
    the one that it was saved from if its `Family` has it, else the backbone without a head. A block
    with an `architecture` gets random weights, so seed torch before; the class is the first of its
    family's `heads`.

    Raises WxbError if the checkpoint cannot be loaded, the architecture is not supported, or
    transformers does not have one of its settings.
    """
    import transformers  # imports every architecture when one is requested: slow

    if block.architecture:
        settings = dict(block.architecture)
        kind = settings.pop("model_type")
        family = _family(kind, name)
        defaults = AutoConfig.for_model(kind)
        if unknown := [key for key in settings if not hasattr(defaults, key)]:
            raise WxbError(
                f"parity.{name}.architecture: {type(defaults).__name__} has no {unknown[0]!r}"
                f"{did_you_mean(unknown[0], defaults.to_dict())}"
            )
        cls: Any = getattr(transformers, next(iter(family.heads)))
        model: PreTrainedModel = cls(AutoConfig.for_model(kind, **settings))
    else:
        assert block.checkpoint
        with hub.checkpoint(block.checkpoint, block.revision, weights=True) as folder:
            config = pretrained.checkpoint_config(folder)
            family = _family(config.model_type, name)
            saved = [head for head in config.architectures or [] if head in family.heads]
            cls = getattr(transformers, saved[0] if saved else [*family.heads][-1])
            model = pretrained.model(cls, folder, config=config, dtype=torch.float32)
    model.eval()
    return model


def twin(theirs: PreTrainedModel) -> tuple[nn.Module, list[str], list[str]]:
    """Our model with the same weights, and the names of missing and of unexpected weights.

    Raises ValueError for settings that our architecture does not support.
    """
    module = MODELS[theirs.config.model_type].module
    ours = getattr(module, type(theirs).__name__)(module.Config.from_hf(theirs.config))
    keys = ours.to(theirs.dtype).load_state_dict(theirs.state_dict(), strict=False)
    return ours.eval(), keys.missing_keys, keys.unexpected_keys


def measure(theirs: PreTrainedModel, seed: int) -> dict[str, float]:
    """Relative differences between our model and theirs, and whether both generate the same ids.

    A difference is the largest one of an entry, over the largest entry of theirs; for gradients,
    over that of the same parameter. Each is the larger of a batch with and one without padding.
    Gradients are computed in float64: some are small differences of large terms, and only rounding
    in float32. Values are rounded to two digits.
    """
    config = theirs.config
    family = MODELS[config.model_type]
    ours, missing, unexpected = twin(theirs)
    rng = torch.Generator().manual_seed(seed)
    metrics: dict[str, float] = {
        "parameters": sum(parameter.numel() for parameter in ours.parameters()),
        "missing_keys": len(missing),
        "unexpected_keys": len(unexpected),
    }
    for padded in (False, True):
        batch = family.batch(config, rng, padded)
        labels = family.heads[type(theirs).__name__](config, rng, batch)
        for name, value in _differences(ours, theirs, batch, labels, seed).items():
            metrics[name] = max(metrics.get(name, 0.0), value)
    if hasattr(ours, "generate"):
        prompt = {name: batch[name] for name in family.prompt}
        for use_cache, suffix in ((False, ""), (True, "_cached")):
            is_equal = generation_equal(ours, theirs, prompt, use_cache=use_cache)
            metrics[f"generation_equal{suffix}"] = int(is_equal)
    return {
        name: value if isinstance(value, int) else float(f"{value:.1e}")
        for name, value in metrics.items()
    }


def check(metrics: Mapping[str, float]) -> None:
    """Raise WxbError, with all metrics, if the two models are not equal."""
    wrong = [
        key
        for key, value in metrics.items()
        if ("difference" in key and not value <= TOLERANCE)
        or ("keys" in key and value)
        or ("equal" in key and not value)
    ]
    if wrong:
        values = ", ".join(f"{key} {value:g}" for key, value in metrics.items())
        raise WxbError(
            f"not equal to transformers in {', '.join(wrong)}: found {values}; expected no missing"
            " or unexpected keys, the same ids, and relative differences of at most"
            f" {TOLERANCE:g}"
        )


def difference(actual: Tensor, expected: Tensor, minimum: float = 0.0) -> float:
    """The largest difference between two tensors, over the largest entry of the second.

    The divisor is at least `minimum`. The result is infinite if an entry is not a number.
    """
    largest = float((actual - expected).detach().abs().nan_to_num(nan=torch.inf).max())
    return largest / max(_largest(expected), minimum) if largest else 0.0


def gradient_difference(ours: nn.Module, theirs: nn.Module) -> float:
    """The largest relative difference between the gradients of a parameter, after `backward`.

    The divisor is the largest entry of their gradient of this parameter, but at least FLOOR of
    their largest of all: some gradients are 0 up to rounding, such as that of a bias on keys, which
    softmax cancels. The result is infinite if an entry is not a number, or if the models have
    gradients for different parameters.
    """
    expected = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    actual = {name: p.grad for name, p in ours.named_parameters() if p.grad is not None}
    if expected.keys() != actual.keys():
        return float("inf")
    minimum = FLOOR * max(map(_largest, expected.values()))
    return max(difference(actual[name], expected[name], minimum) for name in expected)


def generation_equal(
    ours: Any, theirs: Any, prompt: Mapping[str, Tensor], *, use_cache: bool
) -> bool:
    """Whether both models generate the same ids, with and without an end token."""

    def generate(model: Any, **settings: Any) -> Tensor:
        method: Callable[..., Any] = model.generate
        if model is theirs:
            # Without Whisper's own `generate`, and the tokens that its checkpoints suppress.
            method = partial(GenerationMixin.generate, theirs)
            plain = GenerationConfig(
                do_sample=False, suppress_tokens=[], begin_suppress_tokens=[], **settings
            )
            settings = {"generation_config": plain}
        ids: Tensor = method(**prompt, **settings)
        return ids

    settings = {"max_new_tokens": LENGTH, "use_cache": use_cache}
    expected = generate(theirs, **settings)
    # An end token that occurs: the one in the middle of the first row.
    stop = {**settings, "eos_token_id": int(expected[0, -LENGTH // 2]), "pad_token_id": 0}
    return expected.equal(generate(ours, **settings)) and generate(theirs, **stop).equal(
        generate(ours, **stop)
    )


def _family(kind: str, name: str) -> Family:
    if kind not in MODELS:
        raise WxbError(
            f"parity.{name}: found an architecture {kind!r}; expected one of {', '.join(MODELS)}"
        )
    return MODELS[kind]


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().max())


def _differences(
    ours: nn.Module, theirs: nn.Module, batch: Batch, labels: Batch, seed: int
) -> dict[str, float]:
    """The differences between our model and theirs for one batch."""
    with torch.no_grad():
        outputs, losses = _run(ours, theirs, batch, labels, seed)
    ours_64, theirs_64 = deepcopy(ours).double(), deepcopy(theirs).double()
    batch_64 = {k: v.double() if v.is_floating_point() else v for k, v in batch.items()}
    for loss in _run(ours_64, theirs_64, batch_64, labels, seed)[1]:
        loss.backward()
    return {
        "logits_difference": max(difference(*pair) for pair in outputs),
        "loss_difference": difference(*losses),
        "gradient_difference": gradient_difference(ours_64, theirs_64),
    }


def _run(
    ours: nn.Module, theirs: nn.Module, batch: Batch, labels: Batch, seed: int
) -> tuple[list[tuple[Tensor, Tensor]], tuple[Tensor, Tensor]]:
    """Pairs of the outputs of both models for the tokens of a batch, and both losses.

    Without labels, the loss is a random projection of the outputs.
    """
    mask = batch.get("attention_mask", batch.get("decoder_attention_mask"))

    def without_padding(output: Tensor) -> Tensor:
        if mask is None or output.shape[:2] != mask.shape:
            return output
        return output[mask.bool()]

    actual, expected = ours(**batch, **labels), theirs(**batch, **labels)
    outputs = [
        (without_padding(getattr(actual, name)), without_padding(output))
        for name, output in expected.items()
        if name != "loss" and isinstance(output, Tensor)
    ]
    if labels:
        return outputs, (actual.loss, expected.loss)
    rng = torch.Generator().manual_seed(seed)
    probes = [torch.randn(output.shape, generator=rng) for output, _ in outputs]
    losses = [
        sum((pair[side] * probe).mean() for pair, probe in zip(outputs, probes, strict=True))
        for side in (0, 1)
    ]
    return outputs, (torch.as_tensor(losses[0]), torch.as_tensor(losses[1]))


def _text(
    config: Any, rng: torch.Generator, padded: bool, *, left: bool, longest: int | None = None
) -> Batch:
    """Random ids (B, T); if padded, the second row has half the tokens, the third a quarter."""
    length = min(LENGTH, (longest or config.max_position_embeddings) // 2)
    ids = torch.randint(config.vocab_size, (ROWS, length), generator=rng)
    if not padded:
        return {"input_ids": ids}
    tokens = torch.tensor([length, length // 2, length // 4])[:, None]
    mask = (torch.arange(length) < tokens).long()
    return {"input_ids": ids, "attention_mask": mask.flip(-1) if left else mask}


def _bert_inputs(config: Any, rng: torch.Generator, padded: bool) -> Batch:
    batch = _text(config, rng, padded, left=False)
    types = torch.randint(config.type_vocab_size, batch["input_ids"].shape, generator=rng)
    return {**batch, "token_type_ids": types}


def _whisper_inputs(config: Any, rng: torch.Generator, padded: bool) -> Batch:
    frames = 2 * config.max_source_positions
    text = _text(config, rng, padded, left=True, longest=config.max_target_positions)
    text["input_ids"][0, 0] = config.decoder_start_token_id  # else transformers adds it
    return {
        "input_features": torch.randn(ROWS, config.num_mel_bins, frames, generator=rng),
        **{f"decoder_{name}": tensor for name, tensor in text.items()},
    }


def _ids(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    """The ids as labels, with padding ignored."""
    ids = batch["input_ids"]
    return {
        "labels": ids.masked_fill(batch.get("attention_mask", torch.ones_like(ids)) == 0, IGNORED)
    }


def _ids_and_pairs(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    follows = torch.randint(2, (ROWS,), generator=rng)
    return {**_ids(config, rng, batch), "next_sentence_label": follows}


def _next_tokens(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    """Random ids of the next tokens, which Whisper's labels are."""
    return {
        "labels": torch.randint(config.vocab_size, batch["decoder_input_ids"].shape, generator=rng)
    }


def _text_labels(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    return {"labels": torch.randint(config.num_labels, (ROWS,), generator=rng)}


def _token_labels(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    return {"labels": torch.randint(config.num_labels, batch["input_ids"].shape, generator=rng)}


def _no_labels(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    return {}


_CAUSAL = partial(_text, left=True)
_PROMPT = ("input_ids", "attention_mask")
MODELS = {
    "bert": Family(
        bert,
        _bert_inputs,
        {
            "BertForPreTraining": _ids_and_pairs,
            "BertForMaskedLM": _ids,
            "BertForSequenceClassification": _text_labels,
            "BertForTokenClassification": _token_labels,
            "BertModel": _no_labels,
        },
    ),
    "gpt2": Family(gpt2, _CAUSAL, {"GPT2LMHeadModel": _ids, "GPT2Model": _no_labels}, _PROMPT),
    "llama": Family(llama, _CAUSAL, {"LlamaForCausalLM": _ids, "LlamaModel": _no_labels}, _PROMPT),
    "whisper": Family(
        whisper,
        _whisper_inputs,
        {"WhisperForConditionalGeneration": _next_tokens, "WhisperModel": _no_labels},
        prompt=("input_features", "decoder_input_ids", "decoder_attention_mask"),
    ),
}
