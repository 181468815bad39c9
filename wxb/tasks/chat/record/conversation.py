"""Conversations as lists of messages, and as the one text that is a record's input.

A conversation that is one question is its text; any other is the JSON of its messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

ROLES = ("system", "user", "assistant")

Message = dict[str, str]  # its `role` and `content`


class ConversationError(ValueError):
    """Why messages are no conversation: a reason to count by, and the particulars."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def message(role: str, content: str) -> Message:
    """A message of someone."""
    return {"role": role, "content": content}


def checked(found: Any) -> list[Message]:
    """The messages of a conversation, without white space at their edges.

    Raises ConversationError unless there is one system turn at most, which comes first, and then
    users and assistants take turns.
    """
    if not isinstance(found, list) or not found:
        raise ConversationError("empty conversation", f"found {_short(found)}, expected messages")
    messages = [_checked(number, each) for number, each in enumerate(found, start=1)]
    roles = [each["role"] for each in messages]
    if roles.count("system") > 1:
        raise ConversationError("several system turns", f"found {roles.count('system')}")
    turns = roles[1:] if roles[0] == "system" else roles
    if turns != [ROLES[1 + place % 2] for place in range(len(turns))] or not turns:
        raise ConversationError("roles out of order", f"found {_short(roles)}")
    return messages


def _checked(number: int, found: Any) -> Message:
    given = found if isinstance(found, Mapping) else {}
    role, content = given.get("role"), given.get("content")
    if not (isinstance(role, str) and isinstance(content, str)):
        raise ConversationError(
            "no message", f"message {number} is {_short(found)}, expected `role` and `content`"
        )
    if role not in ROLES:
        raise ConversationError(
            "unknown role", f"message {number} is of {role!r}, expected {', '.join(ROLES)}"
        )
    if not content.strip():
        raise ConversationError("blank message", f"message {number}, of {role}")
    return message(role, content.strip())


def _short(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 80 else f"{text[:77]}..."


def to_text(messages: Sequence[Message]) -> str:
    """A conversation as text, which `of_text` reads."""
    if len(messages) == 1 and messages[0]["role"] == "user":
        content = messages[0]["content"]
        if _parsed(content) is None:
            return content
    return json.dumps(list(messages), ensure_ascii=False)


def of_text(text: str) -> list[Message]:
    """The conversation that is asked with a text; raises as `checked`, and where none asks."""
    found = _parsed(text)
    messages = checked([message("user", text)] if found is None else found)
    if messages[-1]["role"] != "user":
        raise ConversationError("nothing asked", "the last message is not the user's")
    return messages


def _parsed(text: str) -> list[Any] | None:
    """The messages that a text is JSON of, if it is."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(found, list) and found and all(isinstance(each, dict) for each in found)
    return found if whole and all("role" in each for each in found) else None
