"""A prompted GPT-2 translator: how fast it writes, and what a reference in the prompt is worth.

Its weights are loaded as they are by transformers, too. The published form of evaluation (day 22 of
the series) stands here: docs/errata.md tells what is wrong with it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import torch
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from transformers import GenerationConfig, GPT2LMHeadModel

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import ids_of
from wxb.metrics.bootstrap import by_group, intervals
from wxb.models.decoding import Read, beam, decoder
from wxb.project import trained
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.predictor import Translator, decoded, source_ids
from wxb.tasks.translation.record import Labelling
from wxb.tasks.translation.seq2seq import model as models
from wxb.tasks.translation.seq2seq.prompted import padded_left
from wxb.training.batches import collate

LONGEST = 40  # tokens of a translation, on all sides
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130, highlight=False)  # a table is cut nowhere, whatever the terminal


@app.command()
def main(
    experiment: Annotated[
        str, typer.Argument(help="a trained GPT-2 of params.yaml")
    ] = "translation-gpt2",
    sentences: Annotated[int, typer.Option(min=1, help="test sentences to write")] = 64,
    turns: Annotated[int, typer.Option(min=1)] = 3,
    threads: Annotated[int, typer.Option(min=1, help="of torch")] = 1,
) -> None:
    """Time writing beside transformers, and score test records with and without the reference."""
    torch.set_num_threads(threads)
    predictor = trained.load(experiment)
    corpus = paths.clean(load().named("experiments", experiment).corpus)
    records = clean.labelled(corpus / "test.parquet", Labelling())
    console.print(speeds(predictor, [r.input for r in records[:sentences]], turns, experiment))
    console.print(prompts(predictor, records))


# How fast it writes


def speeds(predictor: Any, texts: Sequence[str], turns: int, experiment: str) -> Table:
    """Sentences a second of ours and of transformers, and of a beam with and without a cache."""
    theirs = GPT2LMHeadModel.from_pretrained(paths.model(experiment)).eval()
    ids = source_ids(predictor.tokenizer, texts)
    ours = partial(written, predictor, beams=1)
    sides = {
        "ours, one batch": partial(ours, ids),
        "transformers, one batch": partial(generated, theirs, predictor, ids),
        "transformers, one by one": lambda: [generated(theirs, predictor, [one])[0] for one in ids],
        "ours, one by one": lambda: [ours([one])[0] for one in ids],
        "ours, beam of 4": partial(written, predictor, ids, beams=4),
        "the same without a cache": partial(written, predictor, ids, beams=4, cache=False),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    found = {name: side() for name, side in sides.items()}  # to warm up
    for one, other in (("ours, one batch", name) for name in [*sides][1:4]):
        same = sum(a == b for a, b in zip(found[one], found[other], strict=True))
        console.print(f"{one} and {other}: {same} of {len(texts)} translations are the same")
    for _ in range(turns):
        for name, side in sides.items():
            begun = time.monotonic()
            side()
            seconds[name].append(time.monotonic() - begun)
    table = Table("side", "sentences a second", box=box.MARKDOWN)
    for name, took in seconds.items():
        table.add_row(name, f"{len(texts) / statistics.median(took):.1f}")
    return table


def written(
    predictor: Any, ids: Sequence[Any], *, beams: int, cache: bool = True
) -> list[list[int]]:
    """What ours writes for sources: ids up to the end."""
    batch = collate([{"input_ids": one} for one in ids], predictor.tokenizer.pad_token_id)
    prompted = predictor.model.model
    special = prompted.config
    with torch.inference_mode():
        if cache:
            found = predictor.model.search(**batch, max_new_tokens=LONGEST, beams=beams).tokens
        else:
            tokens, mask = padded_left(batch["input_ids"], batch["attention_mask"])
            step = decoder(partial(prompted.gpt2, use_cache=False, logits_to_keep=1))
            first = torch.full((len(ids), 1), special.bos)
            read = Read(torch.nn.functional.pad(mask, (0, 1), value=1), tokens)
            limits = {"eos": [special.eos], "pad": special.pad, "max_new_tokens": LONGEST}
            found = beam(step, read, first, beams=beams, **limits).tokens
    return [cut(row, special.eos) for row in found[:, 0].tolist()]


def generated(theirs: Any, predictor: Any, ids: Sequence[Any]) -> list[list[int]]:
    """What transformers' `generate` writes after the same prompts."""
    special = predictor.model.model.config
    items = [{"input_ids": [*one, special.bos]} for one in ids]
    batch = collate(
        [{"input_ids": torch.tensor(item["input_ids"]).numpy()} for item in items],
        special.pad,
        side="left",
    )
    limits = GenerationConfig(
        max_new_tokens=LONGEST,
        do_sample=False,
        pad_token_id=special.pad,
        eos_token_id=special.eos,
        bos_token_id=special.bos,
    )
    with torch.inference_mode():
        found = theirs.generate(**batch, generation_config=limits)
    return [cut(row, special.eos) for row in found[:, batch["input_ids"].shape[1] :].tolist()]


def cut(ids: list[int], end: int) -> list[int]:
    """The ids before the end."""
    return ids[: ids.index(end)] if end in ids else ids


# What a reference in the prompt is worth


def prompts(predictor: Translator, records: Sequence[Record]) -> Table:
    """BLEU of what is written after the source alone, and after source and reference.

    The published form takes the whole text, prompt included, for the translation and for its
    reference. The same is asked of random weights, which translate nothing.
    """
    random = untrained(predictor)
    table = Table("weights", "asked with", "scored on", "BLEU", box=box.MARKDOWN)
    for name, model in (("trained", predictor), ("random", random)):
        right = [one.text for one in model.predict([record.input for record in records])]
        shown = asked_with_reference(model, records)
        whole = [f"{record.input} {record.gold[0]}" for record in records]
        for prompt, what, texts, gold in (
            ("the source", "the continuation", right, [record.gold for record in records]),
            (
                "the reference, too",
                "the whole text",
                [f"{text} {more}" for text, more in zip(whole, shown, strict=True)],
                [[text] for text in whole],
            ),
            (
                "the reference, too",
                "the continuation",
                shown,
                [record.gold for record in records],
            ),
        ):
            counts = by_group(sums.statistics(texts, gold), [record.group for record in records])
            bleu = intervals(counts, metrics.Scorer().scores, resamples=1000, seed=1)["bleu"]
            told = f"{bleu.value:.1f} ({bleu.low:.1f} to {bleu.high:.1f})"
            table.add_row(name, prompt, what, told)
    return table


def asked_with_reference(predictor: Translator, records: Sequence[Record]) -> list[str]:
    """As published: what is written behind source, reference and end of text."""
    special = predictor.model.model.config
    sources = source_ids(predictor.tokenizer, [record.input for record in records])
    targets = ids_of(predictor.tokenizer, [record.gold[0] for record in records])
    found: list[str] = []
    for start in range(0, len(records), 64):
        prompts = [
            [*source, special.bos, *target, special.eos]
            for source, target in zip(
                sources[start : start + 64], targets[start : start + 64], strict=True
            )
        ]
        for ids in written(predictor, [torch.tensor(p).numpy() for p in prompts], beams=1):
            found.append(decoded(predictor.tokenizer, ids))
    return found


def untrained(predictor: Translator) -> Translator:
    """The same translator with random weights."""
    settings = predictor.settings
    torch.manual_seed(0)
    made = models.made(settings["shape"], settings["special"], settings["max_length"])
    options = {"longest": settings["longest"], "shape": settings["shape"]}
    learner = models.Learner(made, predictor.tokenizer, **options)
    return type(predictor)(learner, predictor.tokenizer, **settings)


if __name__ == "__main__":
    app()
