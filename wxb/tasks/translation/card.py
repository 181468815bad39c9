"""Model cards of translation."""

from __future__ import annotations

from wxb.tasks import cards


class Card(cards.Card):
    """Cards of translators."""

    TASK = "translation"
    TAGS = ("translation",)
    SCORES = ("bleu", "chrf")
    PURPOSE = "Translates sentences."
    EXAMPLE = '"Good morning."'
