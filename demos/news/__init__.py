"""Generates fake and real news of many publishers, each with a house style of its own.

Publishers of real news have some habits more often than those of fake news, and real articles have
ordinary claims and named sources more often. Both overlap between classes. The rest of a house
style is drawn without regard to the class, so it identifies publishers and nothing else.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import read_yaml

LANGUAGES = ("en",)
CLASSES = ("real", "fake")  # the order of shares in phrases.yaml
FOLLOW_UPS = 0.1  # share of articles that repeat the last claim of their publisher
ADDRESSES = 0.7  # share of a publisher's articles that speak to readers, if it does so at all
FILLERS = 6  # different ones per publisher
PHRASES: dict[str, Any] = read_yaml(Path(__file__).with_name("phrases.yaml"))


class Publisher(NamedTuple):
    """A publisher: its class and its house style."""

    name: str
    label: str
    size: float  # in proportion to its number of articles
    habits: Mapping[str, bool]
    words: Mapping[str, str]
    dateline: str
    sign_off: str
    titles: Sequence[str]
    openings: Sequence[str]
    fillers: Sequence[str]
    length: int  # greatest number of fillers per article


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` articles, then `unlabelled` ones, whose `label` is None.

    A record has `id`, `title`, `text`, `label` (fake or real), `language`, `source` (the publisher)
    and `story` (the same for articles of one claim and publisher).

    Raises ValueError for languages other than English.
    """
    if list(languages) != list(LANGUAGES):
        raise ValueError(f"unknown languages {list(languages)}, known are {list(LANGUAGES)}")
    return _records(labelled, unlabelled, seed)


def publishers(seed: int) -> list[Publisher]:
    """All publishers, one for each place and noun of phrases.yaml; half are of each class."""
    rng = random.Random(f"{seed}/news/publishers")
    names = [f"{place} {noun}" for place, noun in product(PHRASES["places"], PHRASES["nouns"])]
    rng.shuffle(names)
    return [_publisher(name, index % 2, rng) for index, name in enumerate(names)]


def _publisher(name: str, class_index: int, rng: random.Random) -> Publisher:
    habits = {key: rng.random() < shares[class_index] for key, shares in PHRASES["habits"].items()}
    tone = "shouts" if habits["shouts"] else "plain"
    return Publisher(
        name=name,
        label=CLASSES[class_index],
        size=rng.lognormvariate(0, 0.5),
        habits=habits,
        words={key: rng.choice(options) for key, options in PHRASES["words"].items()},
        dateline=rng.choice(PHRASES["datelines"]) if habits["dateline"] else "",
        sign_off=rng.choice(PHRASES["sign_offs"]) if habits["signs"] else "",
        titles=rng.sample(PHRASES["titles"][tone], 2),
        openings=rng.sample(PHRASES["openings"][tone], 2),
        fillers=rng.sample(PHRASES["fillers"], FILLERS),
        length=rng.choice((1, 2, 3)),
    )


def _records(labelled: int, unlabelled: int, seed: int) -> Iterator[dict[str, Any]]:
    known = publishers(seed)
    sizes = [publisher.size for publisher in known]
    for letter, count in (("l", labelled), ("u", unlabelled)):
        rng = random.Random(f"{seed}/news/{letter}")
        last_claims: dict[str, str] = {}  # by publisher
        for index in range(count):
            (publisher,) = rng.choices(known, sizes)
            if publisher.name not in last_claims or rng.random() >= FOLLOW_UPS:
                last_claims[publisher.name] = _claim(publisher, rng)
            claim = last_claims[publisher.name]
            values = {
                **_values(publisher, rng),
                "claim": claim,
                "Claim": claim[0].upper() + claim[1:],
            }
            yield {
                "id": f"en-{letter}-{index + 1:06}",
                "title": rng.choice(publisher.titles).format(**values, CLAIM=claim.upper()),
                "text": _text(publisher, values, rng),
                "label": publisher.label if letter == "l" else None,
                "language": "en",
                "source": publisher.name,
                "story": f"{claim} ({publisher.name})",
            }


def _claim(publisher: Publisher, rng: random.Random) -> str:
    kind = "surprising" if _has("surprising", publisher, rng) else "ordinary"
    deed = rng.choice(PHRASES["claims"][kind]).format(**_values(publisher, rng))
    return f"{rng.choice(PHRASES['actors'])} {deed}"


def _text(publisher: Publisher, values: Mapping[str, Any], rng: random.Random) -> str:
    """An article: dateline, claim, source, quote, fillers, question to the reader and sign-off."""
    habits = publisher.habits
    kind = "sourced" if _has("sourced", publisher, rng) else "unsourced"
    middle = [rng.choice(PHRASES["sources"][kind])]
    middle += rng.sample(publisher.fillers, rng.randint(1, publisher.length))
    if habits["quotes"]:
        middle.append(rng.choice(PHRASES["quotes"]))
    if habits["addresses"] and rng.random() < ADDRESSES:
        middle.append(rng.choice(PHRASES["addresses"]))
    rng.shuffle(middle)
    parts = [publisher.dateline + rng.choice(publisher.openings), *middle, publisher.sign_off]
    return " ".join(filter(None, parts)).format(**values)


def _has(content: str, publisher: Publisher, rng: random.Random) -> bool:
    """Whether an article has some kind of content, with the share of its class."""
    share: float = PHRASES["content"][content][CLASSES.index(publisher.label)]
    return rng.random() < share


def _values(publisher: Publisher, rng: random.Random) -> dict[str, Any]:
    """Values for the slots of phrases, but for the claim."""
    place, place2 = rng.sample(PHRASES["places"], 2)
    return {
        **publisher.words,
        "name": publisher.name,
        "place": place,
        "place2": place2,
        "PLACE": place.upper(),
        "day": rng.choice(PHRASES["days"]),
        "number": rng.randrange(4, 20),
        "thing": rng.choice(PHRASES["things"]),
    }
