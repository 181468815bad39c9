"""How texts with typed spans are recognized."""

from __future__ import annotations

from wxb.tasks.guessing import Guess, Records
from wxb.tasks.ner.new import columns, fields
from wxb.tasks.values import Files


def guess(files: Files, records: Records) -> Guess | None:
    """Columns if lines hold tags, else records with a field of spans, whatever its name."""
    if not files.are_tables or columns.hold_tags(files.members):
        return columns.guess(files.members)
    return fields.guess(files)
