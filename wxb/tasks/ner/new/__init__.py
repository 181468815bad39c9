"""How files of a user's own are recognized as texts with typed spans."""

from __future__ import annotations

from wxb.tasks.guessing import Files, Guess
from wxb.tasks.ner.new import columns, fields

EXPECTED = (
    "records such as {text: ..., spans: [{start: 0, end: 3, type: NAME}]}: a text, and a list of"
    " spans with whole numbers from `start` up to, not including, `end`; or columns with a token"
    " and its tag a line, divided by tabs or spaces, with a blank line between sentences and tags"
    " such as O, B-NAME and I-NAME"
)


def guess(files: Files) -> Guess | None:
    """Columns where lines hold tags, else fields that hold spans."""
    if not files.are_tables or columns.hold_tags(files.members):
        return columns.guess(files.members)
    return fields.guess(files)
