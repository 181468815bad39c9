"""The Transformer beside `torch.nn.Transformer` of the same size, in a plain loop of torch.

Both learn from the same records, in batches of the same size that are drawn alike, and write
greedily. Ours goes through the project's Trainer.
"""

from __future__ import annotations

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
from wxb.metrics.bootstrap import by_group, paired
from wxb.models import decoding
from wxb.tasks.methods import collator
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.predictor import decoded, source_ids, special
from wxb.tasks.translation.record import Labelling
from wxb.tasks.translation.seq2seq.method import Method

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130, highlight=False)  # a table is cut nowhere, whatever the terminal


class Plain(nn.Module):
    """`torch.nn.Transformer` of the same size, as a script of a page would have it."""

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

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """Embeddings with positions (B, T, C) of ids (B, T)."""
        scaled = table(ids) * self.config.width**0.5
        return self.dropout(scaled + self.positions[: ids.shape[1]])

    def logits(self, ids: Tensor, mask: Tensor, before: Tensor) -> Tensor:
        """Logits (B, T, V) of what follows each of the tokens before (B, T)."""
        causal = nn.Transformer.generate_square_subsequent_mask(before.shape[1])
        hidden = self.transformer(
            self.embed(self.source, ids),
            self.embed(self.target, before),
            tgt_mask=causal.isinf(),
            src_key_padding_mask=~mask.bool(),
            memory_key_padding_mask=~mask.bool(),
        )
        return F.linear(hidden, self.target.weight)

    def loss(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """The label-smoothed loss over labels (B, T) that are no padding."""
        c = self.config
        logits = self.logits(ids, mask, F.pad(labels[:, :-1], (1, 0), value=c.bos))
        smoothing = {"ignore_index": c.pad, "label_smoothing": c.label_smoothing}
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **smoothing)


class Written(NamedTuple):
    """A state that keeps the tokens alone: every step reads all of them again."""

    tokens: Tensor
    ids: Tensor
    mask: Tensor

    def reorder(self, rows: Tensor) -> Written:
        """The state of these rows (M,)."""
        return Written(*(part[rows] for part in self))


def plain_step(model: Plain) -> Callable[[Tensor, Written], tuple[Tensor, Written]]:
    """A step of a model without a cache."""

    def step(tokens: Tensor, state: Written) -> tuple[Tensor, Written]:
        state = state._replace(tokens=torch.cat([state.tokens, tokens], dim=1))
        return model.logits(state.ids, state.mask, state.tokens)[:, -1], state

    return step


@app.command()
def main(
    experiment: Annotated[
        str, typer.Argument(help="a Transformer of params.yaml, aligned already")
    ] = "translation-transformer",
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    seeds: Annotated[int, typer.Option(min=1, help="trainings of each, from seed 1 on")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="of torch")] = 1,
) -> None:
    """Train ours by the project's Trainer, and torch's in a plain loop on batches drawn alike."""
    torch.set_num_threads(threads)
    params = load()
    settings = params.named("experiments", experiment)
    pieces = load_tokenizer(paths.model(settings.backbone))
    training = settings.training.model_copy(
        update={"epochs": epochs, "early_stopping_patience": epochs}
    )
    settings = settings.model_copy(update={"training": training})
    method, backbone = Method(settings, [], pieces), paths.model(settings.backbone)
    corpus = paths.clean(settings.corpus)
    records = {
        split: clean.labelled(corpus / f"{split}.parquet", Labelling())
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
    found: dict[str, list[NDArray[np.float64]]] = {"ours": [], "torch.nn.Transformer": []}
    for seed in range(1, seeds + 1):
        for (name, tables), fit in zip(found.items(), (fit_ours, fit_plain), strict=True):
            begun = time.monotonic(), time.process_time()
            translate = fit(method, backbone, items, seed)
            took = time.monotonic() - begun[0], time.process_time() - begun[1]
            texts = [decoded(pieces, ids) for ids in translate(records["test"], pieces)]
            rows = sums.statistics(texts, [record.gold for record in records["test"]])
            tables.append(by_group(rows, groups))
            bleu = float(sums.bleu(rows.sum(axis=0)))
            table.add_row(name, str(seed), f"{bleu:.1f}", *(f"{seconds:.1f}" for seconds in took))
    console.print(table)
    ours, theirs = (np.stack(tables, axis=1) for tables in found.values())
    apart = paired(
        ours, theirs, lambda s: metrics.Scorer().scores(s)["bleu"], resamples=1000, seed=1
    )
    console.print(
        f"ours − torch, over {seeds} seeds: {apart.value:+.1f} ({apart.low:+.1f} to"
        f" {apart.high:+.1f})"
    )


def fit_ours(method: Method, backbone: Path, items: Any, seed: int) -> Any:
    """By the Trainer; the last epoch counts as the best, as the plain loop chooses none."""
    epoch = count(1)
    run = method.training_run(
        items["train"],
        items["valid"][:8],
        seed=seed,
        checkpoints=Path(".wxb/plain") / str(time.time_ns()),
        label="ours",
    )
    score = {"compute_metrics": lambda statistics, labels: {method.BEST.key: next(epoch)}}
    learner, _ = method.fit(backbone, replace(run, **score))
    learner.eval()
    return partial(greedy, lambda ids, mask: (learner.model.step, learner.model.encode(ids, mask)))


def fit_plain(method: Method, backbone: Path, items: Any, seed: int) -> Any:
    """In a loop of a few lines, without validation."""
    set_seed(seed)
    training, learner = method.experiment.training, method.build(backbone)
    model, collate = Plain(learner.model).train(), method.collator()
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
            batch = collate([rows[at] for at in order[start : start + size]])
            labels = batch["labels"].masked_fill(batch["labels"] == IGNORED, model.config.pad)
            loss = model.loss(batch["input_ids"], batch["attention_mask"], labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), training.max_grad_norm)
            optimizer.step()
            schedule.step()
    model.eval()
    step = plain_step(model)
    return partial(greedy, lambda ids, mask: (step, Written(ids[:, :0], ids, mask)))


def greedy(start: Any, records: Sequence[Any], pieces: Any) -> list[list[int]]:
    """The greedy translations of records by a model's step and first state, as ids."""
    found = []
    bos, eos = special(pieces)["bos"], pieces.eos_token_id
    for at in range(0, len(records), 64):
        ids = source_ids(pieces, [record.input for record in records[at : at + 64]])
        batch = collator(pieces)([{"input_ids": one} for one in ids])
        with torch.inference_mode():
            step, state = start(batch["input_ids"], batch["attention_mask"])
            first = torch.full((len(ids), 1), bos)
            tokens = decoding.greedy(
                step, state, first, eos=[eos], pad=pieces.pad_token_id, max_new_tokens=60
            ).tokens
        found += [row[: row.index(eos)] if eos in row else row for row in tokens.tolist()]
    return found


if __name__ == "__main__":
    app()
