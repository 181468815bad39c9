"""Chinese sentences with their English translations, drawn from a grammar of both languages.

Each phrase is made in both languages at once. They differ where the languages do: in the order of
words, in measure words, plurals, tenses and questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from demos.phrases.grammar import sentence

LANGUAGES = ("en", "zh")
CONTRACTED = {" did not ": " didn't ", " does not ": " doesn't ", " do not ": " don't "}
CONTRACTED |= {" will not ": " won't "}


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield `labelled` different pairs: `id`, `chinese`, `english`, and what they were made of.

    `combination` is the verb and its object, `construction` the kind of sentence. Of one source
    in ten that can be put otherwise there are two pairs, with another reference each.

    Raises ValueError for unlabelled records, and for other languages.
    """
    if unlabelled:
        raise ValueError(f"pairs are labelled all; found unlabelled {unlabelled}, expected 0")
    if sorted(languages) != [*LANGUAGES]:
        raise ValueError(f"the grammar has the languages zh and en; found {list(languages)}")
    return _pairs(labelled, random.Random(seed))


def _pairs(count: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    number = 0
    while number < count:
        made = sentence(rng)
        again = rng.random() < 0.1
        if made.chinese in seen:
            continue
        seen.add(made.chinese)
        references = [made.english]
        if again and (other := _contracted(made.english)) != made.english:
            references.append(other)
        for english in references[: count - number]:
            number += 1
            yield {"id": f"pair-{number:06}", **made._asdict(), "english": english}


def _contracted(english: str) -> str:
    for long, short in CONTRACTED.items():
        english = english.replace(long, short)
    return english
