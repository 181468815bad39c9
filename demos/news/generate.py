"""Generates fake and real news with leakage: each class comes mostly from one publisher.

The publisher is easy to recognize: the agency begins with a dateline, the tabloid ends with a
credit, and each has a style. A few small publishers of both classes have neither, so that a model
that recognizes publishers fails on them. In all articles, the claim decides whether it is fake.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from demos.news import phrases

LANGUAGES = ("en",)
SMALL = 0.14  # share of articles by small publishers
PLAIN = 0.3  # share of articles by large publishers in a style that both have
REPEATED = 0.1  # share of articles that repeat the last claim of their class


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` articles, then `unlabelled` ones, whose `label` is None.

    A record has `id`, `title`, `text`, `label` (fake or real), `language`, `source` (the publisher)
    and `story` (the same for articles of one claim and publisher).

    Raises ValueError for negative counts and for languages other than English.
    """
    if labelled < 0 or unlabelled < 0:
        raise ValueError(f"counts must not be negative: {labelled=}, {unlabelled=}")
    if list(languages) != list(LANGUAGES):
        raise ValueError(f"unknown languages {list(languages)}, known are {list(LANGUAGES)}")
    return _records(labelled, unlabelled, seed)


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/news/{letter}")
        last_claims: dict[bool, str] = {}  # by class
        for index in range(count):
            is_fake = rng.random() < 0.5
            if is_fake not in last_claims or rng.random() >= REPEATED:
                last_claims[is_fake] = _claim(is_fake, rng)
            claim = last_claims[is_fake]
            large = phrases.LARGE_FAKE if is_fake else phrases.LARGE_REAL
            small = phrases.SMALL_FAKE if is_fake else phrases.SMALL_REAL
            publisher = rng.choice(small) if rng.random() < SMALL else large
            yield {
                "id": f"en-{letter}-{index + 1:06}",
                "title": rng.choice(publisher.titles).format(
                    claim=claim, Claim=_capitalized(claim)
                ),
                "text": _text(publisher, claim, rng),
                "label": ("fake" if is_fake else "real") if letter == "l" else None,
                "language": "en",
                "source": publisher.name,
                "story": f"{claim} ({publisher.name})",
            }


def _claim(is_fake: bool, rng: random.Random) -> str:
    """A claim that shows its class, or with the probability `phrases.NEUTRAL` does not."""
    deeds: tuple[str, ...] = phrases.FAKE_DEEDS if is_fake else phrases.REAL_DEEDS
    if rng.random() < phrases.NEUTRAL:
        deeds = phrases.EITHER_DEEDS
    deed = rng.choice(deeds).format(
        thing=rng.choice(phrases.THINGS),
        place=rng.choice(phrases.PLACES),
        number=rng.randrange(3, 90),
    )
    return f"{rng.choice(phrases.ACTORS)} {deed}"


def _text(publisher: phrases.Publisher, claim: str, rng: random.Random) -> str:
    """An article: an opening with the claim, one or two sentences, and an ending."""
    values = {
        "claim": claim,
        "Claim": _capitalized(claim),
        "city": rng.choice(phrases.PLACES).upper(),
        "day": rng.choice(phrases.DAYS),
        "number": rng.randrange(2, 60),
        "thing": rng.choice(phrases.THINGS),
    }
    large = publisher in (phrases.LARGE_REAL, phrases.LARGE_FAKE)
    style = phrases.ANY if large and rng.random() < PLAIN else publisher
    middle = rng.sample(style.sentences, rng.choice((1, 2)))
    parts = [rng.choice(style.openings), *middle, rng.choice(style.endings)]
    return " ".join(filter(None, (part.format(**values) for part in parts)))


def _capitalized(claim: str) -> str:
    return claim[0].upper() + claim[1:]
