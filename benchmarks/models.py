"""Time training and generation of the native architectures and of transformers.

Both sides have the same weights, with the shapes of the demo's backbones. They alternate, after a
warm-up; the table has the medians of seconds and of the ratios of each turn. A second table shows
the effect of the cache of keys and values of our decoders, at a larger width.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import torch
import transformers
import typer
from rich.console import Console
from rich.table import Table
from transformers import AutoConfig, GenerationConfig, PreTrainedModel, set_seed

from wxb.cli.running import run_benchmark
from wxb.lessons.parity import MODELS, twin

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # fixed, so that no terminal truncates the table

VOCABULARY = 6000
BATCH, LENGTH = 8, 64
GENERATED = 64  # tokens of each of the BATCH rows


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


@app.command()
def main(
    turns: Annotated[int, typer.Option(min=1)] = 9,
    threads: Annotated[int, typer.Option(min=1, help="torch threads, on both sides")] = 1,
    seed: int = 1,
) -> None:
    """Time training steps and generation of the native architectures."""
    torch.set_num_threads(threads)
    console.print(
        f"a step: {BATCH} x {LENGTH} tokens, AdamW; generation: {GENERATED} tokens in {BATCH} rows;"
        f" {threads} thread(s), median of {turns} turns"
    )
    table = Table("model", "work", "ours, ms", "transformers, ms", "ours / transformers")
    for name, shape in shapes(width=128, heads=4, layers=3).items():
        if name not in MODELS:
            continue
        set_seed(seed)
        theirs = _theirs(name, shape)
        ours, *_ = twin(theirs)
        work = {"training step": (_training(ours), _training(theirs))}
        if hasattr(ours, "generate"):
            work["generation"] = (_generation(ours), _generation(theirs))
        for label, sides in work.items():
            _row(table, [name, label], _turns(sides, turns))
    console.print(table)

    table = Table(
        "model", "256 tokens, width 512", "without cache, ms", "with, ms", "times as fast"
    )
    for name, shape in shapes(width=512, heads=8, layers=2).items():
        if name in MODELS and hasattr(ours := twin(_theirs(name, shape))[0], "generate"):
            sides = tuple(_generation(ours, rows=1, tokens=256, use_cache=c) for c in (False, True))
            _row(table, [name, "one row"], _turns(sides, min(turns, 3)))
    console.print(table)


def _theirs(name: str, shape: dict[str, Any]) -> PreTrainedModel:
    """A model of transformers with random weights and without dropout or special tokens."""
    no_special_tokens = {"bos_token_id": None, "eos_token_id": None}
    config = AutoConfig.for_model(name, vocab_size=VOCABULARY, **shape, **no_special_tokens)
    for key in vars(config):
        if key.endswith(("dropout", "dropout_prob", "pdrop")):
            setattr(config, key, 0.0)
    model: PreTrainedModel = getattr(transformers, next(iter(MODELS[name].heads)))(config)
    return model.eval()


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
    settings: dict[str, Any] = {"max_new_tokens": tokens, "use_cache": use_cache}
    if isinstance(model, PreTrainedModel):
        settings = {"generation_config": GenerationConfig(do_sample=False, **settings)}
    return lambda: model.generate(**prompt, **settings)


def _turns(sides: tuple[Callable[[], object], ...], turns: int) -> list[tuple[float, ...]]:
    """Seconds of both sides in each turn, after a warm-up; the first side alternates."""
    for work in sides:
        work()
    seconds = []
    for turn in range(turns):
        order = [0, 1] if turn % 2 else [1, 0]
        by_side = {side: _seconds(sides[side]) for side in order}
        seconds.append((by_side[0], by_side[1]))
    return seconds


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _row(table: Table, labels: list[str], seconds: list[tuple[float, ...]]) -> None:
    medians = [f"{1000 * statistics.median(side):,.1f}" for side in zip(*seconds, strict=True)]
    ratio = statistics.median(first / second for first, second in seconds)
    table.add_row(*labels, *medians, f"{ratio:.2f}")


if __name__ == "__main__":
    run_benchmark(app)
