"""Generates questions with checkable answers, and texts with the facts that answer them.

Each pair of a fact and a wording occurs once. A sixth of the facts have other wordings than the
rest, so that a test set can have unseen wordings and facts.
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
SYSTEM, TURNS = 0.1, 0.1  # shares of questions with a system turn, and with a greeting
USUAL, OTHER = (0, 4), (4, 6)  # ranges of a kind's wordings: for most facts, and for the others
SENTENCES = (2, 5)  # least and most per text
FAQ = 0.15  # share of texts with questions and answers, in wordings that no conversation has

Question = tuple[str, str, int, Fact]  # its kind, language, the index of a wording, and fact


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` conversations, then `unlabelled` texts.

    Raises ValueError for an unknown language, and for more conversations than questions.
    """
    if unknown := sorted({*languages} - {*LANGUAGES}):
        raise ValueError(f"found languages {unknown}, expected some of {list(LANGUAGES)}")
    rng = random.Random(seed)
    questions = [
        (kind, language, wording, fact)
        for language in languages
        for kind, known in facts(language).items()
        for fact in known
        for wording in range(*(USUAL if _is_usual(fact) else OTHER))
    ]
    if labelled > len(questions):
        raise ValueError(f"found labelled {labelled}, expected at most {len(questions)}")
    for index, question in enumerate(_balanced_sample(questions, labelled, rng)):
        yield {"id": f"question-{index}", **_conversation(*question, rng)}
    for index in range(unlabelled):
        language = languages[index % len(languages)]
        id_ = f"text-{index}"
        groups = {"kind": "text", "wording": "text", "content": id_}
        yield {"id": id_, "language": language, "text": _text(language, rng), **groups}


def _balanced_sample(
    questions: Sequence[Question], count: int, rng: random.Random
) -> list[Question]:
    """`count` random questions, about as many of each kind and language."""
    piles: dict[tuple[str, str], list[Question]] = {}
    for question in questions:
        piles.setdefault(question[:2], []).append(question)
    for pile in piles.values():
        rng.shuffle(pile)
    chosen: list[Question] = []
    while len(chosen) < count:
        chosen += [pile.pop() for pile in piles.values() if pile]
    del chosen[count:]
    rng.shuffle(chosen)
    return chosen


def _conversation(
    kind: str, language: str, index: int, fact: Fact, rng: random.Random
) -> dict[str, Any]:
    """The record of a fact in a wording: `instruction` and `input`, or `messages` if several."""
    wording = WORDING[language]
    question = wording[kind]["questions"][index].format(**fact.slots)
    passage = wording["passage"].format(**fact.slots) if "name" in fact.slots else ""
    common = {
        "kind": kind,
        "wording": "usual" if _is_usual(fact) else "other",
        "content": f"{kind}:{fact.key}",
        "format": KINDS[kind].format(**fact.slots),
        "language": language,
    }
    drawn = rng.random()
    if drawn >= SYSTEM + TURNS:
        return {"instruction": question, "input": passage, "output": fact.answer, **common}
    if drawn < SYSTEM:
        first = [{"role": "system", "content": rng.choice(wording["system"])}]
    else:
        hello, welcome = rng.choice(wording["greetings"])
        first = [{"role": "user", "content": hello}, {"role": "assistant", "content": welcome}]
    question = "\n".join(filter(None, [question, passage]))
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": fact.answer}]
    return {"messages": [*first, *turns], **common}


def _is_usual(fact: Fact) -> bool:
    """Whether a fact has the usual wordings, which depends on its key; about five of six do."""
    return zlib.crc32(fact.key.encode()) % 6 != 0


def _text(language: str, rng: random.Random) -> str:
    """A text with statements of random facts, or with questions and answers about them."""
    known, wording = facts(language), WORDING[language]
    kinds = rng.choices([*known], k=rng.randint(*SENTENCES))
    chosen = [(kind, rng.choice(known[kind])) for kind in kinds]
    if rng.random() < FAQ:
        pairs = []
        for kind, fact in chosen:
            passage = wording["passage"].format(**fact.slots) + " " if "name" in fact.slots else ""
            question = passage + wording[kind]["faq"].format(**fact.slots)
            pairs.append(f"Question: {question}\nAnswer: {fact.answer}")
        return "\n".join(pairs)
    separator: str = wording["separator"]
    return separator.join(statement(wording, kind, fact, rng) for kind, fact in chosen)
