"""Our architectures beside transformers', on the same weights: do they compute the same?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoConfig, GenerationConfig, GenerationMixin, PreTrainedModel

from wxb.core import hub, pretrained
from wxb.core.errors import WxbError, nearest
from wxb.core.params.backbones import Parity
from wxb.corpora.text.encoded import IGNORED
from wxb.models import bert, gpt2, llama, whisper

TOLERANCE = 1e-5  # relative; float32 has some seven digits
ROWS, LENGTH = 3, 12  # of the batch that both read, and the tokens that each row goes on for
FLOOR = 1e-2  # of the largest gradient of a model: smaller ones may be rounding and nothing else

Batch = dict[str, Tensor]


class Family(NamedTuple):
    """An architecture: our module, and what its models read.

    `module` holds `Config` and classes called as in transformers. `batch` makes what they read for
    a Hugging Face configuration: ROWS rows of random numbers, with padding or without. `heads` has
    for each class the labels of a batch; the first is what is made of a bare `architecture`, the
    last the backbone, which any checkpoint holds. `prompt` names what of a batch `generate` takes.
    """

    module: ModuleType
    batch: Callable[[Any, torch.Generator, bool], Batch]
    heads: Mapping[str, Callable[[Any, torch.Generator, Batch], Batch]]
    prompt: tuple[str, ...] = ()

    def name(self, classes: Iterable[str]) -> str:
        """The class to compare, for a checkpoint saved from one of these."""
        return next((name for name in classes if name in self.heads), [*self.heads][-1])


def load(block: Parity, name: str) -> PreTrainedModel:
    """transformers' model of a block: its checkpoint, or random weights (seed torch before).

    Raises WxbError when the checkpoint cannot be had, or the architecture is none of ours.
    """
    # A slow import of every architecture there is.
    import transformers

    if block.architecture:
        settings = dict(block.architecture)
        kind = settings.pop("model_type")
        family = _family(kind, name)
        known = AutoConfig.for_model(kind)
        if unknown := [key for key in settings if not hasattr(known, key)]:
            raise WxbError(
                f"parity.{name}.architecture: {type(known).__name__} has no {unknown[0]!r}"
                f"{nearest(unknown[0], known.to_dict())}"
            )
        cls: Any = getattr(transformers, next(iter(family.heads)))
        model: PreTrainedModel = cls(AutoConfig.for_model(kind, **settings))
    else:
        assert block.checkpoint
        with hub.checkpoint(block.checkpoint, block.revision, weights=True) as folder:
            config = pretrained.config(folder)
            family = _family(config.model_type, name)
            cls = getattr(transformers, family.name(config.architectures or []))
            model = pretrained.model(cls, folder, config=config, dtype=torch.float32)
    model.eval()
    return model


def twin(theirs: PreTrainedModel) -> tuple[nn.Module, list[str], list[str]]:
    """Ours with the same weights, the keys it lacks them for, and those it has no place for.

    Raises ValueError where the configuration is not one that ours can follow.
    """
    module = MODELS[theirs.config.model_type].module
    ours = getattr(module, type(theirs).__name__)(module.Config.from_hf(theirs.config))
    keys = ours.to(theirs.dtype).load_state_dict(theirs.state_dict(), strict=False)
    return ours.eval(), keys.missing_keys, keys.unexpected_keys


def measure(theirs: PreTrainedModel, seed: int) -> dict[str, float]:
    """How far ours is from theirs: relative differences, and whether both write the same.

    Differences are those of the largest entry, over the largest of theirs; a gradient's over that
    of its parameter. Each is the larger of two: for a batch without padding and for one with it.
    Gradients are taken in float64: some are what is left of much larger terms, and in float32
    nothing but their rounding. Of digits, two are kept.
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
        for name, found in _differences(ours, theirs, batch, labels, seed).items():
            metrics[name] = max(metrics.get(name, 0.0), found)
    if hasattr(ours, "generate"):
        prompt = {name: batch[name] for name in family.prompt}
        for use_cache, suffix in ((False, ""), (True, "_cached")):
            equal = writes_the_same(ours, theirs, prompt, use_cache=use_cache)
            metrics[f"generation_equal{suffix}"] = int(equal)
    return {
        name: value if isinstance(value, int) else float(f"{value:.1e}")
        for name, value in metrics.items()
    }


def check(metrics: Mapping[str, float]) -> None:
    """Raise WxbError, with all metrics, where ours and theirs are not equal."""
    wrong = [
        key
        for key, value in metrics.items()
        if ("difference" in key and not value <= TOLERANCE)
        or ("keys" in key and value)
        or ("equal" in key and not value)
    ]
    if wrong:
        told = ", ".join(f"{key} {value:g}" for key, value in metrics.items())
        raise WxbError(
            f"not equal to transformers in {', '.join(wrong)}: found {told}; expected no key over"
            f" or short, the same ids, and relative differences of at most {TOLERANCE:g}"
        )


def difference(found: Tensor, expected: Tensor, least: float = 0.0) -> float:
    """The largest difference between two tensors over the largest entry of the second.

    Infinite where an entry is no number; where no entry is over `least`, relative to this.
    """
    gap = float((found - expected).detach().abs().nan_to_num(nan=torch.inf).max())
    return gap / max(_largest(expected), least) if gap else 0.0


def gradient_difference(ours: nn.Module, theirs: nn.Module) -> float:
    """The largest difference of a parameter's gradient, over that gradient's largest entry.

    Where that is below FLOOR of the model's largest, over this: some gradients are 0 but for
    rounding, as that of a bias on keys, which softmax takes out again.
    """
    expected = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    found = {name: p.grad for name, p in ours.named_parameters() if p.grad is not None}
    if expected.keys() != found.keys():
        return float("inf")
    least = FLOOR * max(map(_largest, expected.values()))
    return max(difference(found[name], expected[name], least) for name in expected)


def writes_the_same(
    ours: Any, theirs: Any, prompt: Mapping[str, Tensor], *, use_cache: bool
) -> bool:
    """Whether both continue a prompt with the same ids, and end at the same one."""

    def write(model: Any, **settings: Any) -> Tensor:
        generate: Callable[..., Any] = model.generate
        if model is theirs:
            # Plain: without Whisper's own loop around this, and the tokens its checkpoints forbid.
            generate = partial(GenerationMixin.generate, theirs)
            plain = GenerationConfig(
                do_sample=False, suppress_tokens=[], begin_suppress_tokens=[], **settings
            )
            settings = {"generation_config": plain}
        ids: Tensor = generate(**prompt, **settings)
        return ids

    settings = {"max_new_tokens": LENGTH, "use_cache": use_cache}
    free = write(theirs, **settings)
    # An end token that comes up: halfway through what the first row goes on with.
    ends = {**settings, "eos_token_id": int(free[0, -LENGTH // 2]), "pad_token_id": 0}
    return free.equal(write(ours, **settings)) and write(theirs, **ends).equal(write(ours, **ends))


def _family(kind: str, name: str) -> Family:
    if kind not in MODELS:
        raise WxbError(
            f"parity.{name}: found an architecture {kind!r}; there is: {', '.join(MODELS)}"
        )
    return MODELS[kind]


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().max())


def _differences(
    ours: nn.Module, theirs: nn.Module, batch: Batch, labels: Batch, seed: int
) -> dict[str, float]:
    """How far ours is from theirs for one batch."""
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
    """All outputs of both for the tokens of a batch, each a pair, and both losses.

    Without labels, the loss is a random projection of the outputs.
    """
    mask = batch.get("attention_mask", batch.get("decoder_attention_mask"))

    def tokens(output: Tensor) -> Tensor:  # what is there for padding does not count
        if mask is None or output.shape[:2] != mask.shape:
            return output
        return output[mask.bool()]

    found, expected = ours(**batch, **labels), theirs(**batch, **labels)
    outputs = [
        (tokens(getattr(found, name)), tokens(output))
        for name, output in expected.items()
        if name != "loss" and isinstance(output, Tensor)
    ]
    if labels:
        return outputs, (found.loss, expected.loss)
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
    """Random ids (B, T); with padding, the second row has half the tokens, the third a quarter."""
    length = min(LENGTH, (longest or config.max_position_embeddings) // 2)
    ids = torch.randint(config.vocab_size, (ROWS, length), generator=rng)
    if not padded:
        return {"input_ids": ids}
    tokens = torch.tensor([length, length // 2, length // 4])[:, None]
    mask = (torch.arange(length) < tokens).long()
    return {"input_ids": ids, "attention_mask": mask.flip(-1) if left else mask}


def _read_both_ways(config: Any, rng: torch.Generator, padded: bool) -> Batch:
    batch = _text(config, rng, padded, left=False)
    types = torch.randint(config.type_vocab_size, batch["input_ids"].shape, generator=rng)
    return {**batch, "token_type_ids": types}


def _read_on(config: Any, rng: torch.Generator, padded: bool) -> Batch:
    return _text(config, rng, padded, left=True)


def _hear(config: Any, rng: torch.Generator, padded: bool) -> Batch:
    frames = 2 * config.max_source_positions
    text = _text(config, rng, padded, left=True, longest=config.max_target_positions)
    text["input_ids"][0, 0] = config.decoder_start_token_id  # else transformers adds it
    return {
        "input_features": torch.randn(ROWS, config.num_mel_bins, frames, generator=rng),
        **{f"decoder_{name}": tensor for name, tensor in text.items()},
    }


def _ids(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    """The ids themselves, but for padding."""
    ids = batch["input_ids"]
    return {
        "labels": ids.masked_fill(batch.get("attention_mask", torch.ones_like(ids)) == 0, IGNORED)
    }


def _ids_and_order(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    follows = torch.randint(2, (ROWS,), generator=rng)
    return {**_ids(config, rng, batch), "next_sentence_label": follows}


def _following(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    """Ids that stand for the next ones, which Whisper's labels are."""
    return {
        "labels": torch.randint(config.vocab_size, batch["decoder_input_ids"].shape, generator=rng)
    }


def _of_texts(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    return {"labels": torch.randint(config.num_labels, (ROWS,), generator=rng)}


def _of_tokens(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    return {"labels": torch.randint(config.num_labels, batch["input_ids"].shape, generator=rng)}


def _none(config: Any, rng: torch.Generator, batch: Batch) -> Batch:
    return {}


MODELS = {
    "bert": Family(
        bert,
        _read_both_ways,
        {
            "BertForPreTraining": _ids_and_order,
            "BertForMaskedLM": _ids,
            "BertForSequenceClassification": _of_texts,
            "BertForTokenClassification": _of_tokens,
            "BertModel": _none,
        },
    ),
    "gpt2": Family(
        gpt2,
        _read_on,
        {"GPT2LMHeadModel": _ids, "GPT2Model": _none},
        prompt=("input_ids", "attention_mask"),
    ),
    "llama": Family(
        llama,
        _read_on,
        {"LlamaForCausalLM": _ids, "LlamaModel": _none},
        prompt=("input_ids", "attention_mask"),
    ),
    "whisper": Family(
        whisper,
        _hear,
        {"WhisperForConditionalGeneration": _following, "WhisperModel": _none},
        prompt=("input_features", "decoder_input_ids", "decoder_attention_mask"),
    ),
}
