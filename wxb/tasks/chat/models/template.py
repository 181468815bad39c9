"""Chat templates: conversations as the tokens that a model reads, truncated at whole turns.

Jinja templates are saved with the tokenizer, for transformers' `apply_chat_template`, which returns
the same text. Here, special tokens come from the template only: message text is never one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
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


class Piece(NamedTuple):
    """A part of a conversation's text: by the assistant (`generated`), or a special token."""

    text: str
    generated: bool = False
    special: bool = False


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


def pieces(
    conversation: Sequence[Message], template: str, tokenizer: Any, *, answer_next: bool = False
) -> Iterator[Piece]:
    """The text of a conversation as its template in TEMPLATES writes it, in parts."""
    backend = tokenizer.backend_tokenizer
    for id_ in special_tokens(tokenizer)[0]:
        yield Piece(backend.id_to_token(int(id_)), special=True)
    for message in conversation:
        role, content = message["role"], message["content"]
        by_assistant = role == "assistant"
        if template == "roles":
            yield Piece(MARKERS[role], special=True)
            yield Piece(content, by_assistant)
            if by_assistant:
                yield Piece(backend.id_to_token(tokenizer.eos_token_id), True, special=True)
        elif by_assistant:
            yield from (Piece("Answer:"), Piece(f" {content}\n", generated=True))
        else:
            yield Piece(f"Question: {content}\n" if role == "user" else f"{content}\n")
    if answer_next:
        yield Piece(MARKERS["assistant"], special=True) if template == "roles" else Piece("Answer:")


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
    # Pieces that are no special tokens are tokenized together, as one text.
    rows = [
        [(is_special, [*run]) for is_special, run in groupby(parts, lambda piece: piece.special)]
        for parts in (
            pieces(c, template, tokenizer, answer_next=answer_next) for c in conversations
        )
    ]
    texts = [
        "".join(piece.text for piece in run).encode("utf-8", "replace").decode()
        for runs in rows
        for is_special, run in runs
        if not is_special
    ]
    encoded = encode(tokenizer, texts)
    spans = (slice(start, stop) for start, stop in pairwise(encoded.splits))
    result = []
    for runs in rows:
        ids: list[NDArray[Any]] = []
        flags: list[NDArray[np.bool_]] = []
        for is_special, run in runs:
            generated = np.array([piece.generated for piece in run])
            if is_special:
                token_to_id = tokenizer.backend_tokenizer.token_to_id
                ids.append(np.array([token_to_id(piece.text) for piece in run], np.int32))
                flags.append(generated)
                continue
            span = next(spans)
            starts = np.cumsum([0, *(len(piece.text) for piece in run)])
            piece_indices = np.searchsorted(starts, encoded.starts[span], side="right") - 1
            ids.append(encoded.ids[span])
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
