"""Synthetic news, fake and real, as collections of it are: each kind from one large publisher.

Who writes is easily told: the agency begins with a dateline, the tabloid ends with a credit, and
both have a style besides. A few small publishers of both kinds have neither, so that a model that
learned who writes fails on them. What makes an article fake is the same everywhere: its claim.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from demos.news import phrases

LANGUAGES = ("en",)
OTHERS = 0.14  # of records, by small publishers
PLAIN = 0.3  # of articles by the large publishers, in a style that both have
TOLD_AGAIN = 0.1  # stories that are told twice, with other words around


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield `labelled` articles, then `unlabelled` ones, whose `label` is None.

    A record has `id`, `title`, `text`, `label` (fake or real), `language`, `source` (the publisher)
    and `story` (articles of one story belong together).

    Raises ValueError for negative counts and for other languages than English.
    """
    if labelled < 0 or unlabelled < 0:
        raise ValueError(f"counts must not be negative: {labelled=}, {unlabelled=}")
    if list(languages) != list(LANGUAGES):
        raise ValueError(f"unknown languages {list(languages)}, known are {list(LANGUAGES)}")
    return _records(labelled, unlabelled, seed)


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/news/{letter}")
        told: dict[bool, str] = {}  # the last claim of each kind
        for number in range(count):
            fake = rng.random() < 0.5
            if fake not in told or rng.random() >= TOLD_AGAIN:
                told[fake] = _claim(fake, rng)
            claim = told[fake]
            large = phrases.LARGE_FAKE if fake else phrases.LARGE_REAL
            small = phrases.SMALL_FAKE if fake else phrases.SMALL_REAL
            publisher = rng.choice(small) if rng.random() < OTHERS else large
            yield {
                "id": f"en-{letter}-{number + 1:06}",
                "title": rng.choice(publisher.titles).format(claim=claim, Claim=_capital(claim)),
                "text": _text(publisher, claim, rng),
                "label": ("fake" if fake else "real") if letter == "l" else None,
                "language": "en",
                "source": publisher.name,
                "story": f"{claim} ({publisher.name})",
            }


def _claim(fake: bool, rng: random.Random) -> str:
    deeds: tuple[str, ...] = phrases.FAKE_DEEDS if fake else phrases.REAL_DEEDS
    if rng.random() < phrases.UNTOLD:
        deeds = phrases.EITHER_DEEDS
    deed = rng.choice(deeds).format(
        thing=rng.choice(phrases.THINGS),
        place=rng.choice(phrases.PLACES),
        number=rng.randrange(3, 90),
    )
    return f"{rng.choice(phrases.ACTORS)} {deed}"


def _text(publisher: phrases.Publisher, claim: str, rng: random.Random) -> str:
    filled = {
        "claim": claim,
        "Claim": _capital(claim),
        "city": rng.choice(phrases.PLACES).upper(),
        "day": rng.choice(phrases.DAYS),
        "number": rng.randrange(2, 60),
        "thing": rng.choice(phrases.THINGS),
    }
    large = publisher in (phrases.LARGE_REAL, phrases.LARGE_FAKE)
    style = phrases.ANY if large and rng.random() < PLAIN else publisher
    more = rng.sample(style.sentences, rng.choice((1, 2)))
    parts = [rng.choice(style.openings), *more, rng.choice(style.endings)]
    return " ".join(filter(None, (part.format(**filled) for part in parts)))


def _capital(claim: str) -> str:
    return claim[0].upper() + claim[1:]
