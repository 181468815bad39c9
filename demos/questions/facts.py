"""The facts that questions ask about, by kind of question."""

import random
import zlib
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

LANGUAGES = ("en", "zh")
UNITS = {  # kinds that convert a unit, and their factors
    "metres": 1000,
    "centimetres": 100,
    "millimetres": 10,
    "kilograms": 1000,
    "grams": 1000,
    "millilitres": 1000,
    "months": 12,
    "days": 7,
    "hours": 24,
    "minutes": 60,
    "seconds": 60,
}
# Kinds whose answers follow neither from the question nor from a rule.
RECALL = ("opposite", "category", "weekday-after", "weekday-before", "month-after", "month-before")
# The kinds of question by the format of their answers; see wxb/tasks/chat/record/checking.py.
FORMATS = {
    "number": ("plus", "minus", "next", "previous", "larger", "smaller", "many", *UNITS),
    "date": ("date-after", "date-before"),
    "letters": ("spelling", "first-letter", "last-letter"),
    "words 3": ("three-words",),
    "text": (
        *("first-word", "second-word", "third-word", "last-word"),
        *("who", "where", "what"),
        *RECALL,
    ),
}
KINDS = {kind: format_ for format_, kinds in FORMATS.items() for kind in kinds}
WORDS = read_yaml(Path(__file__).with_name("words.yaml"))
MOST = 60  # facts of a kind in a language
SUMMANDS, NUMBERS = 30, 160  # upper bounds of numbers
STEPS = range(2, 9)  # days or months before or after
FIRST_DAY = date(2026, 1, 1)

Pool = list[tuple[Any, dict[str, Any]]]  # answers, each with the values for a wording


class Fact(NamedTuple):
    """A fact: its language, kind of question, the values for a wording, and the answer."""

    language: str
    kind: str
    slots: Mapping[str, Any]
    answer: str

    @property
    def key(self) -> str:
        """Its unique name."""
        return " ".join([self.kind, *map(str, self.slots.values())])

    @property
    def use(self) -> str:
        """How texts for pretraining use the fact: `stated`, `faq`, or `unseen` (not at all).

        A tenth of the facts occurs in `faq` texts only, which are questions with answers; no
        conversation asks about these. A tenth is unseen, except for kinds of RECALL.
        """
        remainder = zlib.crc32(" ".join(map(str, self.slots.values())).encode()) % 10
        if remainder == 0 and self.kind not in RECALL:
            return "unseen"
        return "faq" if remainder == 1 else "stated"


@cache
def facts(language: str) -> list[Fact]:
    """Up to MOST facts of each kind, the same for every seed; no language shares one. Cached."""
    pools = {kind: pool[LANGUAGES.index(language) :: 2] for kind, pool in _shared_pools().items()}
    pools |= {kind: _shuffled(kind, pool) for kind, pool in _own_pools(WORDS[language]).items()}
    return [
        Fact(language, kind, slots, str(answer))
        for kind, pool in pools.items()
        for answer, slots in pool[:MOST]
    ]


@cache
def _shared_pools() -> dict[str, Pool]:
    """Facts about numbers, dates and English words, which are the same in every language."""
    sums = [(a, b) for a in range(SUMMANDS) for b in range(a + 1)]
    pairs = [(a, b) if b % 4 < 2 else (b, a) for a in range(NUMBERS) for b in range(a)]
    steps = [(FIRST_DAY + timedelta(days=i), STEPS[i % len(STEPS)]) for i in range(365)]
    dates = _both_ways([(day, n, day + timedelta(days=n)) for day, n in steps])
    spelled = _english_words()
    pools: dict[str, Pool] = {
        "plus": [(a + b, {"a": a, "b": b}) for a, b in sums[::2]],
        "minus": [(a, {"a": a + b, "b": b}) for a, b in sums[1::2]],
        "next": [(a + 1, {"a": a}) for a in range(0, 2 * NUMBERS, 2)],
        "previous": [(a, {"a": a + 1}) for a in range(1, 2 * NUMBERS, 2)],
        "larger": [(max(pair), dict(zip("ab", pair, strict=True))) for pair in pairs[::2]],
        "smaller": [(min(pair), dict(zip("ab", pair, strict=True))) for pair in pairs[1::2]],
        **{
            kind: [(a * factor, {"a": a}) for a in range(2, NUMBERS)]
            for kind, factor in UNITS.items()
        },
        "date-after": dates[0],
        "date-before": dates[1],
        "spelling": [("-".join(word), {"a": word}) for word in spelled[::3]],
        "first-letter": [(word[0], {"a": word}) for word in spelled[1::3]],
        "last-letter": [(word[-1], {"a": word}) for word in spelled[2::3]],
        "first-word": [(row[0], {"a": " ".join(row)}) for row in _rows(1)],
        "second-word": [(row[1], {"a": " ".join(row)}) for row in _rows(2)],
        "third-word": [(row[2], {"a": " ".join(row)}) for row in _rows(3)],
        "last-word": [(row[-1], {"a": " ".join(row)}) for row in _rows(4)],
        "three-words": [(" ".join(row[:3]), {"a": " ".join(row)}) for row in _rows(5)],
    }
    return {kind: _shuffled(kind, pool) for kind, pool in pools.items()}


def _own_pools(words: Mapping[str, Any]) -> dict[str, Pool]:
    """Facts about the words and names of a language, and about passages with them."""
    weekdays, months = (_both_ways(_steps(words[cycle])) for cycle in ("weekdays", "months"))
    categories = words["categories"]
    names = dict(zip("bc", categories, strict=True))
    asked = {"who": "name", "where": "place", "many": "count", "what": "thing"}
    purchases = _purchases(words)
    return {
        **{
            kind: [(p[field], p) for p in purchases[index :: len(asked)]]
            for index, (kind, field) in enumerate(asked.items())
        },
        "opposite": [(y, {"a": x}) for x, y in words["opposites"]],
        "category": [(name, {"a": a, **names}) for name in categories for a in categories[name]],
        "weekday-after": weekdays[0],
        "weekday-before": weekdays[1],
        "month-after": months[0],
        "month-before": months[1],
    }


def _purchases(words: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Random purchases, no two the same: the buyer's name, the count, the thing and the place."""
    rng = random.Random(0)
    drawn = [
        {
            "name": rng.choice(words["names"]),
            "count": rng.randint(2, 9),
            "thing": rng.choice(words["things"]),
            "place": rng.choice(words["places"]),
        }
        for _ in range(5 * MOST)
    ]
    unique = {tuple(purchase.values()): purchase for purchase in drawn}.values()
    measures = words["measures"]  # words between count and thing
    return [{**purchase, "measure": measures.get(purchase["thing"], "")} for purchase in unique]


def _steps(cycle: list[str]) -> list[tuple[str, int, str]]:
    """Each member of a cycle, a number of steps, and the member so many steps later."""
    return [
        (start, n, cycle[(index + n) % len(cycle)])
        for index, start in enumerate(cycle)
        for n in STEPS
    ]


def _both_ways(steps: Sequence[tuple[Any, int, Any]]) -> tuple[Pool, Pool]:
    """Facts about the ends of half of the steps, and about the starts of the other half.

    So no fact is another in reverse.
    """
    after = [(end, {"a": start, "n": n}) for start, n, end in steps[::2]]
    before = [(start, {"a": end, "n": n}) for start, n, end in steps[1::2]]
    return after, before


def _english_words() -> list[str]:
    words = WORDS["en"]
    lists = [words[name] for name in ("spelling", "names", "things", "places")]
    lists += [*words["categories"].values(), *words["opposites"]]
    return list(dict.fromkeys(chain.from_iterable(lists)))


def _rows(seed: int) -> list[list[str]]:
    """Random rows of five English words."""
    rng = random.Random(seed)
    return [rng.sample(_english_words(), 5) for _ in range(2 * MOST)]


def _shuffled(kind: str, pool: Pool) -> Pool:
    return random.Random(kind).sample(pool, len(pool))
