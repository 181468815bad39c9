"""Generates Chinese sentences with English translations from a grammar of both languages.

Each phrase is generated in both languages at once. The languages differ in word order, measure
words, plurals, tenses and questions.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from demos.phrases.grammar import sentence

LANGUAGES = ("en", "zh")


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` different pairs.

    A record has `id`, `chinese`, `english`, `combination` (the verb and its object) and
    `construction` (the kind of sentence). One in ten sources with a contracted translation has a
    second pair with it.

    Raises ValueError for unlabelled records, and for languages other than Chinese and English.
    """
    if unlabelled:
        raise ValueError(f"all pairs are labelled; set unlabelled to 0, found {unlabelled}")
    if sorted(languages) != [*LANGUAGES]:
        raise ValueError(f"unknown languages: the grammar has zh and en, found {list(languages)}")
    return _pairs(labelled, random.Random(seed))


def _pairs(count: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    number = 0
    while number < count:
        pair = sentence(rng)
        has_second_reference = rng.random() < 0.1
        if pair.chinese in seen:
            continue
        seen.add(pair.chinese)
        references = [pair.english]
        if has_second_reference and (contracted := _contract(pair.english)) != pair.english:
            references.append(contracted)
        for english in references[: count - number]:
            number += 1
            yield {"id": f"pair-{number:06}", **pair._asdict(), "english": english}


def _contract(english: str) -> str:
    """An English sentence with contractions."""
    return re.sub(r"\b(did|does|do) not\b", r"\1n't", english).replace("will not", "won't")
