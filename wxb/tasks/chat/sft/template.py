"""Conversations as a model reads them: one template for training, for replies and for others.

The template is Jinja as in transformers' chat templates, and goes into the tokenizer's folder, so
that `apply_chat_template` gives the same text. What people type stays text: only what the template
itself writes can be a special token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.tasks.chat.record.conversation import ROLES, Message

MARKERS = {role: f"<|{role.upper()}|>" for role in ROLES}
# A marker of the role before each message, and the end of text behind each answer.
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
# Words in place of markers, for a model that was never taught any; a line break ends each message.
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
FIRST = 0xF0000  # of Unicode's private characters, which stand for messages while one is rendered


class Piece(NamedTuple):
    """Some of a conversation's text: whether the assistant wrote it, and whether it is a token."""

    text: str
    generated: bool
    special: bool


class Tokens(NamedTuple):
    """The tokens of a conversation, and which of them the assistant writes; (T) each."""

    ids: NDArray[np.int32]
    generated: NDArray[np.bool_]


def prepare(tokenizer: Any, template: str) -> Any:
    """The tokenizer with the markers of a template, and with the template itself."""
    if template == "roles":
        markers = [AddedToken(each, special=True, normalized=False) for each in MARKERS.values()]
        tokenizer.backend_tokenizer.add_special_tokens(markers)
    tokenizer.chat_template = TEMPLATES[template]
    return tokenizer


def ends(tokenizer: Any, template: str) -> list[int]:
    """The tokens that end an answer: the end of text, and what begins another message."""
    backend = tokenizer.backend_tokenizer
    if template == "roles":
        return [tokenizer.eos_token_id, *map(backend.token_to_id, MARKERS.values())]
    every = range(backend.get_vocab_size())
    return [tokenizer.eos_token_id, *(id_ for id_ in every if "\n" in backend.decode([id_]))]


def tokens(
    tokenizer: Any,
    conversations: Sequence[Sequence[Message]],
    template: str,
    *,
    answer_next: bool = False,
) -> list[Tokens]:
    """The tokens of conversations; with `answer_next` the assistant is to go on from their end."""
    named = special(tokenizer)
    cut = [pieces(each, template, named, answer_next=answer_next) for each in conversations]
    runs = [_runs(each) for each in cut]
    texts = ["".join(p.text for p in run) for row in runs for run in row if not run[0].special]
    # A half of a surrogate pair, which no UTF-8 has, is read as a question mark.
    encoded = encode(tokenizer, [each.encode("utf-8", "replace").decode() for each in texts])
    number, found = 0, []
    for row in runs:
        ids: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        flags: list[NDArray[np.bool_]] = [np.zeros(0, bool)]
        for run in row:
            if run[0].special:
                of_token = tokenizer.backend_tokenizer.token_to_id(run[0].text)
                ids.append(np.array([of_token], np.int32))
                flags.append(np.array([run[0].generated]))
                continue
            here = slice(encoded.splits[number], encoded.splits[number + 1])
            ids.append(encoded.ids[here])
            starts = np.cumsum([0, *(len(piece.text) for piece in run)])
            flags.append(
                np.array(
                    [
                        run[min(bisect_right(starts, start), len(run)) - 1].generated
                        for start in encoded.starts[here]
                    ],
                    bool,
                )
            )
            number += 1
        found.append(Tokens(np.concatenate(ids), np.concatenate(flags)))
    return found


def text(
    conversation: Sequence[Message], template: str, tokenizer: Any, *, answer_next: bool = False
) -> str:
    """A conversation as `apply_chat_template` gives it."""
    cut = pieces(conversation, template, special(tokenizer), answer_next=answer_next)
    return "".join(piece.text for piece in cut)


def special(tokenizer: Any) -> dict[str, str]:
    """The tokens that templates name."""
    backend = tokenizer.backend_tokenizer
    first = [backend.id_to_token(int(id_)) for id_ in special_tokens(tokenizer)[0]]
    named = {"bos_token": "".join(first)}
    if tokenizer.eos_token_id is not None:
        named["eos_token"] = backend.id_to_token(tokenizer.eos_token_id)
    return named


def pieces(
    conversation: Sequence[Message],
    template: str,
    named: dict[str, str],
    *,
    answer_next: bool = False,
) -> list[Piece]:
    """A conversation as the template renders it, what people typed apart from special tokens."""
    from transformers.utils.chat_template_utils import render_jinja_template  # brings torch

    stand_ins = [
        {**message, "content": chr(FIRST + number)} for number, message in enumerate(conversation)
    ]
    render: Any = render_jinja_template  # it gives more than it is annotated with
    rendered, generated = render(
        [stand_ins],
        chat_template=TEMPLATES[template],
        return_assistant_tokens_mask=True,
        add_generation_prompt=answer_next,
        **named,
    )
    skeleton: str = rendered[0]
    inside: list[tuple[int, int]] = generated[0]
    tokens_of_it = [re.escape(each) for each in {*named.values(), *MARKERS.values()} if each]
    edges = {0, len(skeleton), *(edge for span in inside for edge in span)}
    whole = {}
    for found in re.finditer("|".join([*tokens_of_it, "[\U000f0000-\U000ffffd]"]), skeleton):
        edges |= {*found.span()}
        whole[found.start()] = found[0]
    places = sorted(edges)
    cut = []
    for start, end in pairwise(places):
        by_assistant = any(first <= start < last for first, last in inside)
        number = ord(skeleton[start]) - FIRST
        if 0 <= number < len(conversation):
            cut.append(Piece(conversation[number]["content"], by_assistant, special=False))
        else:
            cut.append(Piece(skeleton[start:end], by_assistant, special=start in whole))
    return cut


def _runs(cut: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces that are tokenized as one text; a special token is by itself."""
    runs: list[list[Piece]] = []
    for piece in cut:
        if piece.special or not runs or runs[-1][0].special:
            runs.append([piece])
        else:
            runs[-1].append(piece)
    return runs
