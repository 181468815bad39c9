"""`wxb new corpus` for pairs of texts, also in a file for each language."""

from __future__ import annotations

from collections import Counter

from wxb.tasks.guessing import Guess, Records
from wxb.tasks.translation.params import Fields
from wxb.tasks.values import Files

EVIDENCE = 2  # a source and a target


def guess(files: Files, records: Records) -> Guess | None:
    """The block for files such as `train.en` and `train.zh`; else the guess of `records`.

    There is a file in each of two languages for every name, with a line for each text.
    """
    if files.has_fields or not files.path.is_dir():
        return records.guess(files)
    suffixes = Counter(
        file.suffix[1:] for file in files.members if file.suffix[1:].casefold() in records.pair
    )
    stems = [{f.with_suffix("") for f in files.members if f.suffix == f".{s}"} for s in suffixes]
    if len(suffixes) != 2 or stems[0] != stems[1]:
        return records.guess(files)
    source, target = sorted(suffixes)
    fields = Fields(input=source, target=target, language=None, id=None)
    content = {
        "parallel": [source, target],
        "fields": fields.model_dump(),
        "split": {"test": 0.2, "valid": 0.1},
    }
    reasons = {"parallel": "guessed: the suffixes of files with the same lines", **records.reasons}
    return Guess(content, reasons, [], EVIDENCE)
