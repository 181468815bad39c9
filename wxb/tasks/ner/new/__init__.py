"""Guess the block of `corpora` for texts with typed spans."""

from __future__ import annotations

from wxb.tasks.guessing import Guess, Records
from wxb.tasks.ner.new import columns, fields
from wxb.tasks.values import Files


def guess(files: Files, records: Records) -> Guess | None:
    """The block for column files, or for records with a field of spans; None of other files.

    Raises WxbError for files of spans or tags that must be changed before they can be read.
    """
    if not files.has_fields or columns.has_tags(files.members):
        return columns.guess(files.members)
    return fields.guess(files)
