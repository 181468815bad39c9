"""What the project's own reader makes of a corpus, before anything is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from wxb.cli.new.layout import folder
from wxb.corpora import reading
from wxb.corpora.records import Record, Reject
from wxb.progress import tracked
from wxb.tasks.ner import reading as ner_reading
from wxb.tasks.ner.params import Corpus

# They are 21 to 27% of the words of English news, tweets and letters, and 1 to 3% of French,
# German or Spanish ones.
ENGLISH = {
    *("the", "of", "and", "to", "in", "is", "for", "that", "with", "a", "it", "on", "was"),
    *("are", "be", "this", "at", "by", "from", "as", "or", "not", "you", "i", "have"),
}
SHARE = 0.12
SAMPLE = 2_000  # records, to tell a language by


@dataclass
class Trial:
    """Counts of what the reader kept and dropped; a reason comes with its first example."""

    kept: int = 0
    unlabelled: int = 0
    repeated: int = 0  # texts that stood earlier
    rejects: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    repaired: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    groups: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)  # the first so many

    @property
    def english(self) -> bool:
        """Whether all records say that they are English, or the texts of those that do not are."""
        return are_english(self.languages) if self.languages else is_english(self.texts)


def are_english(languages: Iterable[str]) -> bool:
    """Whether each of these names or codes says English."""
    return all(re.fullmatch(r"english|en([-_].*)?", name.casefold()) for name in languages)


def run(path: Path, corpus: Corpus, *, limit: int | None = None) -> Trial:
    """Read the records at a path, or the first so many. Raises WxbError as the reader does."""
    trial, texts = Trial(), set[int]()
    with folder(path) as raw:
        items = tracked(reading.read(raw, corpus, ner_reading), f"look at {path.name}")
        for item in islice(items, limit):
            if isinstance(item, Reject):
                trial.rejects[item.reason] += 1
                trial.examples.setdefault(item.reason, f"{item.origin}: {item.detail}")
            else:
                _count(item, trial)
                trial.repeated += hash(item.input) in texts
                texts.add(hash(item.input))
    return trial


def _count(found: Record, trial: Trial) -> None:
    trial.kept += 1
    trial.unlabelled += found.gold is None
    trial.repaired.update(found.repaired)
    trial.types.update(span.type for span in found.gold or ())
    if found.language:
        trial.languages[found.language] += 1
    trial.groups.add(found.group)
    if len(trial.texts) < SAMPLE:
        trial.texts.append(found.input)


def is_english(texts: Sequence[str]) -> bool:
    """Whether texts look English: in Latin letters, and with its little words."""
    words = [word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())]
    letters = sum(map(len, words))
    latin = sum(len(word) for word in words if word.isascii())
    return latin > 0.9 * letters > 0 and sum(word in ENGLISH for word in words) > SHARE * len(words)
