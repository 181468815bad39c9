"""Records made up for tests."""

from wxb.corpora.records import Record


def lettered(number):
    """A word of its own for each number: texts that differ by their digits repeat each other."""
    return "".join("abcdefghij"[int(digit)] if digit.isdigit() else digit for digit in str(number))


def record(id_, text=None, gold=(), group=None, language="en", **more):
    text = f"text {lettered(id_)}" if text is None else text
    return Record(str(id_), text, gold, language, text if group is None else group, **more)
