"""Records and blocks of `corpora` for tests."""

from wxb import tasks
from wxb.corpora.reading import with_wording
from wxb.corpora.records import Record
from wxb.tasks.ner.params import Corpus


def corpus(**changes):
    """A corpus of named entities."""
    shares = {"test": 0.2, "valid": 0.1}
    return Corpus.model_validate({"task": "ner", "path": "x", "split": shares, **changes})


def to_letters(value):
    """The value with digits as letters: texts that differ only in digits are near duplicates."""
    return "".join("abcdefghij"[int(c)] if c.isdigit() else c for c in str(value))


def record(id_, text=None, gold=(), group=None, language="en", task="ner", **options):
    """A record of a task; by default with a unique text, which is also its group."""
    text = f"text {to_letters(id_)}" if text is None else text
    group = text if group is None else group
    new = Record(str(id_), text, gold, language, group, **options)
    return with_wording(new, tasks.get(task).reading)
