"""Baselines: methods that need no training, as rows of every study.

`majority` predicts the most frequent class, `nearest` the gold of the nearest training record, and
`mentions` marks what training labels. A task has them in its folder `baseline/`. A saved baseline
holds training records. Nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wxb.core.files import read_json, write_json
from wxb.core.progress import track
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Columns
from wxb.tasks import methods
from wxb.tasks.methods import Trained

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun

FILE = "baseline.json"
WORD = re.compile(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+")  # a Chinese character is a word
CELLS = 2**24  # similarities in memory at a time
DIGITS = 9  # of a similarity, so that equal ones tie on every machine


@dataclass(frozen=True)
class Model:
    """What a baseline keeps of the training records."""

    values: Mapping[str, Any]  # JSON

    def save_pretrained(self, folder: Path) -> None:
        """Write the values as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, self.values)

    @cached_property
    def _index(self) -> tuple[Any, Any]:
        """A vectorizer of words and pairs of words, and the TF-IDF vectors of the `texts`."""
        from sklearn.feature_extraction.text import TfidfVectorizer  # its import takes a second

        vectorizer = TfidfVectorizer(token_pattern=WORD.pattern, ngram_range=(1, 2))
        return vectorizer, vectorizer.fit_transform(self.values["texts"])

    def nearest(self, texts: Sequence[str], label: str) -> list[tuple[Any, float] | None]:
        """The gold of the nearest training text of each text, and the cosine of both texts.

        Of several the first; None for a text that shares no word with training. Shows progress
        under a label.
        """
        (vectorizer, known), gold = self._index, self.values["gold"]
        found: list[tuple[Any, float] | None] = []
        size = max(1, CELLS // known.shape[0])
        starts = range(0, len(texts), size)
        for start in track(starts, label, len(starts), unit="chunk"):
            vectors = vectorizer.transform(texts[start : start + size])
            cosines = (vectors @ known.T).toarray().round(DIGITS)  # (texts, training texts)
            for row, index in zip(cosines, cosines.argmax(axis=1).tolist(), strict=True):
                found.append((gold[index], float(row[index])) if row[index] else None)
        return found


class Baseline(Trained):
    """A predictor without parameters."""

    @classmethod
    def from_training(cls, model: Model, method: methods.Method, targets: Path) -> Self:
        """As of `Trained`, which other tasks override."""
        encoding = method.experiment.encoding.model_dump()
        return cls(model, method.tokenizer, labels=list(method.labels), **encoding)

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Model:
        """The model that `save` wrote to a folder."""
        return Model(read_json(folder / FILE))

    def size(self, *, trainable: bool = False) -> int:
        """0: it has no parameters."""
        return 0

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Choose nothing on validation records."""

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Any]
    ) -> dict[str, float]:
        """None."""
        return {}


class Method(methods.Method):
    """A method that keeps training records instead of training."""

    def values(self, items: Sequence[Any]) -> dict[str, Any]:
        """What the model keeps of the items of `dataset`, as JSON; by default texts and gold."""
        gold = [self.gold(record) for record in items]
        return {"texts": [record.input for record in items], "gold": gold}

    def gold(self, record: Record) -> Any:
        """The gold of a record as a prediction has it."""
        return record.gold

    def encode(self, chunks: Iterable[Sequence[Record]], path: Path, *, label: str) -> None:
        """Write an empty file: texts are read as they are."""
        path.touch()

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """No targets: gold is kept as it is. Counts records."""
        count = sum(map(len, chunks))
        return {}, np.zeros(1, np.int64), {"gold": count, "kept": count}

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """The records."""
        return [*records]

    def build(self, backbone: Path) -> Callable[[Sequence[Any]], Model]:
        """A function that makes the model from the training items."""
        return lambda items: Model(self.values(items))

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[Model, list[dict[str, float]]]:
        """The model after no update, and a history without scores."""
        return self.build(backbone)(run.train), [{"step": 0, "epoch": 0}]
