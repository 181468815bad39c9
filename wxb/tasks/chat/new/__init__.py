"""How files of a user's own are recognized as conversations that end with an answer."""

from __future__ import annotations

from typing import Any

from wxb.errors import WxbError
from wxb.tasks import guessing
from wxb.tasks.guessing import Files, Guess

FIELDS = {
    "messages": ("messages", "conversations", "conversation", "dialogue", "dialog"),
    "instruction": ("instruction", "prompt", "question", "query", "user"),
    "output": ("output", "answer", "response", "completion", "reply", "assistant"),
    "input": ("input", "context"),
    "system": ("system", "system_prompt"),
    "kind": ("kind",),
    "format": ("format",),
}
ASKED = {"instruction", "output"}
EXPECTED = (
    "a question and its answer, in fields such as `instruction` and `output`; or `messages`, each"
    " with its `role` (system, user, assistant) and `content`"
)


def guess(files: Files) -> Guess | None:
    """Messages, or an instruction with its answer."""
    found = guessing.by_names(files, FIELDS)
    messages = found.get("messages")
    if messages and (keys := _keys(files, messages)):
        if not {"role", "content"} <= keys:
            raise WxbError(
                f"{files.path}: found {messages!r} of objects with {', '.join(sorted(keys))};"
                " expected the keys `role` (system, user, assistant) and `content`: rename them"
            )
        found = {key: name for key, name in found.items() if key not in {*ASKED, "input"}}
        return _with_defaults(files, found)
    if not found.keys() >= ASKED:
        return None
    found.pop("messages", None)
    if not all(any(guessing.strings(files.rows, found[key])) for key in ASKED):
        return None
    return _with_defaults(files, found)


def _with_defaults(files: Files, found: dict[str, str]) -> Guess:
    """What a file has not is said to be missing; a `text` beside an answer is no other record."""
    guess = guessing.guessed(files, found, evidence=len(ASKED))
    absent = [key for key in ("system", "kind", "format") if key not in found]
    guess.content["fields"] |= dict.fromkeys([*absent, "text"])
    return guess


def _keys(files: Files, name: str) -> set[Any]:
    """The keys of the first message."""
    for row in files.rows:
        found = row.get(name)
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return {*found[0]}
    return set()
