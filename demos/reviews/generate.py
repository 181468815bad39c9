"""Synthetic film reviews, good and bad, in which a word says little and its sentence all.

A review has one verdict. Words of praise and of blame stand in reviews of both kinds: they are
negated, meant ironically, or outweighed by the clause that decides.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from demos.reviews import phrases

LANGUAGES = ("en",)
FILMS = 150  # so many reviews are of one film as records need
SHARES = {"plain": 0.25, "contrast": 0.35, "concession": 0.2, "irony": 0.2}
NEGATED = 0.35  # of judgements in plain sentences
REMARKS = 0.5  # reviews with a sentence that judges nothing


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield `labelled` reviews, then `unlabelled` ones, whose `sentiment` is None.

    A record has `id`, `review`, `sentiment` (positive or negative, as many of each), `language`,
    `film` (reviews of one film belong together) and `kind`, how the review says what it says.

    Raises ValueError for negative counts and for other languages than English.
    """
    if labelled < 0 or unlabelled < 0:
        raise ValueError(f"counts must not be negative: {labelled=}, {unlabelled=}")
    if list(languages) != list(LANGUAGES):
        raise ValueError(f"unknown languages {list(languages)}, known are {list(LANGUAGES)}")
    return _records(labelled, unlabelled, seed)


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/reviews/{letter}")
        for number in range(count):
            good = number % 2 == 0
            film = rng.randrange(FILMS)
            (kind,) = rng.choices([*SHARES], [*SHARES.values()])
            yield {
                "id": f"en-{letter}-{number + 1:06}",
                "review": " ".join(_sentences(kind, good, film, rng)),
                "sentiment": ("positive" if good else "negative") if letter == "l" else None,
                "language": "en",
                "film": f"film {film}" if letter == "l" else f"film {film}, unlabelled",
                "kind": kind,
            }


def _sentences(kind: str, good: bool, film: int, rng: random.Random) -> list[str]:
    """The sentences of one review."""
    aspects = rng.sample(phrases.ASPECTS, 4)
    match kind:
        case "plain":
            said = [_judged(aspect, good, rng) for aspect in aspects[: rng.choice((1, 2, 2))]]
        case "contrast":  # the clause after the turn decides
            before = [_judged(aspect, not good, rng) for aspect in aspects[: rng.choice((1, 2))]]
            turn = rng.choice(phrases.TURNS)
            said = [*before, turn.format(_lowered(_verdict(good, rng)))]
        case "concession":  # the main clause decides, though it comes first
            though = rng.choice(phrases.CONCESSIONS)
            conceded = _lowered(_judged(aspects[0], not good, rng)).rstrip(".")
            said = [f"{_verdict(good, rng).rstrip('.')}, {though} {conceded}."]
        case _:  # irony has words of praise for what is bad; what is good is praised with feeling
            forms = phrases.SINCERE if good else phrases.IRONIC
            word = rng.choice(phrases.PRAISE)
            said = [rng.choice(forms).format(aspect=aspects[0], word=word, an=_article(word))]
            if good and rng.random() < 0.5:
                said.insert(0, _judged(aspects[1], good=False, rng=rng))
    if rng.random() < REMARKS:
        remark = rng.choice(phrases.REMARKS).format(minutes=rng.randrange(80, 190))
        said.insert(rng.randrange(len(said) + 1) if kind == "plain" else 0, remark)
    if rng.random() < 0.3:
        said.insert(0, f"{phrases.title(film)}.")
    return said


def _judged(aspect: str, good: bool, rng: random.Random) -> str:
    """A sentence on an aspect, outright or by denying the opposite."""
    if rng.random() < NEGATED:
        words, forms = (phrases.BLAME if good else phrases.PRAISE), phrases.DENIED
    else:
        words, forms = (phrases.PRAISE if good else phrases.BLAME), phrases.OUTRIGHT
    word = rng.choice(words)
    return rng.choice(forms).format(aspect=aspect, word=word, an=_article(word))


def _verdict(good: bool, rng: random.Random) -> str:
    """A sentence on the film as a whole."""
    if rng.random() < NEGATED:
        word = rng.choice(phrases.BLAME if good else phrases.PRAISE)
        return rng.choice(phrases.DENIED_VERDICTS).format(word=word, an=_article(word))
    word = rng.choice(phrases.PRAISE if good else phrases.BLAME)
    return rng.choice(phrases.VERDICTS).format(word=word, an=_article(word))


def _lowered(sentence: str) -> str:
    """As a clause; "I" stays as it is."""
    first, _, rest = sentence.partition(" ")
    return sentence if first in ("I", "I'd") else f"{first[0].lower()}{first[1:]} {rest}"


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
