"""Truncation of conversations at whole turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from wxb.tasks.chat.record.conversation import Message
from wxb.tasks.chat.sft import template as templates
from wxb.tasks.chat.sft.template import Tokens


class Truncation(NamedTuple):
    """The tokens of the newest turns that fit, or None if the last alone is too long.

    `dropped` is the number of messages without tokens, `length` the number of tokens of all.
    """

    tokens: Tokens | None
    dropped: int
    length: int


def truncate(
    tokenizer: Any,
    conversation: Sequence[Message],
    template: str,
    max_tokens: int,
    *,
    answer_next: bool = False,
) -> Truncation:
    """Drop the oldest turns until at most `max_tokens` are left; the system message stays.

    A turn is a question with its answer. `answer_next`: see `template.tokens`.
    """
    system = list(conversation[: conversation[0]["role"] == "system"])
    turns = list(conversation[len(system) :])

    def tokens(start: int) -> Tokens:
        kept = [*system, *turns[start:]]
        return templates.tokens(tokenizer, [kept], template, answer_next=answer_next)[0]

    full = tokens(0)
    if len(full.ids) <= max_tokens:
        return Truncation(full, 0, len(full.ids))
    starts = range(2, len(turns), 2)
    index = bisect_left(starts, -max_tokens, key=lambda start: -len(tokens(start).ids))
    if index == len(starts):
        return Truncation(None, len(turns), len(full.ids))
    return Truncation(tokens(starts[index]), starts[index], len(full.ids))
