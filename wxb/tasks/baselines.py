"""Baselines: methods that need no training, as rows of every study.

`majority` predicts the most frequent class, `nearest` the gold of the nearest training record, and
`mentions` marks what training labels. A task has them in its module `baseline`. A saved baseline
holds training records. Nothing here imports torch.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import regex

from wxb.core.files import read_json, write_json
from wxb.core.params import experiments
from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.tasks.methods import History, Method, Predictor

FILE = "baseline.json"
LETTER = r"[[\p{L}\p{N}_]--[\u3040-\u9fff]]"
# Marks that continue a word, such as the vowels of Hindi; not of Thai, which has no spaces.
MARK = r"[[\p{Mn}\p{Mc}]--[\p{Line_Break=Complex_Context}\u3040-\u9fff\ufe00-\ufe0f]]"
# A Chinese character is a word.
WORD = regex.compile(rf"[\u3040-\u9fff]|{LETTER}[{LETTER}{MARK}]*", regex.V1)
CELLS = 2**24  # similarities in memory at a time
DIGITS = 9  # of a similarity, so that equal ones tie on every machine


class Baseline(Predictor):
    """A predictor without parameters; its model is what it keeps of the training records."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """The values that `save_model` wrote."""
        return read_json(folder / FILE)

    def save_model(self, folder: Path) -> None:
        """Write the values as JSON."""
        write_json(folder / FILE, self.model)

    def size(self, *, trainable: bool = False) -> int:
        """0: it has no parameters."""
        return 0

    @cached_property
    def _index(self) -> tuple[Any, Any]:
        """A vectorizer of words and pairs of words, and the TF-IDF vectors of the `texts`."""
        from sklearn.feature_extraction.text import TfidfVectorizer  # its import takes a second

        vectorizer = TfidfVectorizer(tokenizer=WORD.findall, token_pattern=None, ngram_range=(1, 2))
        return vectorizer, vectorizer.fit_transform(self.model["texts"])

    def nearest(self, texts: Sequence[str], caption: str) -> list[tuple[Any, float] | None]:
        """The gold of each text's nearest training text, and their cosine; shows progress.

        None for a text without any training word. If rounded cosines are equal, the first counts.
        """
        (vectorizer, known), gold = self._index, self.model["gold"]
        results: list[tuple[Any, float] | None] = []
        size = max(1, CELLS // known.shape[0])
        starts = range(0, len(texts), size)
        for start in track(starts, caption, len(starts), unit="chunk"):
            vectors = vectorizer.transform(texts[start : start + size])
            cosines = (vectors @ known.T).toarray().round(DIGITS)  # (texts, training texts)
            for row, index in zip(cosines, cosines.argmax(axis=1).tolist(), strict=True):
                results.append((gold[index], float(row[index])) if row[index] else None)
        return results


class BaselineMethod(Method):
    """A method that keeps training records instead of training."""

    experiment: experiments.Baseline

    def values(self, records: Sequence[Record], caption: str) -> dict[str, Any]:
        """What the model keeps of the training records; by default texts and gold."""
        gold = [self.gold(record) for record in records]
        return {"texts": [record.input for record in records], "gold": gold}

    def gold(self, record: Record) -> Any:
        """The gold of a record in the form of a prediction; by default unchanged."""
        return record.gold

    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[Any, History]:
        """The `values` of the training records, and a history of one row without scores."""
        return self.values(train, caption), [{"step": 0, "epoch": 0}]
