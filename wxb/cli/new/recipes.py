"""What `study.yaml` of a task says besides blocks: the purpose of each row, epochs and advice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt

from wxb.cli.new.trial import Trial
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params.corpora import Corpus
from wxb.core.params.section import Section

# A Chinese or Japanese character, a word of another language, or a sign.
WORD = re.compile(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+|[^\w\s]")


class Epochs(Section):
    """The number of epochs that train on `examples` records in all, from `least` to `most`."""

    examples: PositiveInt
    least: PositiveInt
    most: PositiveInt

    def number(self, records: int) -> int:
        """The number of epochs for some training records."""
        return min(max(self.examples // max(1, records), self.least), self.most)


class Row(Section):
    """An experiment of a first study: what it is for, and its epochs if records decide them.

    It is left out if a count of the corpus is above its number in `at_most`, below that in
    `at_least`, or unknown.
    """

    purpose: str
    epochs: Epochs | None = None
    at_most: dict[str, float] = Field(default={})
    at_least: dict[str, float] = Field(default={})

    def suits(self, counts: Mapping[str, float]) -> bool:
        """Whether the counts of a corpus are within the bounds."""
        return all(counts.get(key, inf) <= most for key, most in self.at_most.items()) and all(
            counts.get(key, 0) >= least for key, least in self.at_least.items()
        )


class Advice(Section):
    """What to expect if a count of the corpus, `records` or `hours`, is below a number.

    With `only_without_checkpoint`, only if no experiment starts from a checkpoint.
    """

    count: str
    below: float
    text: str
    only_without_checkpoint: bool = False


class Recipe(Section):
    """The keys `rows`, by experiment, and `advice` of a template."""

    rows: dict[str, Row]
    advice: list[Advice] = Field(default=[])

    def advise(self, size: Size, *, has_checkpoint: bool = False) -> Iterator[str]:
        """The advice for a corpus, with the count that it is based on."""
        for each in self.advice:
            count = size.counts.get(each.count)
            if each.only_without_checkpoint and has_checkpoint:
                continue
            if count is not None and count < each.below:
                yield f"only {count:,g} {each.count} to train on: {each.text}"


class Size(NamedTuple):
    """Numbers of labelled records for training and validation, further counts, and text length."""

    train: int
    valid: int
    counts: Mapping[str, float]
    words: float  # mean number in a text


def measure(name: str, corpus: Corpus, trial: Trial | None) -> Size | None:
    """The size of a corpus from its profile, else from the records that were read; None if neither.

    `trial` must have read all records.
    """
    profile = paths.clean(name) / paths.PROFILE
    words = 0.0
    if trial and trial.texts:
        words = sum(len(WORD.findall(text)) for text in trial.texts) / len(trial.texts)
    if profile.is_file():
        splits = read_json(profile)["splits"]
        train, valid = (splits[split]["labelled"] for split in ("train", "valid"))
    elif trial:
        split = corpus.split
        rest, shares = trial.splits[None], [split.test or 0, split.valid or 0]
        shares += [share for _, share in split.held_out_fields.values()]
        train = trial.splits["train"] if split.files else round(rest * (1 - sum(shares)))
        valid = trial.splits["valid"] if split.files else round(rest * shares[1])
    else:
        return None
    counts: dict[str, float] = {"records": train}
    if trial and (transcripts := trial.transcripts):
        counts |= {"transcripts": transcripts, "repetitions": train / transcripts}
    if trial and (hours := trial.counts.get("hours")) is not None:
        counts["hours"] = hours * train / max(1, trial.splits.total())
    return Size(train, valid, counts, words)


def recipe(content: Mapping[str, Any]) -> Recipe:
    """The recipe in the content of a template."""
    return Recipe.model_validate(
        {key: content[key] for key in Recipe.model_fields if key in content}
    )
