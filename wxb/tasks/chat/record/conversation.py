"""Conversations as lists of messages, and as texts, which are the inputs of records.

The text of a single question is the question; that of any other conversation is JSON.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wxb.corpora.records import Record, RecordError
from wxb.corpora.text.templates import ROLES, Message, message
from wxb.tasks.chat.record.checking import parse_json

ANSWERS = ("tool_calls", "reasoning_content", "reasoning", "thinking")  # parts of an answer
WEIGHTS = ("weight", "loss", "train")  # of a message in training


def validate(value: Any) -> list[Message]:
    """The messages of a JSON value, without outer white space.

    Raises RecordError for a blank one, one with ANSWERS or WEIGHTS but 1, and unless roles are: at
    most one system first, then user and assistant in turn.
    """
    if not isinstance(value, list) or not value:
        raise RecordError("empty conversation", f"found {value!r:.80}, expected messages")
    messages = []
    for number, item in enumerate(value, start=1):
        fields = item if isinstance(item, Mapping) else {}
        role, content = fields.get("role"), fields.get("content")
        match content:
            case [{"type": "text", "text": text}]:  # as OpenAI writes it, too
                content = text
        if not (isinstance(role, str) and isinstance(content, str)):
            detail = f"message {number} is {item!r:.80}, expected texts as `role` and `content`"
            raise RecordError("no message", detail)
        if role not in ROLES:
            detail = f"message {number} is of {role!r}, expected {', '.join(ROLES)}"
            raise RecordError("unknown role", detail)
        if not content.strip():
            raise RecordError("blank message", f"message {number}, of {role}")
        weights = [key for key in WEIGHTS if fields.get(key) not in (None, 1)]  # or True
        for key in [key for key in ANSWERS if fields.get(key)] + weights:
            detail = f"message {number} has {key!r}: {fields[key]!r:.40}; remove the key or message"
            raise RecordError("not for training", detail)
        messages.append(message(role, content.strip()))
    roles = [message["role"] for message in messages]
    if roles.count("system") > 1:
        raise RecordError("several system turns", f"found {roles.count('system')}")
    turns = roles[1:] if roles[0] == "system" else roles
    if turns != [ROLES[1 + index % 2] for index in range(len(turns))] or not turns:
        raise RecordError("roles out of order", f"found {roles!r:.80}")
    return messages


def serialize(messages: Sequence[Message]) -> str:
    """The text that `deserialize` reads: JSON, or a single question that is no such JSON itself."""
    if len(messages) == 1 and messages[0]["role"] == "user":
        content = messages[0]["content"]
        if _parse(content) is None:
            return content
    return json.dumps(list(messages), ensure_ascii=False)


def deserialize(text: str) -> list[Message]:
    """The messages of a text, a question or JSON of messages, checked by `validate_question`."""
    value = _parse(text)
    return validate_question([message("user", text)] if value is None else value)


def with_answer(record: Record) -> list[Message]:
    """The messages of a labelled record, then its answer."""
    return [*deserialize(record.input), message("assistant", record.gold["text"])]


def validate_question(value: Any) -> list[Message]:
    """Like `validate`; also raises RecordError unless the last message is the user's."""
    messages = validate(value)
    if messages[-1]["role"] != "user":
        raise RecordError("no question", "the last message is not the user's")
    return messages


def _parse(text: str) -> list[Any] | None:
    """Parse a JSON list of objects with roles; None for an empty list and for any other text."""
    if not text.lstrip().startswith("["):
        return None
    value = parse_json(text) or []
    has_roles = all(isinstance(item, dict) and "role" in item for item in value)
    return value if value and has_roles else None
