"""Read a corpus with a guessed block, before anything is written."""

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
from wxb.cli.new.layout import as_folder
from wxb.core.params.corpora import Corpus
from wxb.corpora import reading
from wxb.corpora.reading import Reading
from wxb.corpora.records import Record, Reject

# These are 21 to 27% of the words in English news, tweets and letters, and 1 to 3% in French,
# German or Spanish.
ENGLISH = {
    *("the", "of", "and", "to", "in", "is", "for", "that", "with", "a", "it", "on", "was"),
    *("are", "be", "this", "at", "by", "from", "as", "or", "not", "you", "i", "have"),
}
MIN_SHARE = 0.12  # of these words in English
SAMPLE = 2_000  # records for the language


@dataclass
class Trial:
    """Counts of the records that the reader kept and rejected."""

    kept: int = 0
    unlabelled: int = 0
    repeated: int = 0  # records with the text of an earlier one
    rejects: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # the first reject by reason
    repaired: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    groups: int = 0
    transcripts: int = 0  # distinct ones; 0 for texts
    splits: Counter[str | None] = field(default_factory=Counter)  # labelled, by published split
    counts: dict[str, Any] = field(default_factory=dict)  # of gold, as the task counts it
    texts: list[str] = field(default_factory=list)  # a sample, for the language

    @property
    def is_english(self) -> bool:
        """Whether all languages of records are English; without any, whether the texts are."""
        return are_english(self.languages) if self.languages else are_english_texts(self.texts)


def are_english(languages: Iterable[str]) -> bool:
    """Whether all names or codes of languages are English."""
    return all(re.fullmatch(r"english|en([-_].*)?", name.casefold()) for name in languages)


def count_records(path: Path, corpus: Corpus, *, limit: int | None = None) -> Trial:
    """Read and prepare the records at a path, and count those that are kept and rejected.

    `corpus` is the block that reads them. With `limit`, only the first records are read, rejected
    ones included. Prepared files go to a temporary folder; shows progress. Raises WxbError if the
    reader cannot read the path.
    """
    trial, task = Trial(), tasks.get(corpus.task).reading
    records = []
    with as_folder(path) as raw, tempfile.TemporaryDirectory() as temporary:
        items = islice(reading.read(raw, corpus, task), limit)
        out = Path(temporary)
        prepared = task.prepare(
            items, corpus, folder=raw, out=out, home=out, label=f"read {path.name}"
        )
        for item in prepared:
            if isinstance(item, Reject):
                trial.rejects[item.reason] += 1
                trial.examples.setdefault(item.reason, f"{item.origin}: {item.detail}")
            else:
                records.append(item)
    _count(records, task, trial)
    return trial


def _count(records: Sequence[Record], task: Reading, trial: Trial) -> None:
    """Add the counts of kept records to a trial."""
    labelled = [record for record in records if record.gold is not None]
    trial.kept, trial.unlabelled = len(records), len(records) - len(labelled)
    trial.repeated = len(records) - len({record.input for record in records})
    for record in records:
        trial.repaired.update(record.repaired)
    trial.languages.update(record.language for record in records if record.language)
    trial.splits.update(record.split for record in labelled)
    trial.groups = len({record.group for record in records})
    trial.counts = task.describe(labelled)
    trial.texts = [record.input for record in records[:SAMPLE] if task.wording(record)]
    if not trial.texts:  # recordings
        trial.transcripts = len({task.leakage_text(record) for record in labelled})


def are_english_texts(texts: Sequence[str]) -> bool:
    """Whether texts are in Latin letters and have enough frequent English words."""
    words = [word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())]
    letters = sum(map(len, words))
    latin = sum(len(word) for word in words if word.isascii())
    return latin > 0.9 * letters > 0 and sum(word in ENGLISH for word in words) > MIN_SHARE * len(
        words
    )
