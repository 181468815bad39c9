"""What of a conversation a model reads at once: the newest turns, each whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from wxb.tasks.chat.record.conversation import Message
from wxb.tasks.chat.sft import template as templates
from wxb.tasks.chat.sft.template import Tokens


class Fitting(NamedTuple):
    """The tokens of the newest turns that fit, None if not even the last does; and the rest.

    `dropped` messages were left out, the oldest ones but for the system's; `length` is that of all
    in tokens.
    """

    tokens: Tokens | None
    dropped: int
    length: int


def fitting(
    tokenizer: Any,
    conversation: Sequence[Message],
    template: str,
    room: int,
    *,
    answer_next: bool = False,
) -> Fitting:
    """As much of a conversation as has at most `room` tokens; a question goes with its answer."""
    system = list(conversation[: conversation[0]["role"] == "system"])
    turns = list(conversation[len(system) :])

    def tokens(start: int) -> Tokens:
        kept = [*system, *turns[start:]]
        return templates.tokens(tokenizer, [kept], template, answer_next=answer_next)[0]

    whole = tokens(0)
    if len(whole.ids) <= room:
        return Fitting(whole, 0, len(whole.ids))
    starts = range(2, len(turns), 2)
    place = bisect_left(starts, -room, key=lambda start: -len(tokens(start).ids))
    if place == len(starts):
        return Fitting(None, len(turns), len(whole.ids))
    return Fitting(tokens(starts[place]), starts[place], len(whole.ids))
