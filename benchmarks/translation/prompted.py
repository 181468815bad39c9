"""Benchmarks a prompted GPT-2 translator: its speed, and BLEU with a reference in the prompt.

The speed is compared with transformers, which loads the same weights. The evaluation with a
reference is the published one (day 22 of the series); docs/errata.md describes its defect.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
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
from wxb.corpora.text.tokenizers import token_ids
from wxb.metrics.intervals import Groups, intervals
from wxb.models.decoding import DecoderState, beam_search, decoder_step
from wxb.project import trained
from wxb.project.reproduction import benchmarks
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.predictor import Translator, decode, source_ids
from wxb.tasks.translation.record import Labelling
from wxb.tasks.translation.seq2seq.model import Seq2SeqModel, build_network
from wxb.tasks.translation.seq2seq.prompted import pad_left
from wxb.training.batches import collate

LONGEST = 40  # tokens of a translation, for all systems
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130, highlight=False)  # wide enough for the table on any terminal


@app.command()
def main(
    experiment: Annotated[
        str, typer.Argument(help="a trained GPT-2 of params.yaml")
    ] = "translation-gpt2",
    sentences: Annotated[int, typer.Option(min=1, help="test sentences to translate")] = 64,
    turns: Annotated[int, typer.Option(min=1, help="measurements of each system")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table of BLEU")] = None,
) -> None:
    """Compare the speed with transformers; score with and without the reference in the prompt."""
    torch.set_num_threads(threads)
    predictor = trained.load(experiment)
    corpus = paths.clean(load().block("experiments", experiment).corpus)
    records = clean.read_labelled(corpus / "test.parquet", Labelling())
    console.print(speeds(predictor, [r.input for r in records[:sentences]], turns, experiment))
    benchmarks.report(prompts(predictor, records), output, {"BLEU (95% interval)": ".1f"})


def speeds(predictor: Any, texts: Sequence[str], turns: int, experiment: str) -> Table:
    """A table of sentences per second; prints how many translations agree."""
    theirs = GPT2LMHeadModel.from_pretrained(paths.model(experiment)).eval()
    ids = source_ids(predictor.tokenizer, texts)
    ours = partial(our_ids, predictor, beams=1)
    systems = {
        "ours, one batch": partial(ours, ids),
        "transformers, one batch": partial(their_ids, theirs, predictor, ids),
        "transformers, one by one": lambda: [
            their_ids(theirs, predictor, [source])[0] for source in ids
        ],
        "ours, one by one": lambda: [ours([source])[0] for source in ids],
        "ours, beam of 4": partial(our_ids, predictor, ids, beams=4),
        "the same without a cache": partial(our_ids, predictor, ids, beams=4, cache=False),
    }
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    outputs = {name: translate() for name, translate in systems.items()}  # also warms up
    for name, other in (("ours, one batch", name) for name in [*systems][1:4]):
        same = sum(a == b for a, b in zip(outputs[name], outputs[other], strict=True))
        console.print(f"{name} and {other}: {same} of {len(texts)} translations are the same")
    for _ in range(turns):
        for name, translate in systems.items():
            start = time.monotonic()
            translate()
            seconds[name].append(time.monotonic() - start)
    table = Table("system", "sentences a second", box=box.MARKDOWN)
    for name, times in seconds.items():
        table.add_row(name, f"{len(texts) / statistics.median(times):.1f}")
    return table


def our_ids(
    predictor: Any, ids: Sequence[Any], *, beams: int, cache: bool = True
) -> list[list[int]]:
    """Our translations of sources as token ids, up to eos."""
    batch = collate([{"input_ids": source} for source in ids], predictor.tokenizer.pad_token_id)
    network = predictor.model.model
    special = network.config
    with torch.inference_mode():
        if cache:
            tokens = predictor.model.search(**batch, max_new_tokens=LONGEST, beams=beams).tokens
        else:
            prompt, mask = pad_left(batch["input_ids"], batch["attention_mask"])
            step = decoder_step(partial(network.gpt2, use_cache=False, logits_to_keep=1))
            first = torch.full((len(ids), 1), special.bos)
            state = DecoderState(torch.nn.functional.pad(mask, (0, 1), value=1), prompt)
            limits = {"eos": [special.eos], "pad": special.pad, "max_new_tokens": LONGEST}
            tokens = beam_search(step, state, first, beams=beams, **limits).tokens
    return [before(row, special.eos) for row in tokens[:, 0].tolist()]


def their_ids(theirs: Any, predictor: Any, ids: Sequence[Any]) -> list[list[int]]:
    """The translations by transformers' `generate` after the same prompts, up to eos."""
    special = predictor.model.model.config
    items = [{"input_ids": [*source, special.bos]} for source in ids]
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
        tokens = theirs.generate(**batch, generation_config=limits)
    return [before(row, special.eos) for row in tokens[:, batch["input_ids"].shape[1] :].tolist()]


def before(ids: list[int], eos: int) -> list[int]:
    """The ids before the first eos, or all."""
    return ids[: ids.index(eos)] if eos in ids else ids


def prompts(predictor: Translator, records: Sequence[Record]) -> list[dict[str, Any]]:
    """BLEU with and without the reference in the prompt, for trained and random weights.

    The published evaluation scores the whole text, prompt included, against source and reference.
    """
    random, scorer = untrained(predictor), metrics.Scorer()
    rows = []
    for name, model in (("trained", predictor), ("random", random)):
        correct = [t.text for t in model.predict([record.input for record in records])]
        leaky = texts_after_reference(model, records)
        prefixes = [f"{record.input} {record.gold[0]}" for record in records]
        for prompt, scored, texts, gold in (
            ("the source", "the continuation", correct, [record.gold for record in records]),
            (
                "source and reference",
                "the whole text",
                [f"{prefix} {text}" for prefix, text in zip(prefixes, leaky, strict=True)],
                [[prefix] for prefix in prefixes],
            ),
            (
                "source and reference",
                "the continuation",
                leaky,
                [record.gold for record in records],
            ),
        ):
            names = [record.group for record in records]
            groups = Groups.from_records(sums.statistics(texts, gold), names)
            bleu = intervals(groups, scorer.scores, scorer.METRICS)["bleu"]
            cells = {"weights": name, "prompt": prompt, "scored text": scored}
            rows.append({**cells, "BLEU (95% interval)": bleu})
    return rows


def texts_after_reference(predictor: Translator, records: Sequence[Record]) -> list[str]:
    """The continuations of source, reference and eos, as published."""
    special = predictor.model.model.config
    sources = source_ids(predictor.tokenizer, [record.input for record in records])
    targets = token_ids(predictor.tokenizer, [record.gold[0] for record in records])
    texts: list[str] = []
    for start in range(0, len(records), 64):
        prompts = [
            [*source, special.bos, *target, special.eos]
            for source, target in zip(
                sources[start : start + 64], targets[start : start + 64], strict=True
            )
        ]
        for ids in our_ids(predictor, [torch.tensor(p).numpy() for p in prompts], beams=1):
            texts.append(decode(predictor.tokenizer, ids))
    return texts


def untrained(predictor: Translator) -> Translator:
    """The same translator with random weights."""
    settings = predictor.settings
    torch.manual_seed(0)
    network = build_network(settings["shape"], settings["special"], settings["max_length"])
    options = {"longest": settings["longest"], "shape": settings["shape"]}
    model = Seq2SeqModel(network, predictor.tokenizer, **options)
    return type(predictor)(model, predictor.tokenizer, **settings)


if __name__ == "__main__":
    benchmarks.run(app)
