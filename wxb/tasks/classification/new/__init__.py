"""How files of a user's own are recognized as texts with one class each."""

from __future__ import annotations

from glob import escape
from typing import Any

from wxb.tasks import guessing
from wxb.tasks.guessing import Files, Guess

FIELDS = {
    "input": (
        *("text", "review", "comment", "content", "sentence", "message", "tweet", "document"),
        *("body", "article", "utterance", "post", "headline", "title", "input"),
    ),
    "label": (
        *("label", "class", "category", "sentiment", "intent", "topic", "target", "emotion"),
        *("stars", "rating", "polarity", "gold", "tag"),
    ),
}
EXPECTED = (
    "a text and its class, in fields such as `text` and `label`; or a folder with a file of texts"
    " for each class"
)
MOST_CLASSES = 200


def guess(files: Files) -> Guess | None:
    """A text with a field whose values repeat; or texts alone, of which each file is a class."""
    found = guessing.by_names(files, FIELDS)
    if "input" not in found or not any(guessing.strings(files.rows, found["input"])):
        return None
    if "label" in found:
        return _by_label(files, found)
    # Of splits that were published, files are no classes.
    tables = [file.name for file in files.members]
    if not 2 <= len(tables) <= MOST_CLASSES or files.name_splits:
        return None
    guess = guessing.guessed(files, found, evidence=1)
    guess.content["fields"]["label"] = None
    guess.content["classes"] = {escape(name): name.partition(".")[0].lower() for name in tables}
    guess.why["classes"] = "guessed: each file is a class"
    return guess


def _by_label(files: Files, found: dict[str, str]) -> Guess | None:
    values = [row.get(found["label"]) for row in files.rows]
    given = [value for value in values if value not in (None, "")]
    classes: set[Any] = {str(value) for value in given}
    named = all(isinstance(value, str) or guessing.is_int(value) for value in given)
    if not named or not 2 <= len(classes) <= min(MOST_CLASSES, len(given) / 2):
        return None
    guess = guessing.guessed(files, found, evidence=len(FIELDS))
    guess.why["fields.label"] = f"guessed: {guessing.shown(files.rows, found['label'])}"
    return guess
