"""Time training and generation of the native architectures and of transformers.

Both sides have the same weights, with the shapes of the demo's backbones. They alternate, after a
warm-up. The last rows show the effect of the cache of keys and values of our decoders, at a larger
width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import transformers
from timing import Comparison, compare, matmul_rate, seconds
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoConfig,
    GenerationConfig,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
    set_seed,
)

from wxb.models import bert, gpt2, llama
from wxb.models.decoding import complete
from wxb.training.backbones.generator import Generator

# Our classes, with the names of transformers'.
CLASSES: dict[str, Any] = {
    "bert": (bert, "BertForPreTraining"),
    "gpt2": (gpt2, "GPT2LMHeadModel"),
    "llama": (llama, "LlamaForCausalLM"),
}
VOCABULARY = 6000
BATCH, LENGTH = 8, 64
GENERATED = 64  # tokens of each of the BATCH rows
STEP, GENERATION = 0.9, 1.3  # goals: how many times as fast as transformers


def shapes(width: int, heads: int, layers: int) -> dict[str, dict[str, Any]]:
    """Similar settings of each architecture at a width."""
    common = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": 512,
    }
    return {
        "bert": {**common, "intermediate_size": 4 * width},
        "gpt2": {"n_embd": width, "n_layer": layers, "n_head": heads, "n_positions": 512},
        "llama": {
            **common,
            "num_key_value_heads": heads // 2,
            "intermediate_size": 13 * width // 4,
            "tie_word_embeddings": True,
        },
    }


def comparisons(turns: int, *, seed: int = 1) -> Iterator[Comparison]:
    """Training steps and generation compared with transformers, and generation without a cache."""
    for name, shape in shapes(width=128, heads=4, layers=3).items():
        set_seed(seed)
        theirs = _theirs(name, shape)
        ours = _twin(name, theirs)
        sides = (_training(ours), "transformers", _training(theirs))
        yield compare(f"training step, {name}", *sides, turns=turns, goal=STEP)
        if hasattr(ours, "generate"):
            sides = (_generation(ours), "transformers", _generation(theirs))
            yield compare(f"generation, {name}", *sides, turns=turns, goal=GENERATION)
    yield compare("generation, mamba", *_recurrent(seed), turns=turns, goal=GENERATION)
    for name, shape in shapes(width=512, heads=8, layers=2).items():
        if hasattr(ours := _twin(name, _theirs(name, shape)), "generate"):
            cached, uncached = (
                _generation(ours, rows=1, tokens=256, use_cache=cache) for cache in (True, False)
            )
            what = f"256 tokens at width 512, {name}"
            yield compare(what, cached, "without a cache", uncached, turns=min(turns, 3), goal=3)


def _recurrent(seed: int) -> tuple[Callable[[], object], str, Callable[[], object]]:
    """Generation with a recurrent model of transformers, by this project and by transformers."""
    set_seed(seed)
    shape = {"vocab_size": VOCABULARY, "hidden_size": 128, "num_hidden_layers": 3}
    theirs = MambaForCausalLM(MambaConfig(**shape)).eval()
    generator = Generator(theirs)
    ids = torch.randint(VOCABULARY, (BATCH, 16))
    prompt = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    limits = {"max_new_tokens": GENERATED, "eos": VOCABULARY, "pad": 0}  # no token ends a row
    return partial(generator.generate, **prompt, **limits), "transformers", _generation(theirs)


def matmul_shares(turns: int) -> list[float]:
    """The share of the rate of matrix products that a training step at width 512 reaches, in %."""
    shape = shapes(width=512, heads=8, layers=2)["llama"]
    step = _training(_twin("llama", _theirs("llama", shape)))
    with FlopCounterMode(display=False) as counter:
        step()
    operations = counter.get_total_flops()
    return [100 * operations / seconds(step) / matmul_rate(turns=1) for _ in range(turns)]


def _theirs(name: str, shape: dict[str, Any]) -> PreTrainedModel:
    """A model of transformers with random weights and without dropout or special tokens."""
    no_special_tokens = {"bos_token_id": None, "eos_token_id": None}
    config = AutoConfig.for_model(name, vocab_size=VOCABULARY, **shape, **no_special_tokens)
    for key in vars(config):
        if key.endswith(("dropout", "dropout_prob", "pdrop")):
            setattr(config, key, 0.0)
    model: PreTrainedModel = getattr(transformers, CLASSES[name][1])(config)
    return model.eval()


def _twin(name: str, theirs: PreTrainedModel) -> Any:
    """Our model with the same weights."""
    module, cls = CLASSES[name]
    ours = getattr(module, cls)(module.Config.from_hf(theirs.config))
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return ours.eval()


def _training(model: Any) -> Callable[[], object]:
    """A function that runs one training step on a batch of random ids."""
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(VOCABULARY, (BATCH, LENGTH), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    if hasattr(model, "bert"):
        batch["next_sentence_label"] = ids[:, 0] % 2

    def step() -> None:
        model.train()
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.eval()

    return step


def _generation(
    model: Any, *, rows: int = BATCH, tokens: int = GENERATED, use_cache: bool = True
) -> Callable[[], object]:
    """A function that generates tokens after random prompts by greedy search."""
    ids = torch.randint(VOCABULARY, (rows, 16), generator=torch.Generator().manual_seed(0))
    prompt = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if isinstance(model, PreTrainedModel):
        config = GenerationConfig(do_sample=False, max_new_tokens=tokens, use_cache=use_cache)
        return lambda: model.generate(**prompt, generation_config=config)
    forward = partial(model, use_cache=use_cache, logits_to_keep=1)
    return lambda: complete(forward, **prompt, max_new_tokens=tokens)
