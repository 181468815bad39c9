"""Named entities by a linear-chain CRF: features of words, fitted by CRFsuite.

Nothing here imports torch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wxb.core.errors import WxbError
from wxb.core.progress import Progress, track
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import Columns, Encoded, read_columns, read_encoded
from wxb.corpora.text.windows import sliding_windows
from wxb.tasks import methods
from wxb.tasks.ner.crf.features import word_features
from wxb.tasks.ner.crf.model import CRF
from wxb.tasks.ner.params import Crf, CrfModel
from wxb.tasks.ner.predictor import ScoredSpan, SpanFinder
from wxb.tasks.ner.record.alignment import count_statuses
from wxb.tasks.ner.record.bio import align, decode_tags, tag_names
from wxb.tasks.ner.record.spans import Span

if TYPE_CHECKING:
    from wxb.training.run import TrainingRun


def _words(text: str, encoded: Encoded, index: int) -> list[str]:
    """The words of a text, which are the tokens of the encoded text at `index`."""
    tokens = slice(*encoded.splits[index : index + 2])
    edges = zip(encoded.starts[tokens], encoded.ends[tokens], strict=True)
    return [text[start:end] for start, end in edges]


class CrfRecognizer(SpanFinder):
    """A trained CRF. The score of a span is its probability."""

    @classmethod
    def from_training(cls, model: CRF, method: methods.Method, targets: Path) -> Self:
        """The predictor of a newly trained model."""
        shape = method.experiment.model.model_dump()
        return cls(model, method.tokenizer, types=list(method.labels), **shape)

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> CRF:
        """Load the model that `save` wrote to a folder."""
        return CRF.from_pretrained(folder)

    def size(self, *, trainable: bool = False) -> int:
        """Number of weights that are not zero."""
        finite = np.isfinite(self.model.transitions) & (self.model.transitions != 0)
        return int(np.count_nonzero(self.model.weights) + finite.sum())

    def candidates(self, texts: Sequence[str], /, *, label: str) -> list[list[ScoredSpan]]:
        """The spans of the best tags of each text."""
        settings = CrfModel(**{name: self.settings[name] for name in CrfModel.model_fields})
        encoded = tokenizers.encode(self.tokenizer, texts)
        return [
            self._spans(word_features(_words(text, encoded, index), settings), encoded, index)
            for index, text in enumerate(track(texts, label, len(texts), unit="text"))
        ]

    def _spans(
        self, rows: Sequence[Sequence[str]], encoded: Encoded, index: int
    ) -> list[ScoredSpan]:
        """The spans of the encoded text at `index`, whose words have the features `rows`."""
        if not rows:
            return []
        scores = self.model.scores(rows)
        tags = self.model.best_tags(scores)
        spans = [*decode_tags(tags.tolist())]
        probabilities = self.model.probabilities(scores, tags, spans)
        begin = encoded.splits[index]
        starts, ends = encoded.starts[begin:], encoded.ends[begin:]
        return [
            ScoredSpan(Span(int(starts[first]), int(ends[last - 1]), self.types[kind]), probability)
            for (first, last, kind), probability in zip(spans, probabilities, strict=True)
        ]

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Sequence[ScoredSpan]]
    ) -> dict[str, float]:
        """seqeval's F1 of the spans on words."""
        return self.seqeval(records, predictions)


class Method(methods.Method):
    """A CRF over the words of a tokenizer of kind `words`, without its vocabulary."""

    experiment: Crf
    TARGETS = ("tags",)
    Predictor = CrfRecognizer

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The tag of every word, where each text's begin, and counts of gold spans."""
        encoded = read_encoded(path)
        gold = [record.gold for records in chunks for record in records]
        whole_texts = sliding_windows(encoded.splits, size=max(1, len(encoded.ids)), stride=0)
        targets, statuses = align(encoded, whole_texts, gold, self.labels)
        return {"tags": targets.tags}, encoded.splits, count_statuses(statuses)

    def dataset(self, features: Path, targets: Path, records: Iterable[Record]) -> Any:
        """One item per text with words: their `features` and `tags`."""
        encoded, (columns, _) = read_encoded(features), read_columns(targets, self.TARGETS)
        texts, settings = [record.input for record in records], self.experiment.model

        def item(index: int) -> dict[str, Any]:
            tags = columns["tags"][slice(*encoded.splits[index : index + 2])]
            words = _words(texts[index], encoded, index)
            return {"features": word_features(words, settings), "tags": tags}

        return methods.LazyItems(np.flatnonzero(np.diff(encoded.splits)).tolist(), item)

    def build(self, backbone: Path) -> Callable[[Sequence[Mapping[str, Any]]], Sequence[str]]:
        """A function that lists the features of training items, in alphabetical order."""
        return lambda items: sorted(
            {f for item in items for word in item["features"] for f in word}
        )

    def fit(self, backbone: Path, run: TrainingRun) -> tuple[CRF, list[dict[str, float]]]:
        """The CRF with the largest penalized likelihood, and the loss by iteration of L-BFGS.

        Raises WxbError if all words of the training records have the same tag.
        """
        import pycrfsuite  # only training needs it

        if len({tag for item in run.train for tag in item["tags"].tolist()}) < 2:
            raise WxbError(
                "a CRF needs training records with spans and with words outside of spans; add such"
                " records"
            )
        names = self.build(backbone)(run.train)
        index_of = {name: str(index) for index, name in enumerate(names)}
        settings: Any = run.settings
        progress = Progress(run.label, settings.max_iterations, unit="iteration")
        history: list[dict[str, float]] = []

        class Trainer(pycrfsuite.Trainer):
            def on_iteration(self, log: str, info: Mapping[str, Any]) -> None:
                iteration, loss = info["num"], info["loss"] / len(run.train)
                history.append({"step": iteration, "epoch": iteration, "loss": loss})
                progress.update(iteration, loss=f"{loss:.4g}")

        trainer = Trainer(algorithm="lbfgs", params=settings.model_dump())
        for item in run.train:
            words = [[index_of[feature] for feature in word] for word in item["features"]]
            trainer.append(words, [str(tag) for tag in item["tags"]])
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "crfsuite"))
            trainer.train(file)
            tagger = pycrfsuite.Tagger()
            with tagger.open(file):
                fitted = tagger.info()
        states, transitions = (
            {(int(left), int(right)): weight for (left, right), weight in weights.items()}
            for weights in (fitted.state_features, fitted.transitions)
        )
        return CRF.from_weights(names, states, transitions, len(tag_names(self.labels))), history
