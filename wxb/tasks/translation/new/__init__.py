"""How files of a user's own are recognized as texts with their translations."""

from __future__ import annotations

from collections.abc import Sequence

from wxb.corpora.layout import decode
from wxb.tasks import guessing
from wxb.tasks.guessing import Files, Guess

FIELDS = {
    "input": ("source", "src", "source_text", "source_sentence", "original", "input"),
    "target": ("target", "tgt", "target_text", "target_sentence", "translation", "reference"),
}
# What two fields are called that hold the same in two languages.
LANGUAGES = {
    *("ar", "arabic", "cs", "czech", "de", "german", "en", "eng", "english", "es", "spanish"),
    *("fi", "finnish", "fr", "french", "hi", "hindi", "it", "italian", "ja", "jp", "japanese"),
    *("ko", "korean", "nl", "dutch", "pl", "polish", "pt", "portuguese", "ru", "russian"),
    *("sv", "swedish", "tr", "turkish", "uk", "ukrainian", "vi", "vietnamese"),
    *("zh", "cn", "cmn", "chinese", "mandarin", "中文", "英文"),
}
EXPECTED = (
    "a text and its translation, in fields such as `source` and `target` or `english` and"
    " `chinese`; or both in a line, divided by a tab"
)
DISTINCT = 0.3  # of the texts of a column, at least: classes repeat


def guess(files: Files) -> Guess | None:
    """Pairs by the names of two fields, or in lines with tabs; the first is the source."""
    if not files.are_tables:
        return _tabbed(files)
    found = guessing.by_names(files, FIELDS)
    if found.keys() != FIELDS.keys():
        pair = [name for name in files.fields if name.casefold() in LANGUAGES]
        if len(pair) != len(FIELDS):
            return None
        found = dict(zip(FIELDS, pair, strict=True))
    if not all(_are_texts([*guessing.strings(files.rows, n)]) for n in found.values()):
        return None
    guess = guessing.guessed(files, found, evidence=len(FIELDS), groups=())
    return _as_pairs(guess)


def _tabbed(files: Files) -> Guess | None:
    lines = [line for file in files.members for line in decode(file).split("\n") if line.strip()]
    cells = [line.rstrip("\r").split("\t") for line in lines]
    width = min(map(len, cells), default=0)
    if width < len(FIELDS):
        return None
    if not all(_are_texts([row[column] for row in cells]) for column in range(len(FIELDS))):
        return None
    more = [f"column {number}" for number in range(len(FIELDS) + 1, width + 1)]
    columns = ["source", "target", *more]
    fields = {"input": "source", "target": "target", "language": None, "id": None}
    content = {"columns": columns, "fields": fields, "split": guessing.divided(None)}
    why = {"columns": f"guessed: {len(lines):,} lines of as many cells, divided by tabs"}
    return _as_pairs(Guess(content, why, [], len(FIELDS)))


def _as_pairs(guess: Guess) -> Guess:
    """Pairs are divided by what they share."""
    split = {key: value for key, value in guess.content["split"].items() if key != "by"}
    why = {key: reason for key, reason in guess.why.items() if key != "split.by"}
    why["fields.input"] = "guessed: the source; exchange both for the other direction"
    why["split.test"] = "share of sources; those that share a reference stay together"
    return guess._replace(content={**guess.content, "split": split}, why=why)


def _are_texts(values: Sequence[str]) -> bool:
    """Whether there are texts, most of them other ones, with letters."""
    letters = sum(any(map(str.isalpha, value)) for value in values)
    return len({*values}) > DISTINCT * len(values) and 2 * letters > len(values)
