"""What can be asked: kinds of question with the format of their answers, and what is true."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

# The format of an answer by kind of question; see wxb/tasks/chat/record/checking.py.
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
SUMMANDS, NUMBERS, LENGTHS = 10, 60, 40  # how far numbers go
PASSAGES = 120  # that are told, drawn with a seed of their own
FIRST_DAY = date(2026, 1, 1)


class Fact(NamedTuple):
    """What is filled into a wording, the answer, and what tells it from others of its kind."""

    key: str
    slots: Mapping[str, Any]
    answer: str


@cache
def facts(language: str) -> dict[str, list[Fact]]:
    """What is known, by kind of question, in a language."""
    words = WORDS[language]
    days, months, pairs = words["weekdays"], words["months"], words["opposites"]
    told = passages(language)
    spelled = WORDS["en"]["spelled"]
    categories = {word: name for name, of in words["categories"].items() for word in of}
    names = list(words["categories"])
    dates = [FIRST_DAY + timedelta(days=number) for number in range(0, 364, 3)]
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
            _fact(y, a=x) for one, other in pairs for x, y in ((one, other), (other, one))
        ],
        "category": [
            _fact(right, a=word, b=names[0], c=names[1]) for word, right in categories.items()
        ],
        "spelling": [_fact("-".join(word), a=word) for word in spelled],
        "initial": [_fact(word[0], a=word) for word in spelled],
        "who": [_fact(p["name"], **p) for p in told],
        "where": [_fact(p["place"], **p) for p in told],
        "many": [_fact(p["count"], **p) for p in told],
        "json-name": [_fact(_json(name=p["name"]), **p) for p in told],
        "json-place": [_fact(_json(place=p["place"]), **p) for p in told],
        "three-words": [_fact(" ".join(row[:3]), a=" ".join(row)) for row in _rows(spelled)],
        "twice": [_fact(f"{word} {word}", a=word) for word in spelled],
    }


def passages(language: str) -> list[dict[str, Any]]:
    """What somebody bought, how many, and where."""
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
    """A sentence that tells a fact."""
    told: str = rng.choice(wording[kind]["told"])
    return told.format(**fact.slots, answer=fact.answer)


def _fact(answer: Any, **slots: Any) -> Fact:
    return Fact(" ".join(map(str, slots.values())), slots, str(answer))


def _numbers(of: Any, *, ordered: bool = False) -> list[Fact]:
    every = range(SUMMANDS)
    return [_fact(of(a, b), a=a, b=b) for a in every for b in every if not ordered or a >= b]


def _json(**values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)


def _rows(words: list[str]) -> list[list[str]]:
    rng = random.Random(1)
    return [rng.sample(words, 5) for _ in range(PASSAGES)]
