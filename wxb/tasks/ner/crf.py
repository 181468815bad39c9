"""Named entities by a linear-chain conditional random field (Lafferty et al. 2001).

The log-score of tags is the sum of a weight for each pair of a word's feature and tag, and of one
for each pair of adjacent tags. CRFsuite fits the weights; the rest is here, in plain arrays.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from wxb.core.errors import WxbError
from wxb.core.params import experiments
from wxb.core.params.section import Section
from wxb.core.progress import Progress, track
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import Encoded, read_columns, read_encoded
from wxb.tasks.methods import Alignment, Chunks, FittedModel, History, LazyItems, Method, Network
from wxb.tasks.ner.models.bio import OUTSIDE, align, decode_tags, tag_names
from wxb.tasks.ner.models.predictor import ScoredSpan, SpanFinder
from wxb.tasks.ner.models.windowed import count_statuses
from wxb.tasks.ner.models.words import shape
from wxb.tasks.ner.record import Span

Floats = NDArray[np.float64]
EDGE = ""  # the word before the first and after the last


class CrfModel(Section):
    """The features of a word: those of the words around it, and its first and last letters."""

    window: Annotated[int, Field(ge=0)] = 1  # words on either side
    affixes: Annotated[int, Field(ge=0)] = 4  # most letters of a prefix or suffix


class CrfTraining(Section):
    """Penalties and iterations of L-BFGS, with the names of CRFsuite."""

    c1: Annotated[float, Field(ge=0)] = 0.02  # of the sum of absolute weights
    c2: Annotated[float, Field(ge=0)] = 0.01  # of the sum of squared weights
    max_iterations: PositiveInt = 100


class CrfExperiment(experiments.Untuned):
    """A conditional random field on features of words."""

    model: CrfModel = CrfModel()
    training: CrfTraining = CrfTraining()


def word_features(words: Sequence[str], settings: CrfModel) -> list[list[str]]:
    """The features of each word of a text.

    They are a bias, the lower-case form and shape of the word and of `window` words on either side
    (EDGE outside the text), pairs of adjacent forms, and shorter prefixes and suffixes of its form.
    """
    window = settings.window
    offsets, padding = range(-window, window + 1), [EDGE] * window
    lower = [*padding, *(word.lower() for word in words), *padding]
    shapes = [*padding, *map(shape, words), *padding]
    rows = []
    for index, word in enumerate(lower[window : window + len(words)], start=window):
        lengths = range(1, min(settings.affixes, len(word) - 1) + 1)
        rows.append(
            [
                "bias",
                *(f"word{offset}={lower[index + offset]}" for offset in offsets),
                *(f"shape{offset}={shapes[index + offset]}" for offset in offsets),
                *(f"pair{o}={lower[index + o]} {lower[index + o + 1]}" for o in offsets[:-1]),
                *(f"prefix={word[:length]}" for length in lengths),
                *(f"suffix={word[-length:]}" for length in lengths),
            ]
        )
    return rows


@dataclass
class CRF(FittedModel):
    """A CRF of K tags and F features. Tags follow each other as in `wxb.tasks.ner.models.bio`."""

    infinite = ("transitions", "first")

    features: Sequence[str]  # (F,)
    weights: NDArray[np.float32]  # (F, K)
    transitions: NDArray[np.float32]  # (K, K), from the row's tag; -inf if it cannot follow
    first: NDArray[np.float32]  # (K,), 0, or -inf if a text cannot begin with the tag

    @classmethod
    def from_weights(
        cls,
        features: Sequence[str],
        states: Mapping[tuple[int, int], float],
        transitions: Mapping[tuple[int, int], float],
        tags: int,
    ) -> Self:
        """A CRF from weights by (feature, tag) and by (tag, next tag); drops features without one.

        A tag without a weight is never predicted. `I` follows only `B` or `I` of its type.
        """
        weights = np.zeros((len(features), tags), np.float32)
        for key, weight in states.items():
            weights[key] = weight
        between = np.zeros((tags, tags), np.float32)
        for key, weight in transitions.items():
            between[key] = weight
        tag = np.arange(tags)
        is_known = np.isin(tag, [tag for _, tag in states])
        is_inside = (tag > 0) & (tag % 2 == 0)
        continues = (tag[:, None] == tag) | (tag[:, None] == tag - 1)
        between[:, ~is_known] = between[is_inside & ~continues] = -np.inf
        first = np.where(is_known & ~is_inside, 0, -np.inf).astype(np.float32)
        used = np.flatnonzero(weights.any(axis=1)).tolist()
        return cls([features[index] for index in used], weights[used], between, first)

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return {feature: index for index, feature in enumerate(self.features)}

    @cached_property
    def _factors(self) -> Floats:
        """exp(transitions), 0 for pairs that cannot follow."""
        return np.exp(self.transitions.astype(np.float64))

    def scores(self, rows: Iterable[Iterable[str]]) -> Floats:
        """The sums (T, K) of the weights of the features of T words, 0 for unknown features."""
        known = [[self._index_of[f] for f in row if f in self._index_of] for row in rows]
        sums = [self.weights[indices].sum(axis=0, dtype=np.float64) for indices in known]
        return np.array(sums).reshape(-1, len(self.first))

    def best_tags(self, scores: Floats) -> NDArray[np.int64]:
        """The tags (T,) with the highest total score (Viterbi 1967), for scores (T, K), T > 0."""
        total = scores[0] + self.first
        previous = []  # the best tag before each tag
        for row in scores[1:]:
            paths = total[:, None] + self.transitions  # (K, K)
            previous.append(paths.argmax(axis=0))
            total = paths.max(axis=0) + row
        tags = [int(total.argmax())]
        for best in reversed(previous):
            tags.append(int(best[tags[-1]]))
        return np.array(tags[::-1])

    def probabilities(
        self, scores: Floats, tags: NDArray[np.int64], spans: Iterable[tuple[int, int, int]]
    ) -> list[float]:
        """The marginal probability that each span has its tags and ends there, for scores (T, K).

        `spans` of `tags` (T,) are (first token, one past the last, type), as `decode_tags` yields.
        Forward and backward sums are scaled to 1 at each word (Rabiner 1989).
        """
        emitted = np.exp(scores - scores.max(axis=1, keepdims=True))  # (T, K)
        forward, scales = np.empty_like(emitted), np.empty(len(emitted))
        incoming = np.exp(self.first.astype(np.float64))
        for word, row in enumerate(emitted):
            forward[word] = incoming * row
            scales[word] = forward[word].sum()
            forward[word] /= scales[word]
            incoming = forward[word] @ self._factors
        emitted /= scales[:, None]
        after = np.ones_like(emitted)  # (T, K): of the words from the next one on, by its tag
        backward = np.ones(len(self.first))
        for word in range(len(emitted) - 1, 0, -1):
            after[word - 1] = emitted[word] * backward
            backward = self._factors @ after[word - 1]
        results = []
        for start, stop, kind in spans:
            probability = forward[start, tags[start]]
            for word in range(start + 1, stop):
                probability *= self._factors[tags[word - 1], tags[word]] * emitted[word, tags[word]]
            if stop < len(tags):
                leaving = self._factors[tags[stop - 1]].copy()
                leaving[2 + 2 * kind] = 0  # the span would go on
                probability *= leaving @ after[stop - 1]
            results.append(min(1.0, float(probability)))
        return results

    def size(self, *, trainable: bool = False) -> int:
        """Number of nonzero weights of features and possible transitions; all are trainable."""
        finite = np.isfinite(self.transitions) & (self.transitions != 0)
        return int(np.count_nonzero(self.weights) + finite.sum())

    @classmethod
    def from_pretrained(cls, folder: Path) -> Self:
        """As for other models; WxbError also if features and weights differ in number."""
        model = super().from_pretrained(folder)
        if len(model.features) != len(model.weights):
            file = folder / "features.json"
            raise WxbError(f"{file}: lacks features of the weights; train it again")
        return model


def _words(text: str, encoded: Encoded, index: int) -> list[str]:
    """The words of a text, which are the tokens of the encoded text at `index`."""
    tokens = slice(*encoded.row_splits[index : index + 2])
    edges = zip(encoded.starts[tokens], encoded.ends[tokens], strict=True)
    return [text[start:end] for start, end in edges]


class CrfRecognizer(SpanFinder):
    """A trained CRF. The score of a span is its probability."""

    def scored_spans(self, texts: Sequence[str], /, *, caption: str) -> list[list[ScoredSpan]]:
        """The spans of the best tags of each text, sorted and disjoint; shows progress."""
        settings = CrfModel(**{key: self.settings[key] for key in CrfModel.model_fields})
        encoded = tokenizers.encode(self.tokenizer, texts)
        results: list[list[ScoredSpan]] = []
        for index, text in enumerate(track(texts, caption, len(texts), unit="text")):
            results.append([])
            if not (words := _words(text, encoded, index)):
                continue
            scores = self.model.scores(word_features(words, settings))
            tags = self.model.best_tags(scores)
            spans = [*decode_tags(tags.tolist())]
            probabilities = self.model.probabilities(scores, tags, spans)
            starts, ends = (edges[encoded.row_splits[index] :] for edges in encoded[1:3])
            for (first, last, kind), probability in zip(spans, probabilities, strict=True):
                span = Span(int(starts[first]), int(ends[last - 1]), self.types[kind])
                results[-1].append(ScoredSpan(span, probability))
        return results

    model_metrics = SpanFinder.seqeval  # on words


class CrfMethod(Method):
    """A CRF over the words of a tokenizer of kind `words`, without its vocabulary."""

    experiment: CrfExperiment
    PREDICTOR = CrfRecognizer
    MODEL = CRF
    encode = Network.encode

    def targets(self, features: Path, chunks: Chunks) -> Alignment:
        """The `tags` of all words, where each text begins, and counts of gold spans by status."""
        encoded = read_encoded(features)
        gold = [record.gold for records in chunks for record in records]
        targets, statuses = align(encoded, None, gold, self.labels)
        return {"tags": targets.tags.clip(OUTSIDE)}, encoded.row_splits, count_statuses(statuses)

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> LazyItems:
        """One item per text with words: their `features` and `tags`."""
        encoded, (columns, _) = read_encoded(features), read_columns(targets, ["tags"])
        texts, settings = [record.input for record in records], self.experiment.model

        def item(index: int) -> dict[str, Any]:
            tags = columns["tags"][slice(*encoded.row_splits[index : index + 2])]
            words = _words(texts[index], encoded, index)
            return {"features": word_features(words, settings), "tags": tags}

        return LazyItems(np.flatnonzero(np.diff(encoded.row_splits)).tolist(), item)

    def train(
        self, backbone: Path, train: Any, valid: Any, *, seed: int, checkpoints: Path, caption: str
    ) -> tuple[CRF, History]:
        """The CRF with the largest penalized likelihood, and the loss per text by iteration.

        Uses only `train` and `caption`. Raises WxbError if all words of `train` have the same tag.
        """
        import pycrfsuite  # only training needs it

        if len({tag for item in train for tag in item["tags"].tolist()}) < 2:
            raise WxbError("a CRF needs training records with words in spans and outside of spans")
        names = sorted({f for item in train for word in item["features"] for f in word})
        index_of = {name: str(index) for index, name in enumerate(names)}
        settings = self.experiment.training
        progress = Progress(caption, settings.max_iterations, unit="iteration")
        history: History = []

        class Trainer(pycrfsuite.Trainer):
            def on_iteration(self, log: str, info: Mapping[str, Any]) -> None:
                iteration, loss = info["num"], info["loss"] / len(train)
                history.append({"step": iteration, "epoch": iteration, "loss": loss})
                progress.update(iteration, loss=f"{loss:.4g}")

        trainer = Trainer(algorithm="lbfgs", params=settings.model_dump())
        for item in train:
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

    def predictor_settings(self, targets: Path) -> dict[str, Any]:
        """The `types` of spans, and the `model` settings, which choose the features of words."""
        return {"types": list(self.labels), **self.experiment.model.model_dump()}
