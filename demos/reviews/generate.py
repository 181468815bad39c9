"""Generates good and bad film reviews from templates, with words of praise and of blame in both.

Each review has its own template's sentences only, so a split by template shares no sentence. Most
templates serve both classes: a word agrees with the verdict, is denied, or is outweighed. The
others are sincere or ironic praise.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

LANGUAGES = ("en",)
CLASSES = ("positive", "negative")


class Template(NamedTuple):
    """The text of a review with slots for words, and the classes that it serves."""

    name: str
    text: str
    classes: tuple[str, ...]


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` reviews, then `unlabelled` ones, whose `sentiment` is None.

    A record has `id`, `review`, `sentiment` (positive or negative), `language` and `template`.

    Raises ValueError for languages other than English.
    """
    if list(languages) != list(LANGUAGES):
        raise ValueError(f"unknown languages {list(languages)}, known are {list(LANGUAGES)}")
    return _records(labelled, unlabelled, seed)


@cache
def load_templates() -> tuple[Template, ...]:
    """Read all templates; cached."""
    content = _content()
    either = [
        Template(f"{kind}/{index}", text, CLASSES)
        for kind, texts in content["either"].items()
        for index, text in enumerate(texts, start=1)
    ]
    only = [
        Template(f"{class_}/{index}", text, (class_,))
        for class_, texts in content["only"].items()
        for index, text in enumerate(texts, start=1)
    ]
    return (*either, *only)


@cache
def _content() -> dict[str, Any]:
    return dict(read_yaml(Path(__file__).with_name("templates.yaml")))


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/reviews/{letter}")
        for index in range(count):
            template = rng.choice(load_templates())
            class_ = rng.choice(template.classes)
            yield {
                "id": f"en-{letter}-{index + 1:06}",
                "review": _text(template.text, class_, rng),
                "sentiment": class_ if letter == "l" else None,
                "language": "en",
                "template": template.name,
            }


def _text(template: str, class_: str, rng: random.Random) -> str:
    """A template with random words in its slots."""
    content = _content()
    praise, blame = (rng.sample(content[name], 2) for name in ("praise", "blame"))
    words, opposites = (praise, blame) if class_ == "positive" else (blame, praise)
    aspects = rng.sample(content["aspects"], 2)
    text = template.format(
        word=words[0],
        word2=words[1],
        opposite=opposites[0],
        opposite2=opposites[1],
        praise=praise[0],
        aspect=aspects[0],
        aspect2=aspects[1],
    )
    return text[0].upper() + text[1:]
