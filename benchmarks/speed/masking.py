"""Time a trained tagger and the pipeline of transformers on the same weights.

The peer is `transformers.pipeline("token-classification")`. It supports one classifier on the
backbone, so it runs the tag classifier without our start and end classifiers, and without our
strict decoding of tags. It truncates longer texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from timing import Comparison, compare
from torch import nn
from torch.nn import functional as F  # noqa: N812
from transformers import BertForTokenClassification, pipeline

from wxb.corpora.text.tokenizers import load
from wxb.masking.masker import Masker
from wxb.tasks.ner.models.bio import tag_names
from wxb.training.backbones.weights import load_backbone

GOAL = 2.0  # how many times as fast as the pipeline
BATCH = 32


class Classifier(nn.Module):
    """The tag classifier of our head, for a model of transformers."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.projection, self.tag = head.projection, head.tag

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, K) of hidden states (B, T, H)."""
        logits: torch.Tensor = self.tag(F.gelu(self.projection(hidden)))
        return logits


def comparisons(
    recognizer: Any,
    peer: Any,
    texts: Sequence[str],
    turns: int,
) -> Iterator[Comparison]:
    """Predicting and masking texts compared with a pipeline."""
    masker = Masker(recognizer, "number")
    for name, ours in {
        "find spans": lambda: recognizer.predict(texts),
        "find and mask spans": lambda: [*masker.edits(texts)],
    }.items():
        theirs = partial(peer, list(texts), batch_size=BATCH)
        what, label = f"{name} in {len(texts)} texts", f"transformers.pipeline, batch {BATCH}"
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
