"""Time a trained tagger and the pipeline of transformers on the same weights.

The peer is `transformers.pipeline("token-classification")`. It supports one classifier on the
backbone, so it runs the tag classifier without our start and end classifiers, and without our
strict decoding of tags. It truncates longer texts.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import io
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from timing import Comparison, compare, table
from torch import nn
from torch.nn import functional as F  # noqa: N812
from transformers import BertForTokenClassification, pipeline

from demos.pii import generate
from wxb.core.progress import Progress
from wxb.corpora.text.tokenizers import load
from wxb.masking.masker import Masker, Report
from wxb.masking.operators import read_operators
from wxb.project import trained
from wxb.project.reproduction import benchmarks
from wxb.tasks.ner.record.bio import tag_names
from wxb.training.backbones.weights import load_backbone

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # fixed, so that no terminal truncates the table


GOAL = 2.0  # how many times as fast as the pipeline


class Classifier(nn.Module):
    """The tag classifier of our head, for a model of transformers."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.projection, self.tag = head.projection, head.tag

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, K) of hidden states (B, T, H)."""
        logits: torch.Tensor = self.tag(F.gelu(self.projection(hidden)))
        return logits


@app.command()
def main(
    experiment: Annotated[str, typer.Argument(help="a trained tagger on BERT")] = "ner-encoder",
    records: Annotated[int, typer.Option(min=100)] = 1000,
    turns: Annotated[int, typer.Option(min=1)] = 3,
    threads: Annotated[int, typer.Option(min=1, help="torch threads, on both sides")] = 1,
    seed: int = 2,
) -> None:
    """Time masking on records like the demo's."""
    torch.set_num_threads(threads)
    Progress.console = io.StringIO()
    recognizer = trained.load(experiment)
    languages = ["en", "zh"]
    rows = generate(labelled=records, unlabelled=0, languages=languages, seed=seed)
    texts = [row["input"] for row in rows]
    lengths = [len(text) for text in texts]
    console.print(
        f"{records} records, median {statistics.median(lengths):.0f} characters; {experiment},"
        f" {threads} thread(s)"
    )
    peer = pipeline_of(recognizer, trained.find(experiment))
    console.print(table(comparisons(recognizer, peer, texts, turns)))
    console.print(f"spans found by both: {_agreement(recognizer, peer, texts):.1%}")


def comparisons(
    recognizer: Any,
    peer: Any,
    texts: Sequence[str],
    turns: int,
    batches: Sequence[int] = (1, 8, 32),
) -> Iterator[Comparison]:
    """Predicting and masking texts compared with a pipeline, with batches of several sizes."""
    masker = Masker(recognizer, read_operators("number"))
    for name, ours in {
        "find spans": lambda: recognizer.predict(texts),
        "find and mask spans": lambda: _mask(masker, texts),
    }.items():
        for size in batches:
            theirs = partial(peer, list(texts), batch_size=size)
            what, label = f"{name} in {len(texts)} texts", f"transformers.pipeline, batch {size}"
            yield compare(what, ours, label, theirs, turns=turns, goal=GOAL)


def pipeline_of(recognizer: Any, folder: Path) -> Any:
    """The pipeline of transformers with the backbone of a folder and our tag classifier."""
    backbone = load_backbone(folder)
    config = backbone.config
    config.num_labels = len(tag_names(recognizer.types))
    config.id2label = dict(enumerate(tag_names(recognizer.types)))
    model = BertForTokenClassification(config)
    model.bert = backbone
    model.classifier = Classifier(recognizer.model.head)
    tokenizer = load(folder)
    tokenizer.model_max_length = recognizer.settings["max_length"]
    return pipeline(
        "token-classification",
        model=model.eval(),
        tokenizer=tokenizer,
        aggregation_strategy="simple",
    )


def _mask(masker: Masker, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), 256):
        masker.edits(texts[start : start + 256], Report("timed"))


def _agreement(recognizer: Any, peer: Any, texts: Sequence[str]) -> float:
    """Share of the spans of either side that both find, to check that they do the same work."""
    recognizer.threshold = 0.0
    ours = {(row, *s.span) for row, spans in enumerate(recognizer.predict(texts)) for s in spans}
    theirs = {
        (row, span["start"], span["end"], span["entity_group"])
        for row, spans in enumerate(peer(list(texts), batch_size=32))
        for span in spans
    }
    return len(ours & theirs) / len(ours | theirs)


if __name__ == "__main__":
    benchmarks.run(app)
