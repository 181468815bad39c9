"""Generates good and bad film reviews, in which sentences decide and single words say little.

A review has one verdict. Words of praise and of blame occur in both classes: they are negated,
ironic, or outweighed by the main clause.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from demos.reviews import phrases

LANGUAGES = ("en",)
FILMS = 150  # different films
SHARES = {"plain": 0.25, "contrast": 0.35, "concession": 0.2, "irony": 0.2}
NEGATED = 0.35  # share of judgements that deny the opposite
REMARKS = 0.5  # share of reviews with a neutral sentence


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` reviews, then `unlabelled` ones, whose `sentiment` is None.

    A record has `id`, `review`, `sentiment` (positive or negative, as many of each), `language`,
    `film` (the same for reviews of one film) and `kind` (how the review is phrased).

    Raises ValueError for negative counts and for languages other than English.
    """
    if labelled < 0 or unlabelled < 0:
        raise ValueError(f"counts must not be negative: {labelled=}, {unlabelled=}")
    if list(languages) != list(LANGUAGES):
        raise ValueError(f"unknown languages {list(languages)}, known are {list(LANGUAGES)}")
    return _records(labelled, unlabelled, seed)


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/reviews/{letter}")
        for index in range(count):
            is_good = index % 2 == 0
            film = rng.randrange(FILMS)
            (kind,) = rng.choices([*SHARES], [*SHARES.values()])
            yield {
                "id": f"en-{letter}-{index + 1:06}",
                "review": " ".join(_sentences(kind, is_good, film, rng)),
                "sentiment": ("positive" if is_good else "negative") if letter == "l" else None,
                "language": "en",
                "film": f"film {film}" if letter == "l" else f"film {film}, unlabelled",
                "kind": kind,
            }


def _sentences(kind: str, is_good: bool, film: int, rng: random.Random) -> list[str]:
    """The sentences of one review."""
    aspects = rng.sample(phrases.ASPECTS, 4)
    match kind:
        case "plain":
            count = rng.choice((1, 2, 2))
            sentences = [_judgement(aspect, is_good, rng) for aspect in aspects[:count]]
        case "contrast":  # the clause after the turn decides
            count = rng.choice((1, 2))
            sentences = [_judgement(aspect, not is_good, rng) for aspect in aspects[:count]]
            turn = rng.choice(phrases.TURNS)
            sentences.append(turn.format(_clause(_verdict(is_good, rng))))
        case "concession":  # the main clause decides, although it comes first
            conjunction = rng.choice(phrases.CONCESSIONS)
            concession = _clause(_judgement(aspects[0], not is_good, rng)).rstrip(".")
            sentences = [f"{_verdict(is_good, rng).rstrip('.')}, {conjunction} {concession}."]
        case _:  # irony: words of praise in both classes
            forms = phrases.SINCERE if is_good else phrases.IRONIC
            word = rng.choice(phrases.PRAISE)
            sentences = [rng.choice(forms).format(aspect=aspects[0], word=word, an=_article(word))]
            if is_good and rng.random() < 0.5:
                sentences.insert(0, _judgement(aspects[1], is_good=False, rng=rng))
    if rng.random() < REMARKS:
        remark = rng.choice(phrases.REMARKS).format(minutes=rng.randrange(80, 190))
        sentences.insert(rng.randrange(len(sentences) + 1) if kind == "plain" else 0, remark)
    if rng.random() < 0.3:
        sentences.insert(0, f"{phrases.title(film)}.")
    return sentences


def _judgement(aspect: str, is_good: bool, rng: random.Random) -> str:
    """A sentence on an aspect, which affirms a judgement or denies the opposite."""
    if rng.random() < NEGATED:
        words, forms = (phrases.BLAME if is_good else phrases.PRAISE), phrases.DENIALS
    else:
        words, forms = (phrases.PRAISE if is_good else phrases.BLAME), phrases.AFFIRMATIONS
    word = rng.choice(words)
    return rng.choice(forms).format(aspect=aspect, word=word, an=_article(word))


def _verdict(is_good: bool, rng: random.Random) -> str:
    """A sentence on the film as a whole."""
    if rng.random() < NEGATED:
        word = rng.choice(phrases.BLAME if is_good else phrases.PRAISE)
        return rng.choice(phrases.VERDICT_DENIALS).format(word=word, an=_article(word))
    word = rng.choice(phrases.PRAISE if is_good else phrases.BLAME)
    return rng.choice(phrases.VERDICTS).format(word=word, an=_article(word))


def _clause(sentence: str) -> str:
    """A sentence with a lower-case first letter, unless it begins with "I"."""
    first, _, rest = sentence.partition(" ")
    return sentence if first in ("I", "I'd") else f"{first[0].lower()}{first[1:]} {rest}"


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
