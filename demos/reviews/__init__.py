"""Generates good and bad film reviews from templates, with words of praise and of blame in both.

Each review has its own template's sentences only, so a split by template shares no sentence. Most
templates have one text for both classes: a word agrees with the verdict, is denied, or is
outweighed. The others have sincere praise in good reviews and ironic praise in bad ones. The
classes of a template alternate, so that about half of every split is good.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

LANGUAGES = ("en",)
CLASSES = ("positive", "negative")
CONTENT: dict[str, Any] = read_yaml(Path(__file__).with_name("templates.yaml"))


class Template(NamedTuple):
    """The text of a review with slots for words, by class."""

    name: str
    texts: Mapping[str, str]


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
    either = [
        Template(f"{kind}/{index}", dict.fromkeys(CLASSES, text))
        for kind, texts in CONTENT["either"].items()
        for index, text in enumerate(texts, start=1)
    ]
    texts = zip(*(CONTENT["only"][class_] for class_ in CLASSES), strict=True)
    only = [
        Template(f"only/{index}", dict(zip(CLASSES, pair, strict=True)))
        for index, pair in enumerate(texts, start=1)
    ]
    return (*either, *only)


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/reviews/{letter}")
        counts = Counter[str]()
        for index in range(count):
            template = rng.choice(load_templates())
            class_ = CLASSES[counts[template.name] % 2]
            counts[template.name] += 1
            yield {
                "id": f"en-{letter}-{index + 1:06}",
                "review": _text(template.texts[class_], class_, rng),
                "sentiment": class_ if letter == "l" else None,
                "language": "en",
                "template": template.name,
            }


def _text(template: str, class_: str, rng: random.Random) -> str:
    """A template with random words in its slots."""
    praise, blame = (rng.sample(CONTENT[name], 2) for name in ("praise", "blame"))
    words, opposites = (praise, blame) if class_ == "positive" else (blame, praise)
    aspects = rng.sample(CONTENT["aspects"], 2)
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
