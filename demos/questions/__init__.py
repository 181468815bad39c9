"""Questions whose answers can be checked, and texts that tell what is needed to answer them.

No two questions say the same of the same things. Some things are asked about in other words than
all the rest, so that a test set can have wordings, and things, that no other has.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from demos.questions.facts import KINDS, Fact, facts, statement
from wxb.core.params import read_yaml

LANGUAGES = ("en", "zh")
WORDING = read_yaml(Path(__file__).with_name("wording.yaml"))
SYSTEM, TURNS = 0.1, 0.1  # shares of questions with a system turn, and with turns before them
USUAL, OTHER = (0, 4), (4, 6)  # wordings of a kind by their numbers, of most facts and of few
SENTENCES = (2, 5)  # of a text
FAQ = 0.15  # share of texts that are questions and answers, in a wording that no question has


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """So many conversations, then so many texts; the same for the same arguments.

    Raises ValueError for a language that there is not, and for more questions than there are.
    """
    if unknown := sorted({*languages} - {*LANGUAGES}):
        raise ValueError(f"found languages {unknown}, expected some of {list(LANGUAGES)}")
    rng = random.Random(seed)
    every = [
        (kind, language, number, fact)
        for language in languages
        for kind, known in facts(language).items()
        for fact in known
        for number in range(*(USUAL if _usual(fact) else OTHER))
    ]
    if labelled > len(every):
        raise ValueError(f"found labelled {labelled}, expected at most {len(every)}")
    for number, chosen in enumerate(_evenly(every, labelled, rng)):
        yield {"id": f"question-{number}", **_question(*chosen, rng)}
    for number in range(unlabelled):
        language = languages[number % len(languages)]
        id_ = f"text-{number}"
        held = {"kind": "text", "wording": "text", "content": id_}
        yield {"id": id_, "language": language, "text": _text(language, rng), **held}


def _evenly(
    every: Sequence[tuple[str, str, int, Fact]], count: int, rng: random.Random
) -> list[tuple[str, str, int, Fact]]:
    """So many of all questions in any order, of each kind and language about as many."""
    piles: dict[tuple[str, str], list[tuple[str, str, int, Fact]]] = {}
    for one in every:
        piles.setdefault(one[:2], []).append(one)
    for pile in piles.values():
        rng.shuffle(pile)
    chosen: list[tuple[str, str, int, Fact]] = []
    while len(chosen) < count:
        chosen += [pile.pop() for pile in piles.values() if pile]
    del chosen[count:]
    rng.shuffle(chosen)
    return chosen


def _question(
    kind: str, language: str, number: int, fact: Fact, rng: random.Random
) -> dict[str, Any]:
    """A record: an instruction with what it is about, or messages where there are other turns."""
    wording = WORDING[language]
    asked = wording[kind]["asked"][number].format(**fact.slots)
    about = wording["passage"].format(**fact.slots) if "name" in fact.slots else ""
    common = {
        "kind": kind,
        "wording": "usual" if _usual(fact) else "other",
        "content": f"{kind}:{fact.key}",
        "format": KINDS[kind].format(**fact.slots),
        "language": language,
    }
    drawn = rng.random()
    if drawn >= SYSTEM + TURNS:
        return {"instruction": asked, "input": about, "output": fact.answer, **common}
    before = []
    if drawn < SYSTEM:
        before = [{"role": "system", "content": rng.choice(wording["system"])}]
    else:
        hello, welcome = rng.choice(wording["greetings"])
        before = [{"role": "user", "content": hello}, {"role": "assistant", "content": welcome}]
    asked = "\n".join(filter(None, [asked, about]))
    turns = [{"role": "user", "content": asked}, {"role": "assistant", "content": fact.answer}]
    return {"messages": [*before, *turns], **common}


def _usual(fact: Fact) -> bool:
    """Whether a fact is asked about in the usual words; of six facts about five are."""
    return zlib.crc32(fact.key.encode()) % 6 != 0


def _text(language: str, rng: random.Random) -> str:
    """Some sentences, each of which tells a fact; or questions and answers about some."""
    known, wording = facts(language), WORDING[language]
    kinds = rng.choices([*known], k=rng.randint(*SENTENCES))
    chosen = [(kind, rng.choice(known[kind])) for kind in kinds]
    if rng.random() < FAQ:
        pairs = []
        for kind, fact in chosen:
            about = wording["passage"].format(**fact.slots) + " " if "name" in fact.slots else ""
            question = about + wording[kind]["faq"].format(**fact.slots)
            pairs.append(f"Question: {question}\nAnswer: {fact.answer}")
        return "\n".join(pairs)
    joined: str = wording["joined"]
    return joined.join(statement(wording, kind, fact, rng) for kind, fact in chosen)
