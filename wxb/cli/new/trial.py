"""What the project's own reader makes of a corpus, before anything is written."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from wxb import tasks
from wxb.cli.new.layout import folder
from wxb.core.params.corpora import Corpus
from wxb.corpora import reading
from wxb.corpora.reading import Reading
from wxb.corpora.records import Record, Reject

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
    """What the reader kept and dropped; a reason comes with its first example."""

    kept: int = 0
    unlabelled: int = 0
    repeated: int = 0  # texts that stood earlier
    rejects: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    repaired: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    groups: int = 0
    counts: dict[str, Any] = field(default_factory=dict)  # of gold, as the task counts it
    texts: list[str] = field(default_factory=list)  # of the first so many, where they say something

    @property
    def english(self) -> bool:
        """Whether all records say that they are English, or the texts of those that do not are."""
        return are_english(self.languages) if self.languages else is_english(self.texts)


def are_english(languages: Iterable[str]) -> bool:
    """Whether each of these names or codes says English."""
    return all(re.fullmatch(r"english|en([-_].*)?", name.casefold()) for name in languages)


def run(path: Path, corpus: Corpus, *, limit: int | None = None) -> Trial:
    """Read the records at a path, or the first so many. Raises WxbError as the reader does."""
    trial, task = Trial(), tasks.get(corpus.task).reading
    records = []
    with folder(path) as raw, tempfile.TemporaryDirectory() as made:
        items = islice(reading.read(raw, corpus, task), limit)
        out = Path(made)
        ready = task.prepared(
            items, corpus, folder=raw, out=out, home=out, label=f"look at {path.name}"
        )
        for item in ready:
            if isinstance(item, Reject):
                trial.rejects[item.reason] += 1
                trial.examples.setdefault(item.reason, f"{item.origin}: {item.detail}")
            else:
                records.append(item)
    _count(records, task, trial)
    return trial


def _count(records: Sequence[Record], task: Reading, trial: Trial) -> None:
    labelled = [record for record in records if record.gold is not None]
    trial.kept, trial.unlabelled = len(records), len(records) - len(labelled)
    trial.repeated = len(records) - len({record.input for record in records})
    for record in records:
        trial.repaired.update(record.repaired)
    trial.languages.update(record.language for record in records if record.language)
    trial.groups = len({record.group for record in records})
    trial.counts = task.describe(labelled)
    trial.texts = [record.input for record in records[:SAMPLE] if task.wording(record)]


def is_english(texts: Sequence[str]) -> bool:
    """Whether texts look English: in Latin letters, and with its little words."""
    words = [word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())]
    letters = sum(map(len, words))
    latin = sum(len(word) for word in words if word.isascii())
    return latin > 0.9 * letters > 0 and sum(word in ENGLISH for word in words) > SHARE * len(words)
