"""Chat templates: conversations as the tokens that a model reads, truncated at whole turns.

Templates are Jinja, saved with the tokenizer for transformers' `apply_chat_template`. Here, special
tokens come from the template only: message text is never one.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb.core.errors import WxbError
from wxb.corpora.text.tokenizers import backend_of, special_tokens

ROLES = ("system", "user", "assistant")
Message = dict[str, str]  # its `role` and `content`
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
# Before a template that reads the date, as Llama 3's: today's would change its prompts each day.
_DATE = "{% macro strftime_now(_) %}26 Jul 2024{% endmacro %}\n"
_HIDDEN = 0xF0000  # private use: the first code point that hides a special token in a message


def message(role: str, content: str) -> Message:
    """A message with its role."""
    return {"role": role, "content": content}


class Piece(NamedTuple):
    """A part of a conversation's text: by the assistant (`generated`), or a special token."""

    text: str
    generated: bool = False
    special: bool = False


class Tokens(NamedTuple):
    """The token ids (T) of a conversation, and a mask (T) of those by the assistant."""

    ids: NDArray[np.int32]
    generated: NDArray[np.bool_]


class Truncation(NamedTuple):
    """The tokens of the newest turns that fit, or None if the last alone is too long.

    `dropped` is the number of messages without tokens, `length` the number of tokens of all.
    """

    tokens: Tokens | None
    dropped: int
    length: int


class Template:
    """The template of a tokenizer with a name: `roles`, `plain`, or `own`, which it came with."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self.tokenizer, self.name = tokenizer, name
        self.backend = tokenizer.backend_tokenizer
        # What a model that was not trained on the template writes instead of an end, if any.
        self.next_question = "\nQuestion:" if name == "plain" else ""

    @classmethod
    def add(cls, tokenizer: Any, name: str | None) -> Self:
        """Add a template and its markers to a tokenizer, in place.

        None is the tokenizer's own, which stays, or `roles` if it has none. Others begin with the
        special tokens that precede each text. Raises WxbError for `own` if there is none.
        """
        template = cls(tokenizer, name or (OWN if tokenizer.chat_template else "roles"))
        if template.name == OWN:
            if not tokenizer.chat_template:
                raise WxbError(
                    "the backbone's tokenizer has no chat template; choose a checkpoint with one,"
                    " or for chat `encoding.template: roles` or `plain`"
                )
            return template
        if template.name == "roles":
            markers = [AddedToken(t, special=True, normalized=False) for t in MARKERS.values()]
            template.backend.add_special_tokens(markers)
        leading = "".join(map(template.backend.id_to_token, special_tokens(tokenizer)[0].tolist()))
        begin = f"{{{{- {leading!r} -}}}}\n" if leading else ""
        if leading and leading == tokenizer.special_tokens_map.get("bos_token"):
            begin = "{{- bos_token -}}\n"
        tokenizer.chat_template = begin + TEMPLATES[template.name]
        return template

    @property
    def end_ids(self) -> list[int]:
        """The ids that end an answer: its trained end, eos, then the markers of `roles`."""
        markers = MARKERS.values() if self.name == "roles" else ()
        end, *others = map(self.backend.token_to_id, [self._end_token, *markers])
        return [*dict.fromkeys([end, self.tokenizer.eos_token_id, *others])]

    def tokens(self, conversation: Sequence[Message], *, answer_next: bool = False) -> Tokens:
        """Tokenize a conversation, with a mask of the assistant's tokens.

        Special tokens come from the template only: a message that spells one is tokenized as plain
        text. Other conversations have the tokens of transformers' `apply_chat_template`. Lone
        surrogates become question marks. `answer_next` adds the beginning of an answer.
        """
        parts = [*self.pieces(conversation, answer_next=answer_next)]
        has_literal = any(self._special.search(piece.text) for piece in parts if not piece.special)
        # If a message spells a special token, real ones are tokenized apart from text.
        runs = [[*g] for _, g in groupby(parts, lambda p: p.special)] if has_literal else [parts]
        ids: list[int] = []
        generated: list[NDArray[np.bool_]] = []
        for run in runs:
            text = "".join(piece.text for piece in run).encode("utf-8", "replace").decode()
            backend = backend_of(self.tokenizer, parse_special=not has_literal or run[0].special)
            encoding = backend.encode(text, add_special_tokens=False)
            ids += encoding.ids
            starts = np.array([start for start, _ in encoding.offsets], np.int64)
            lengths = [len(piece.text) for piece in run]
            flags = np.repeat([piece.generated for piece in run], lengths)
            generated.append(flags[np.minimum(starts, len(flags) - 1)])
        return Tokens(np.array(ids, np.int32), np.concatenate(generated))

    def prompt(self, instruction: str, turns: Sequence[Sequence[str]]) -> NDArray[np.int32]:
        """The tokens before the next answer; the instruction begins the user's text of turn one.

        A turn is a user's text and its answer; the last turn has no answer.
        """
        turns = [(f"{instruction}\n\n{turns[0][0]}", *turns[0][1:]), *turns[1:]]
        roles = ("user", "assistant")
        messages = [m for turn in turns for m in map(message, roles, turn)]
        return self.tokens(messages, answer_next=True).ids

    def truncate(
        self, conversation: Sequence[Message], max_tokens: int, *, answer_next: bool = False
    ) -> Truncation:
        """Drop the oldest turns until at most `max_tokens` are left; the system message stays.

        A turn is a question with its answer. Tokens are None if the last turn alone is too long.
        """
        system = list(conversation[: conversation[0]["role"] == "system"])
        turns = list(conversation[len(system) :])

        def encode_from(start: int) -> Tokens:
            return self.tokens([*system, *turns[start:]], answer_next=answer_next)

        full = encode_from(0)
        if len(full.ids) <= max_tokens:
            return Truncation(full, 0, len(full.ids))
        starts = range(2, len(turns), 2)
        index = bisect_left(starts, -max_tokens, key=lambda start: -len(encode_from(start).ids))
        if index == len(starts):
            return Truncation(None, len(turns), len(full.ids))
        return Truncation(encode_from(starts[index]), starts[index], len(full.ids))

    def pieces(
        self, conversation: Sequence[Message], *, answer_next: bool = False
    ) -> Iterator[Piece]:
        """Yield the text of a conversation as answers, special tokens and other pieces.

        The end token of an answer is generated, too. A special token in a message is ordinary text.
        Raises WxbError if the template changes the text before an answer.
        """
        end, literals = self._end_token, dict[int, str]()

        def hide(match: re.Match[str]) -> str:
            literals[code := _HIDDEN + len(literals)] = match[0]
            return chr(code)

        turns = [
            message(turn["role"], self._special.sub(hide, turn["content"])) for turn in conversation
        ]
        text, edges = self._render(turns, answer_next=answer_next), [0]
        for index, turn in enumerate(turns):
            if turn["role"] == "assistant":
                prompt = self._render(turns[:index], answer_next=True)
                if not text.startswith(prompt):  # an empty thought is before the last answer only
                    prompt = self._render(turns[:index], answer_next=True, thinking=True)
                stop = text.find(end, len(prompt) + len(turn["content"].strip()))
                if not text.startswith(prompt) or stop < 0:
                    raise WxbError(
                        "encoding.template: found own, but the backbone's chat template changes the"
                        " text before an answer when it follows; expected roles or plain"
                    )
                edges += [len(prompt), stop + len(end)]
        for part, (start, stop) in enumerate(pairwise([*edges, len(text)])):
            for index, run in enumerate(self._special.split(text[start:stop])):
                if run:
                    yield Piece(run.translate(literals), part % 2 == 1, special=index % 2 == 1)

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """A pattern, with a group, of the special tokens of the tokenizer."""
        added = self.backend.get_added_tokens_decoder().values()
        names = sorted((token.content for token in added if token.special), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, names))})")

    @cached_property
    def _end_token(self) -> str:
        """The special token that the template writes after an answer; WxbError if it has none."""
        text = self._render([message("user", "0"), message("assistant", "1")])
        match = self._special.search(text.rpartition("1")[2])
        if match is None:
            raise WxbError(
                "encoding.template: found own, but the backbone's chat template writes no special"
                " token after an answer, so that a reply would never end; expected roles or plain"
            )
        return match[0]

    def _render(
        self, conversation: Sequence[Message], *, answer_next: bool = False, thinking: bool = False
    ) -> str:
        """Render with `enable_thinking=thinking` and a fixed date; WxbError for errors of Jinja."""
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            texts: Any = render_jinja_template(
                [[*conversation]],
                chat_template=_DATE + self.tokenizer.chat_template,
                add_generation_prompt=answer_next,
                enable_thinking=thinking,  # a name of Qwen3's template, which others took over
                **self.tokenizer.special_tokens_map,
            )
        except TemplateError as error:
            cure = "change the records, or set `encoding.template: roles`"
            raise WxbError(f"the chat template refuses a conversation ({error}); {cure}") from error
        return str(texts[0][0])
