"""Chat templates: conversations as the tokens that a model reads, truncated at whole turns.

A template is Jinja, saved with the tokenizer; transformers' `apply_chat_template` returns the same
text. Here, special tokens come from the template only: message text is never one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.tasks.chat.record.conversation import ROLES, Message

MARKERS = {role: f"<|{role.upper()}|>" for role in ROLES}
# A marker of the role before each message, and the end of text after each answer.
_ROLES = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|' + message['role'] | upper + '|>' -}}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] + eos_token -}}{%- endgeneration -%}
{%- else -%}
{{- message['content'] -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|ASSISTANT|>' -}}{%- endif -%}
"""
# Words instead of markers, for a model that was not trained on any; a line break ends messages.
_PLAIN = """\
{{- bos_token -}}
{%- for message in messages -%}
{%- if message['role'] == 'assistant' -%}
{{- 'Answer:' -}}
{%- generation -%}{{- ' ' + message['content'] + '\\n' -}}{%- endgeneration -%}
{%- elif message['role'] == 'user' -%}
{{- 'Question: ' + message['content'] + '\\n' -}}
{%- else -%}
{{- message['content'] + '\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Answer:' -}}{%- endif -%}
"""
TEMPLATES = {"roles": _ROLES, "plain": _PLAIN}
STAND_IN = 0xF0000  # the first private character; such stand for messages while rendering


class Piece(NamedTuple):
    """A part of a conversation's text: by the assistant (`generated`), or a special token."""

    text: str
    generated: bool
    special: bool


class Tokens(NamedTuple):
    """The token ids (T) of a conversation, and a mask (T) of those by the assistant."""

    ids: NDArray[np.int32]
    generated: NDArray[np.bool_]


def add_template(tokenizer: Any, template: str) -> Any:
    """Add a template and its markers to a tokenizer, in place; the same tokenizer."""
    if template == "roles":
        markers = [AddedToken(text, special=True, normalized=False) for text in MARKERS.values()]
        tokenizer.backend_tokenizer.add_special_tokens(markers)
    tokenizer.chat_template = TEMPLATES[template]
    return tokenizer


def end_ids(tokenizer: Any, template: str) -> list[int]:
    """The ids that end an answer: the end of text first, then those that begin a new message."""
    backend = tokenizer.backend_tokenizer
    if template == "roles":
        return [tokenizer.eos_token_id, *map(backend.token_to_id, MARKERS.values())]
    ids = range(backend.get_vocab_size())
    return [tokenizer.eos_token_id, *(id_ for id_ in ids if "\n" in backend.decode([id_]))]


def tokens(
    tokenizer: Any,
    conversations: Sequence[Sequence[Message]],
    template: str,
    *,
    answer_next: bool = False,
) -> list[Tokens]:
    """Tokenize conversations with a template of TEMPLATES, with a mask of the assistant's tokens.

    Special tokens come from the template only: a message that spells one is tokenized as plain
    text. `answer_next` adds the beginning of an assistant message. Lone surrogates, which UTF-8
    cannot encode, become question marks.
    """
    names = special_token_names(tokenizer)
    conversation_runs = [
        _runs(pieces(conversation, template, names, answer_next=answer_next))
        for conversation in conversations
    ]
    texts = [
        "".join(piece.text for piece in run)
        for runs in conversation_runs
        for run in runs
        if not run[0].special
    ]
    encoded = encode(tokenizer, [text.encode("utf-8", "replace").decode() for text in texts])
    text_spans = (slice(start, stop) for start, stop in pairwise(encoded.splits))
    result = []
    for runs in conversation_runs:
        ids: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        flags: list[NDArray[np.bool_]] = [np.zeros(0, bool)]
        for run in runs:
            if run[0].special:
                token_id = tokenizer.backend_tokenizer.token_to_id(run[0].text)
                ids.append(np.array([token_id], np.int32))
                flags.append(np.array([run[0].generated]))
                continue
            span = next(text_spans)
            ids.append(encoded.ids[span])
            starts = np.cumsum([0, *(len(piece.text) for piece in run)])
            piece_indices = np.searchsorted(starts, encoded.starts[span], side="right") - 1
            generated = np.array([piece.generated for piece in run])
            flags.append(generated[np.minimum(piece_indices, len(run) - 1)])
        result.append(Tokens(np.concatenate(ids), np.concatenate(flags)))
    return result


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

    A turn is a question with its answer. `answer_next`: see `tokens`.
    """
    system = list(conversation[: conversation[0]["role"] == "system"])
    turns = list(conversation[len(system) :])

    def encode_from(start: int) -> Tokens:
        kept = [*system, *turns[start:]]
        return tokens(tokenizer, [kept], template, answer_next=answer_next)[0]

    full = encode_from(0)
    if len(full.ids) <= max_tokens:
        return Truncation(full, 0, len(full.ids))
    starts = range(2, len(turns), 2)
    index = bisect_left(starts, -max_tokens, key=lambda start: -len(encode_from(start).ids))
    if index == len(starts):
        return Truncation(None, len(turns), len(full.ids))
    return Truncation(encode_from(starts[index]), starts[index], len(full.ids))


def special_token_names(tokenizer: Any) -> dict[str, str]:
    """The special tokens that templates use, by their names in a template."""
    backend = tokenizer.backend_tokenizer
    first = [backend.id_to_token(int(id_)) for id_ in special_tokens(tokenizer)[0]]
    names = {"bos_token": "".join(first)}
    if tokenizer.eos_token_id is not None:
        names["eos_token"] = backend.id_to_token(tokenizer.eos_token_id)
    return names


def pieces(
    conversation: Sequence[Message],
    template: str,
    names: dict[str, str],
    *,
    answer_next: bool = False,
) -> list[Piece]:
    """The text of a conversation, split into special tokens and other text, and by author.

    `names` are those of `special_token_names`. Message text is inserted after rendering, so that it
    never counts as a special token.
    """
    from transformers.utils.chat_template_utils import render_jinja_template  # imports torch

    stand_ins = [
        {**message, "content": chr(STAND_IN + index)} for index, message in enumerate(conversation)
    ]
    render: Any = render_jinja_template  # its annotation lacks the second return value
    rendered, generated = render(
        [stand_ins],
        chat_template=TEMPLATES[template],
        return_assistant_tokens_mask=True,
        add_generation_prompt=answer_next,
        **names,
    )
    skeleton: str = rendered[0]
    assistant_spans: list[tuple[int, int]] = generated[0]
    specials = [re.escape(token) for token in {*names.values(), *MARKERS.values()} if token]
    edges = {0, len(skeleton), *(edge for span in assistant_spans for edge in span)}
    special_starts = set()
    for match in re.finditer("|".join([*specials, "[\U000f0000-\U000ffffd]"]), skeleton):
        edges |= {*match.span()}
        special_starts.add(match.start())
    split = []
    for start, end in pairwise(sorted(edges)):
        by_assistant = any(first <= start < last for first, last in assistant_spans)
        index = ord(skeleton[start]) - STAND_IN
        if 0 <= index < len(conversation):
            split.append(Piece(conversation[index]["content"], by_assistant, special=False))
        else:
            split.append(Piece(skeleton[start:end], by_assistant, special=start in special_starts))
    return split


def _runs(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Runs of pieces that are tokenized as one text; a special token is a run of its own."""
    runs: list[list[Piece]] = []
    for piece in pieces:
        if piece.special or not runs or runs[-1][0].special:
            runs.append([piece])
        else:
            runs[-1].append(piece)
    return runs
