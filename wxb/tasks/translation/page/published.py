"""Published BLEU of other translators, unchanged.

Sources: the 30-day series, github.com/AUSTIN2526/learning-wx-b-in-30-days, days 15 and 22; the
tutorial seq2seq_translation_example, which takes its pairs from the same list as the series.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "the 30-day series, github.com/AUSTIN2526/learning-wx-b-in-30-days, days 15 and 22"


class System(NamedTuple):
    """A published translator from Chinese to English, its BLEU, and how it was measured."""

    name: str
    model: str
    bleu: float
    measured: str


SYSTEMS = (
    System(
        "attention, day 15",
        "LSTM with Bahdanau's attention, hidden 512, from scratch",
        23.23,
        "some 29,900 pairs of Tatoeba, a fifth for validation; on those, in lower case",
    ),
    System(
        "GPT-2, day 22",
        "GPT-2, fine-tuned",
        28.46,
        "invalid: with the reference in the prompt (docs/errata.md)",
    ),
    System(
        "LSTM with attention, tutorial",
        "from scratch",
        13.52,
        "26,187 pairs of Tatoeba to train on, 1,000 to test",
    ),
    System(
        "Transformer, tutorial",
        "from scratch",
        23.41,
        "the same pairs",
    ),
)
