"""The most frequent class, that of the nearest training text, or that of a lexicon's words."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any, Literal

import regex

from wxb.core.errors import WxbError
from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.tasks import baselines
from wxb.tasks.classification.models.predictor import PROBABILITY, Classifier, Prediction

NEGATION = re.compile(
    r"no|not|never|no(body|thing|ne|r)|neither|without|cannot|\w+n't|[不没沒无無]"
)
END = ".!?。！？"  # of a sentence
WORD = regex.compile(rf"[{END}]|\w+n't|{baselines.WORD.pattern}", regex.V1)
GROUPS = 20  # groups of training records with a word of the lexicon, at least


class BaselineExperiment(experiments.Baseline):
    """A class without training."""

    model: experiments.Rule[Literal["majority", "nearest", "lexicon"]]


def signed_words(text: str) -> Iterator[tuple[str, int]]:
    """The lower-case words of a text, with -1 from a negation on to the sentence's end, else 1."""
    sign = 1
    for word in WORD.findall(text.lower()):
        sign = 1 if word in END else -1 if NEGATION.fullmatch(word) else sign
        if word not in END:
            yield word, sign


class BaselineClassifier(baselines.Baseline, Classifier):
    """Predicts the shares of classes in training, or the class of the nearest text with certainty.

    A text that shares no word with training gets the shares. With a lexicon, the log odds of two
    classes are the sum of its words' weights (0 if none); those of negated words are subtracted.
    """

    def predictions(self, texts: Sequence[str], /, *, caption: str) -> list[Prediction]:
        """Predict each text by its nearest training text, the lexicon or the shares of classes."""
        nearest = self.nearest(texts, caption) if "texts" in self.model else [None] * len(texts)
        predictions = []
        for text, gold in zip(texts, nearest, strict=True):
            shares = self.model["shares"]
            if gold:
                shares = {name: float(name == gold[0]) for name in self.labels}
            elif lexicon := self.model.get("lexicon"):
                total = sum(sign * lexicon.get(word, 0) for word, sign in signed_words(text))
                odds = exp(min(total, 700))  # a larger one overflows
                pairs = zip(self.labels, (1 / (1 + odds), odds / (1 + odds)), strict=True)
                shares = {name: round(share, PROBABILITY) for name, share in pairs}
            predictions.append(Prediction(max(self.labels, key=shares.__getitem__), shares))
        return predictions


class BaselineMethod(baselines.BaselineMethod):
    """A classifier without training."""

    experiment: BaselineExperiment
    PREDICTOR = BaselineClassifier

    def values(self, records: Sequence[Record], caption: str) -> dict[str, Any]:
        """The `shares` of classes; by kind also `texts` and `gold`, or log odds as `lexicon`.

        Raises WxbError for a lexicon unless there are two classes.
        """
        counts, total = Counter(record.gold for record in records), len(records)
        shares = {name: float(f"{counts[name] / total:.{PROBABILITY}g}") for name in self.labels}
        kinds = {"nearest": super().values, "lexicon": self._lexicon}
        further = kinds.get(self.experiment.model.kind)
        return {"shares": shares, **(further(records, caption) if further else {})}

    def _lexicon(self, records: Sequence[Record], caption: str) -> dict[str, Any]:
        """`lexicon`: the log odds of the second class for each word in GROUPS or more groups.

        The odds divide the second class's records with the word, plus 1, by the first's, plus 1.
        A negated word counts for the other class. Raises WxbError unless there are two classes.
        """
        if len(self.labels) != 2:
            raise WxbError(f"a lexicon needs two classes; found {', '.join(self.labels)}")
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [1, 1])
        groups: defaultdict[str, set[str]] = defaultdict(set)
        for record in records:
            for word, sign in {*signed_words(record.input)}:
                counts[word][self.labels.index(record.gold) ^ (sign < 0)] += 1
                groups[word].add(record.group)
        words = sorted(word for word in groups if len(groups[word]) >= GROUPS)
        return {"lexicon": {w: round(log(counts[w][1] / counts[w][0]), 4) for w in words}}
