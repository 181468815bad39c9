"""Compares our Transformer with `torch.nn.Transformer` of the same size in a plain torch loop.

Both train on the same records, in batches of the same size that are sampled the same way, and
decode greedily. Ours is trained by the project's Trainer.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from transformers import get_cosine_schedule_with_warmup, set_seed
from transformers.trainer_pt_utils import LengthGroupedSampler

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.metrics.intervals import Groups, paired_difference
from wxb.models import decoding
from wxb.project.reproduction import benchmarks
from wxb.tasks.methods import collator
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.predictor import decode, source_ids, special_ids
from wxb.tasks.translation.record import Labelling
from wxb.tasks.translation.seq2seq.method import Method

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130, highlight=False)  # wide enough for the table on any terminal


class PlainTransformer(nn.Module):
    """`torch.nn.Transformer` of the same size, as in a one-page script."""

    def __init__(self, ours: Any) -> None:
        super().__init__()
        c = self.config = ours.config
        self.source = nn.Embedding(c.source_size, c.width)
        self.target = nn.Embedding(c.target_size, c.width)
        for embedding in (self.source, self.target):
            nn.init.normal_(embedding.weight, std=c.width**-0.5)
        self.transformer = nn.Transformer(
            c.width,
            c.heads,
            c.layers,
            c.layers,
            c.feed_forward,
            c.dropout,
            norm_first=c.norm_first,
            batch_first=True,
        )
        self.dropout = nn.Dropout(c.dropout)
        self.register_buffer("positions", ours.positions, persistent=False)

    def embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        """Embeddings with positions (B, T, C) of ids (B, T)."""
        scaled = embedding(ids) * self.config.width**0.5
        return self.dropout(scaled + self.positions[: ids.shape[1]])

    def logits(self, ids: Tensor, mask: Tensor, previous: Tensor) -> Tensor:
        """Logits (B, T, V) of the tokens after each of the previous ones (B, T)."""
        causal = nn.Transformer.generate_square_subsequent_mask(previous.shape[1])
        hidden = self.transformer(
            self.embed(self.source, ids),
            self.embed(self.target, previous),
            tgt_mask=causal.isinf(),
            src_key_padding_mask=~mask.bool(),
            memory_key_padding_mask=~mask.bool(),
        )
        return F.linear(hidden, self.target.weight)

    def loss(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """The label-smoothed loss over labels (B, T) that are not padding."""
        c = self.config
        logits = self.logits(ids, mask, F.pad(labels[:, :-1], (1, 0), value=c.bos))
        smoothing = {"ignore_index": c.pad, "label_smoothing": c.label_smoothing}
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **smoothing)


class UncachedState(NamedTuple):
    """A decoding state without a cache: every step reads all tokens again."""

    tokens: Tensor
    ids: Tensor
    mask: Tensor

    def reorder(self, rows: Tensor) -> UncachedState:
        """The state of these rows (M,)."""
        return UncachedState(*(tensor[rows] for tensor in self))


def plain_step(
    model: PlainTransformer,
) -> Callable[[Tensor, UncachedState], tuple[Tensor, UncachedState]]:
    """A function for one decoding step without a cache."""

    def step(tokens: Tensor, state: UncachedState) -> tuple[Tensor, UncachedState]:
        state = state._replace(tokens=torch.cat([state.tokens, tokens], dim=1))
        return model.logits(state.ids, state.mask, state.tokens)[:, -1], state

    return step


@app.command()
def main(
    experiment: Annotated[
        str, typer.Argument(help="a Transformer of params.yaml, after the stage align")
    ] = "translation-transformer",
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of each, from 1 on")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 1,
) -> None:
    """Train ours with the project's Trainer and torch's in a plain loop; print BLEU and times."""
    torch.set_num_threads(threads)
    params = load()
    settings = params.block("experiments", experiment)
    tokenizer = load_tokenizer(paths.model(settings.backbone))
    training = settings.training.model_copy(
        update={"epochs": epochs, "early_stopping_patience": epochs}
    )
    settings = settings.model_copy(update={"training": training})
    method, backbone = Method(settings, [], tokenizer), paths.model(settings.backbone)
    corpus = paths.clean(settings.corpus)
    records = {
        split: clean.read_labelled(corpus / f"{split}.parquet", Labelling())
        for split in ("train", "valid", "test")
    }
    items = {
        split: method.dataset(
            paths.features(experiment) / f"{split}.arrow",
            paths.targets(experiment) / f"{split}.arrow",
            records[split],
        )
        for split in ("train", "valid")
    }
    groups = [record.group for record in records["test"]]
    table = Table("model", "seed", "BLEU", "training, s", "of CPU", box=box.MARKDOWN)
    statistics: dict[str, list[NDArray[np.float64]]] = {"ours": [], "torch.nn.Transformer": []}
    for seed in range(1, seeds + 1):
        for (name, tables), fit in zip(statistics.items(), (fit_ours, fit_plain), strict=True):
            start = time.monotonic(), time.process_time()
            translate = fit(method, backbone, items, seed)
            times = time.monotonic() - start[0], time.process_time() - start[1]
            texts = [decode(tokenizer, ids) for ids in translate(records["test"], tokenizer)]
            rows = sums.statistics(texts, [record.gold for record in records["test"]])
            tables.append(rows)
            bleu = float(sums.bleu(rows.sum(axis=0)))
            table.add_row(name, str(seed), f"{bleu:.1f}", *(f"{seconds:.1f}" for seconds in times))
    console.print(table)
    scorer = metrics.Scorer()
    ours, theirs = (
        Groups.from_records(np.stack(tables, axis=1), groups) for tables in statistics.values()
    )
    difference = paired_difference(ours, theirs, scorer.scores, scorer.headline)
    console.print(
        f"ours − torch, over {seeds} seeds: {difference.value:+.1f} ({difference.low:+.1f} to"
        f" {difference.high:+.1f})"
    )


def fit_ours(method: Method, backbone: Path, items: Any, seed: int) -> Any:
    """Train with the Trainer, without choosing an epoch; returns a function that translates.

    Each epoch's validation score is higher than the last, as the plain loop does not choose either.
    """
    epoch = count(1)
    run = method.training_run(
        items["train"],
        items["valid"][:8],
        seed=seed,
        checkpoints=Path(".wxb/plain") / str(time.time_ns()),
        label="ours",
    )
    score = {"compute_metrics": lambda statistics, labels: {method.BEST.key: next(epoch)}}
    model, _ = method.fit(backbone, replace(run, **score))
    network = model.eval().model
    return partial(greedy, lambda ids, mask: (network.step, network.encode(ids, mask)))


def fit_plain(method: Method, backbone: Path, items: Any, seed: int) -> Any:
    """Train in a plain loop, without validation; returns a function that translates."""
    set_seed(seed)
    training, ours = method.experiment.training, method.build(backbone)
    model, collate = PlainTransformer(ours.model).train(), method.collator()
    vectors, matrices = [], []  # biases and norms do not decay
    for parameter in model.parameters():
        (vectors if parameter.ndim == 1 else matrices).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
        training.learning_rate,
        weight_decay=training.weight_decay,
    )
    rows, size = items["train"], training.batch_size
    steps = training.epochs * -(-len(rows) // size)
    warmup = int(steps * training.warmup_ratio)
    schedule = get_cosine_schedule_with_warmup(optimizer, warmup, steps)
    lengths = [len(row["labels"]) * 1000 + len(row["input_ids"]) for row in rows]
    for _ in range(training.epochs):
        order = [*LengthGroupedSampler(size, lengths=lengths)]
        for start in range(0, len(order), size):
            batch = collate([rows[index] for index in order[start : start + size]])
            labels = batch["labels"].masked_fill(batch["labels"] == IGNORED, model.config.pad)
            loss = model.loss(batch["input_ids"], batch["attention_mask"], labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), training.max_grad_norm)
            optimizer.step()
            schedule.step()
    model.eval()
    step = plain_step(model)
    return partial(greedy, lambda ids, mask: (step, UncachedState(ids[:, :0], ids, mask)))


def greedy(begin: Any, records: Sequence[Any], tokenizer: Any) -> list[list[int]]:
    """The token ids of greedy translations; `begin(ids, mask)` returns a step and a state."""
    translations = []
    bos, eos = special_ids(tokenizer)["bos"], tokenizer.eos_token_id
    for start in range(0, len(records), 64):
        ids = source_ids(tokenizer, [record.input for record in records[start : start + 64]])
        batch = collator(tokenizer)([{"input_ids": source} for source in ids])
        with torch.inference_mode():
            step, state = begin(batch["input_ids"], batch["attention_mask"])
            first = torch.full((len(ids), 1), bos)
            tokens = decoding.greedy_search(
                step, state, first, eos=[eos], pad=tokenizer.pad_token_id, max_new_tokens=60
            ).tokens
        translations += [row[: row.index(eos)] if eos in row else row for row in tokens.tolist()]
    return translations


if __name__ == "__main__":
    benchmarks.run(app)
