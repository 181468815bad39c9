"""The facts that questions ask about, by kind of question."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

# The format of the answer by kind of question; see wxb/tasks/chat/record/checking.py.
KINDS = {
    "addition": "number",
    "subtraction": "number",
    "successor": "number",
    "larger": "number",
    "metres": "number",
    "centimetres": "number",
    "weekday": "text",
    "month": "text",
    "tomorrow": "date",
    "opposite": "text",
    "category": "text",
    "spelling": "letters",
    "initial": "letters",
    "who": "text",
    "where": "text",
    "many": "number",
    "json-name": "json name",
    "json-place": "json place",
    "three-words": "words 3",
    "twice": "words 2",
}
WORDS = read_yaml(Path(__file__).with_name("words.yaml"))
SUMMANDS, NUMBERS, LENGTHS = 10, 60, 40  # upper bounds of numbers
PASSAGES = 120  # random purchases; the same for every seed
FIRST_DAY = date(2026, 1, 1)


class Fact(NamedTuple):
    """A fact: its unique key within its kind, the values for a wording, and the answer."""

    key: str
    slots: Mapping[str, Any]
    answer: str


@cache
def facts(language: str) -> dict[str, list[Fact]]:
    """All facts in a language, by kind of question; cached."""
    words = WORDS[language]
    days, months, pairs = words["weekdays"], words["months"], words["opposites"]
    purchases = passages(language)
    spelling = WORDS["en"]["spelling"]
    categories = {word: name for name, members in words["categories"].items() for word in members}
    names = list(words["categories"])
    dates = [FIRST_DAY + timedelta(days=days_later) for days_later in range(0, 364, 3)]
    return {
        "addition": _numbers(lambda a, b: a + b),
        "subtraction": _numbers(lambda a, b: a - b, ordered=True),
        "successor": [_fact(a + 1, a=a) for a in range(NUMBERS)],
        "larger": [
            _fact(max(a, b), a=a, b=b)
            for a in range(0, NUMBERS, 4)
            for b in range(3, NUMBERS, 7)
            if a != b
        ],
        "metres": [_fact(a * 1000, a=a) for a in range(1, LENGTHS)],
        "centimetres": [_fact(a * 100, a=a) for a in range(1, LENGTHS)],
        "weekday": [_fact(days[(i + 1) % 7], a=day) for i, day in enumerate(days)],
        "month": [_fact(months[(i + 1) % 12], a=month) for i, month in enumerate(months)],
        "tomorrow": [_fact(day + timedelta(days=1), a=day) for day in dates],
        "opposite": [
            _fact(y, a=x) for first, second in pairs for x, y in ((first, second), (second, first))
        ],
        "category": [
            _fact(name, a=word, b=names[0], c=names[1]) for word, name in categories.items()
        ],
        "spelling": [_fact("-".join(word), a=word) for word in spelling],
        "initial": [_fact(word[0], a=word) for word in spelling],
        "who": [_fact(p["name"], **p) for p in purchases],
        "where": [_fact(p["place"], **p) for p in purchases],
        "many": [_fact(p["count"], **p) for p in purchases],
        "json-name": [_fact(_json(name=p["name"]), **p) for p in purchases],
        "json-place": [_fact(_json(place=p["place"]), **p) for p in purchases],
        "three-words": [_fact(" ".join(row[:3]), a=" ".join(row)) for row in _rows(spelling)],
        "twice": [_fact(f"{word} {word}", a=word) for word in spelling],
    }


def passages(language: str) -> list[dict[str, Any]]:
    """Random purchases: the buyer's name, the count, the thing and the place."""
    words, rng = WORDS[language], random.Random(0)
    return [
        {
            "name": rng.choice(words["names"]),
            "count": rng.randint(2, 9),
            "thing": rng.choice(words["things"]),
            "place": rng.choice(words["places"]),
        }
        for _ in range(PASSAGES)
    ]


def statement(wording: Mapping[str, Any], kind: str, fact: Fact, rng: random.Random) -> str:
    """A sentence with a fact, in a random wording."""
    template: str = rng.choice(wording[kind]["statements"])
    return template.format(**fact.slots, answer=fact.answer)


def _fact(answer: Any, **slots: Any) -> Fact:
    return Fact(" ".join(map(str, slots.values())), slots, str(answer))


def _numbers(operation: Any, *, ordered: bool = False) -> list[Fact]:
    """The result of an operation for all pairs of numbers, with a >= b if `ordered`."""
    numbers = range(SUMMANDS)
    pairs = [(a, b) for a in numbers for b in numbers if not ordered or a >= b]
    return [_fact(operation(a, b), a=a, b=b) for a, b in pairs]


def _json(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)


def _rows(words: list[str]) -> list[list[str]]:
    """Random rows of five words; the same for every seed."""
    rng = random.Random(1)
    return [rng.sample(words, 5) for _ in range(PASSAGES)]
