"""Features of words as strings, for the conditional random field."""

from __future__ import annotations

from collections.abc import Sequence

from wxb.tasks.ner.params import CrfModel
from wxb.tasks.ner.record.shapes import shape

EDGE = ""  # the word before the first and after the last


def word_features(words: Sequence[str], settings: CrfModel) -> list[list[str]]:
    """The features of each word of a text.

    They are the lower-case word and the shape of it and of `window` words on either side, pairs of
    adjacent words in that range, and the word's first and last letters (up to `affixes`).
    """
    window, count = settings.window, len(words)
    padding = [EDGE] * window
    lower = [*padding, *(word.lower() for word in words), *padding]
    shapes = [*padding, *map(shape, words), *padding]
    rows = []
    for index in range(count):
        span = range(index, index + 2 * window + 1)
        word = lower[index + window]
        lengths = range(1, min(settings.affixes, len(word) - 1) + 1)
        rows.append(
            [
                "bias",
                *(f"word{place - index - window}={lower[place]}" for place in span),
                *(f"shape{place - index - window}={shapes[place]}" for place in span),
                *(f"pair{p - index - window}={lower[p]} {lower[p + 1]}" for p in span[:-1]),
                *(f"prefix={word[:length]}" for length in lengths),
                *(f"suffix={word[-length:]}" for length in lengths),
            ]
        )
    return rows
