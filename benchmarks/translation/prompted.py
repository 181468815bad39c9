"""Score a prompted GPT-2 translator with and without the reference in its prompt.

The evaluation with a reference is the published one (day 22 of the series); docs/errata.md
describes its defect.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import text_of, token_ids
from wxb.metrics.intervals import Groups, intervals
from wxb.models.decoding import search_targets
from wxb.project import benchmarks, trained
from wxb.tasks.translation import metrics
from wxb.tasks.translation.models.predictor import Translator
from wxb.tasks.translation.models.seq2seq import Seq2SeqModel
from wxb.tasks.translation.record import LABELLING
from wxb.training.batches import collate

LONGEST = 40  # tokens of a translation, for all systems
app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiment: Annotated[
        str, typer.Argument(help="a trained GPT-2 of params.yaml")
    ] = "translation-gpt2",
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table of BLEU")] = None,
) -> None:
    """Print BLEU with and without the reference in the prompt."""
    torch.set_num_threads(threads)
    predictor = trained.load(experiment)
    corpus = paths.CLEAN / load().block("experiments", experiment).corpus
    records = [*clean.read_labelled(clean.split_file(corpus, "test"), LABELLING)]
    benchmarks.report(prompts(predictor, records), output, {"BLEU (95% interval)": ".1f"})


def our_ids(predictor: Any, ids: Sequence[Any]) -> list[list[int]]:
    """Greedy translations of sources as token ids, up to eos."""
    batch = collate([{"input_ids": source} for source in ids], predictor.tokenizer.pad_token_id)
    network = predictor.model.model
    tokens = search_targets(network, **batch, max_new_tokens=LONGEST).tokens
    eos = network.config.eos
    return [row[: row.index(eos)] if eos in row else row for row in tokens[:, 0].tolist()]


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
            judged = [
                metrics.PredictionRow("", "", tuple(references), text)
                for text, references in zip(texts, gold, strict=True)
            ]
            groups = Groups.from_records([scorer.statistics(judged)], names)
            bleu = intervals(groups, scorer.scores, scorer.METRICS)["bleu"]
            cells = {"weights": name, "prompt": prompt, "scored text": scored}
            rows.append({**cells, "BLEU (95% interval)": bleu})
    return rows


def texts_after_reference(predictor: Translator, records: Sequence[Record]) -> list[str]:
    """The continuations of source, reference and eos, as published."""
    special = predictor.model.model.config
    sources = token_ids(predictor.tokenizer, [record.input for record in records])
    targets = token_ids(predictor.tokenizer, [record.gold[0] for record in records])
    texts: list[str] = []
    for start in range(0, len(records), 64):
        prompts = [
            [*source, special.bos, *target, special.eos]
            for source, target in zip(
                sources[start : start + 64], targets[start : start + 64], strict=True
            )
        ]
        for ids in our_ids(predictor, [torch.tensor(p).numpy() for p in prompts]):
            texts.append(text_of(predictor.tokenizer, ids).strip())
    return texts


def untrained(predictor: Translator) -> Translator:
    """The same translator with random weights."""
    settings = predictor.settings
    torch.manual_seed(0)
    options = settings["shape"], settings["special"], settings["max_length"]
    model = Seq2SeqModel(predictor.tokenizer, *options)
    return type(predictor)(model, predictor.tokenizer, **settings)


if __name__ == "__main__":
    benchmarks.run(app)
