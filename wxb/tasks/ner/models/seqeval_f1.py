"""F1 of spans of tokens by seqeval, as in most publications.

It depends on the tokenizer: gold spans that its tokens cannot express are moved to token boundaries
or dropped. `wxb.tasks.ner.metrics` scores characters and counts them as missed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wxb.corpora.text.encoded import IGNORED, Encoded
from wxb.corpora.text.windows import sliding_windows
from wxb.tasks.ner.models.bio import align, tag_names
from wxb.tasks.ner.record import Span

Spans = Sequence[Sequence[Span]]


def seqeval_f1(encoded: Encoded, gold: Spans, predicted: Spans) -> float:
    """Micro F1 of seqeval in strict IOB2 mode, over one text or more.

    The spans of each text (sorted and disjoint) are aligned with its tokens as in training. Tokens
    without characters are left out.
    """
    # Slow: imports scikit-learn.
    from seqeval.metrics import f1_score
    from seqeval.scheme import IOB2

    types = sorted({span.type for side in (gold, predicted) for row in side for span in row})
    labels = (_labels(encoded, side, types) for side in (gold, predicted))
    return float(f1_score(*labels, mode="strict", scheme=IOB2, zero_division=0))


def _labels(encoded: Encoded, spans: Spans, types: Sequence[str]) -> list[list[str]]:
    """The names of the tags of each text's tokens."""
    whole_texts = sliding_windows(encoded.splits, size=max(1, len(encoded.ids)), stride=0)
    tags = align(encoded, whole_texts, spans, types)[0].tags
    names = np.array(tag_names(types))
    return [names[row[row != IGNORED]].tolist() for row in np.split(tags, encoded.splits[1:-1])]
