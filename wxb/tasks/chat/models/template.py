"""Chat templates: conversations as the tokens that a model reads, truncated at whole turns.

Jinja templates are saved with the tokenizer, for transformers' `apply_chat_template`, which returns
the same text. Here, special tokens come from the template only: message text is never one.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb.core.errors import WxbError
from wxb.corpora.text.tokenizers import backend_of, special_tokens
from wxb.tasks.chat.record.conversation import ROLES, Message, message

MARKERS = {role: f"<|{role.upper()}|>" for role in ROLES}
# A marker of the role before each message, and the end of text after each answer.
_ROLES = """\
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
# Words instead of markers, for a model that was not trained on any.
_PLAIN = """\
{%- for message in messages -%}
{%- if message['role'] == 'assistant' -%}
{{- 'Answer:' -}}
{%- generation -%}{{- ' ' + message['content'] + eos_token -}}{%- endgeneration -%}
{{- '\\n' -}}
{%- elif message['role'] == 'user' -%}
{{- 'Question: ' + message['content'] + '\\n' -}}
{%- else -%}
{{- message['content'] + '\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Answer:' -}}{%- endif -%}
"""
TEMPLATES = {"roles": _ROLES, "plain": _PLAIN}
OWN = "own"  # the template that a tokenizer came with
# What a model that was not trained on the template writes instead of an end.
NEXT_QUESTION = {"plain": "\nQuestion:"}
_HIDDEN = 0xF0000  # private use: the first code point that hides what people typed


class Piece(NamedTuple):
    """A part of a conversation's text: by the assistant (`generated`), or a special token."""

    text: str
    generated: bool = False
    special: bool = False


class Tokens(NamedTuple):
    """The token ids (T) of a conversation, and a mask (T) of those by the assistant."""

    ids: NDArray[np.int32]
    generated: NDArray[np.bool_]


def add_template(tokenizer: Any, template: str | None) -> str:
    """Add a template and its markers to a tokenizer, in place; returns the template's name.

    None is the tokenizer's own, or `roles` if it has none. The other templates begin with the
    special tokens that the tokenizer writes before a text. Raises WxbError for `own` without one.
    """
    own = tokenizer.chat_template
    template = template or (OWN if own else "roles")
    if template == OWN:
        if not own:
            raise WxbError(
                "encoding.template: found own, but the backbone's tokenizer has no chat template;"
                " expected roles or plain"
            )
        return template
    if template == "roles":
        markers = [AddedToken(text, special=True, normalized=False) for text in MARKERS.values()]
        tokenizer.backend_tokenizer.add_special_tokens(markers)
    leading = "".join(piece.text for piece in _leading(tokenizer))
    begin = f"{{{{- {leading!r} -}}}}\n" if leading else ""
    if leading and leading == tokenizer.special_tokens_map.get("bos_token"):
        begin = "{{- bos_token -}}\n"
    tokenizer.chat_template = begin + TEMPLATES[template]
    return template


def end_ids(tokenizer: Any, template: str) -> list[int]:
    """The ids that end an answer: its trained end first, then those that begin a new message."""
    token_to_id = tokenizer.backend_tokenizer.token_to_id
    own = [token_to_id(_own_end(tokenizer))] if template == OWN else []
    markers = map(token_to_id, MARKERS.values()) if template == "roles" else ()
    return [*dict.fromkeys([*own, tokenizer.eos_token_id, *markers])]


def pieces(
    conversation: Sequence[Message], template: str, tokenizer: Any, *, answer_next: bool = False
) -> Iterator[Piece]:
    """The text of a conversation as its template writes it, in parts."""
    if template == OWN:
        yield from _own_pieces(conversation, tokenizer, answer_next=answer_next)
        return
    end = Piece(tokenizer.backend_tokenizer.id_to_token(tokenizer.eos_token_id), True, special=True)
    yield from _leading(tokenizer)
    for turn in conversation:
        role, content = turn["role"], turn["content"]
        by_assistant = role == "assistant"
        if template == "roles":
            yield Piece(MARKERS[role], special=True)
            yield Piece(content, by_assistant)
            yield from [end] if by_assistant else []
        elif by_assistant:
            yield from (Piece("Answer:"), Piece(f" {content}", generated=True), end, Piece("\n"))
        else:
            yield Piece(f"Question: {content}\n" if role == "user" else f"{content}\n")
    if answer_next:
        yield Piece(MARKERS["assistant"], special=True) if template == "roles" else Piece("Answer:")


def _leading(tokenizer: Any) -> list[Piece]:
    id_to_token = tokenizer.backend_tokenizer.id_to_token
    return [Piece(id_to_token(int(i)), special=True) for i in special_tokens(tokenizer)[0]]


def _special(tokenizer: Any) -> re.Pattern[str]:
    """A pattern, with a group, of the special tokens of a tokenizer."""
    added = tokenizer.backend_tokenizer.get_added_tokens_decoder().values()
    names = sorted((token.content for token in added if token.special), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, names))})")


def _render(tokenizer: Any, conversation: Sequence[Message], *, answer_next: bool = False) -> str:
    """The text of a conversation by the tokenizer's own template, as in transformers."""
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        rendered: Any = render_jinja_template(
            [[*conversation]],
            chat_template=tokenizer.chat_template,
            add_generation_prompt=answer_next,
            **tokenizer.special_tokens_map,
        )
    except TemplateError as error:
        raise WxbError(
            f"the backbone's chat template refuses a conversation ({error}); change the records, or"
            " set `encoding.template: roles`"
        ) from error
    return str(rendered[0][0])


def _own_end(tokenizer: Any) -> str:
    """The special token that the tokenizer's own template writes after an answer."""
    turns: list[Message] = [message("user", "0"), message("assistant", "1")]
    after = _render(tokenizer, turns).rpartition("1")[2]
    found = _special(tokenizer).search(after)
    if found is None:
        raise WxbError(
            "encoding.template: found own, but the backbone's chat template writes no special token"
            " after an answer, so that a reply would never end; expected roles or plain"
        )
    return found[0]


def _own_pieces(
    conversation: Sequence[Message], tokenizer: Any, *, answer_next: bool
) -> Iterator[Piece]:
    """The parts of a text of the tokenizer's own template; an answer goes up to its end."""
    special, end, typed = _special(tokenizer), _own_end(tokenizer), dict[int, str]()

    def hide(match: re.Match[str]) -> str:
        typed[code := _HIDDEN + len(typed)] = match[0]
        return chr(code)

    turns: list[Message] = [
        message(turn["role"], special.sub(hide, turn["content"])) for turn in conversation
    ]
    text, spans = _render(tokenizer, turns, answer_next=answer_next), [0]
    for index, turn in enumerate(turns):
        if turn["role"] == "assistant":
            prompt = _render(tokenizer, turns[:index], answer_next=True)
            stop = text.find(end, len(prompt) + len(turn["content"].strip()))
            if not text.startswith(prompt) or stop < 0:
                raise WxbError(
                    "encoding.template: found own, but the backbone's chat template changes the"
                    " text before an answer when it follows; expected roles or plain"
                )
            spans += [len(prompt), stop + len(end)]
    for part, (start, stop) in enumerate(pairwise([*spans, len(text)])):
        for index, run in enumerate(special.split(text[start:stop])):
            if run:
                yield Piece(run.translate(typed), part % 2 == 1, special=index % 2 == 1)


def tokens(
    tokenizer: Any,
    conversations: Sequence[Sequence[Message]],
    template: str,
    *,
    answer_next: bool = False,
) -> list[Tokens]:
    """Tokenize conversations with a template, with a mask of the assistant's tokens.

    Special tokens come from the template only: a message that spells one is tokenized as plain
    text. Other conversations have the tokens of transformers' `apply_chat_template`. `answer_next`
    adds the beginning of an assistant message. Lone surrogates, which UTF-8 cannot encode, become
    question marks.
    """
    special = _special(tokenizer)
    result = []
    for conversation in conversations:
        parts = [*pieces(conversation, template, tokenizer, answer_next=answer_next)]
        is_typed = any(special.search(piece.text) for piece in parts if not piece.special)
        # A text without typed ones is tokenized as a whole, otherwise special tokens alone.
        runs = [[*g] for _, g in groupby(parts, lambda p: p.special)] if is_typed else [parts]
        ids: list[int] = []
        generated: list[NDArray[np.bool_]] = []
        for run in runs:
            text = "".join(piece.text for piece in run).encode("utf-8", "replace").decode()
            encoding = backend_of(tokenizer, special=not is_typed or run[0].special).encode(
                text, add_special_tokens=False
            )
            edges = np.cumsum([0, *(len(piece.text) for piece in run)])
            starts = [start for start, _ in encoding.offsets]
            indices = np.searchsorted(edges, starts, side="right") - 1
            ids += encoding.ids
            flags = np.array([piece.generated for piece in run])
            generated.append(flags[np.minimum(indices, len(run) - 1)])
        result.append(Tokens(np.array(ids, np.int32), np.concatenate(generated)))
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
