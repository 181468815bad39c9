"""Model cards of conversations."""

from __future__ import annotations

from wxb.tasks import cards


class Card(cards.Card):
    """Cards of chat models."""

    TASK = "text-generation"
    TAGS = ("chat",)
    SCORES = ("exact", "chrf")
    PURPOSE = "Answers questions in a conversation."
    EXAMPLE = '"Where is the library?"'
