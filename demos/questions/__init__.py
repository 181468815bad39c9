"""Generates questions with checkable answers, and texts for pretraining with facts.

Each fact is in at most one question, so no two questions share a fact or a passage. A tenth of the
facts is in no text, so a test set can hold facts that a model never read.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from demos.questions.facts import KINDS, LANGUAGES, Fact, facts
from wxb.core.params import read_yaml

WORDING = read_yaml(Path(__file__).with_name("wording.yaml"))
FORMS = ("plain", "json", "twice", "brackets", "quotes", "sentence")  # of answers
SYSTEM, TURNS = 0.1, 0.1  # shares of questions with a system turn, and with a greeting
SENTENCES = (2, 5)  # least and most per text
FAQ = 0.15  # share of texts with questions and answers, in wordings that no conversation has


def generate(
    *, labelled: int, unlabelled: int, languages: Sequence[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Generate `labelled` conversations, then `unlabelled` texts.

    Raises ValueError for an unknown language, and for more conversations than facts.
    """
    if unknown := sorted({*languages} - {*LANGUAGES}):
        raise ValueError(f"found languages {unknown}, expected some of {list(LANGUAGES)}")
    rng = random.Random(seed)
    for index, (fact, form) in enumerate(_questions(labelled, languages, rng)):
        yield {"id": f"question-{index}", **_conversation(fact, form, rng)}
    texts = {language: _texts(language, rng) for language in languages}
    for index in range(unlabelled):
        language = languages[index % len(languages)]
        id_ = f"text-{index}"
        groups = {"kind": "text", "combination": "text", "unseen": "", "content": id_}
        yield {"id": id_, "language": language, "text": next(texts[language]), **groups}


def _questions(count: int, languages: Sequence[str], rng: random.Random) -> list[tuple[Fact, str]]:
    """`count` different facts, about as many of each kind, each with the form of its answer."""
    piles: dict[tuple[str, str], list[Fact]] = {}
    for language in languages:
        for fact in facts(language):
            if fact.use != "faq":
                piles.setdefault((language, fact.kind), []).append(fact)
    rounds = zip_longest(*(rng.sample(pile, len(pile)) for pile in piles.values()))
    questions = [
        (fact, FORMS[index % len(FORMS)])
        for index, round_ in enumerate(rounds)
        for fact in round_
        if fact is not None
    ]
    if count > len(questions):
        raise ValueError(f"found labelled {count}, expected at most {len(questions)}")
    return rng.sample(questions[:count], count)


def _conversation(fact: Fact, form: str, rng: random.Random) -> dict[str, Any]:
    """The record of a question: `instruction` and `input`, or `messages` if several."""
    wording = WORDING[fact.language]
    request, answer_template = wording["forms"][form]
    answer = answer_template.format(answer=fact.answer)
    template, slots = _wording(fact)
    question = rng.choice(template["questions"]).format(**slots)
    question = wording["separator"].join(filter(None, [question, request]))
    passage = _passage(fact)
    common = {
        "kind": fact.kind,
        "combination": f"{fact.kind} {form}",
        "unseen": fact.kind if fact.use == "unseen" else "",
        "content": fact.key,
        "format": {
            "plain": KINDS[fact.kind],
            "json": "json answer",
            "twice": f"words {len(answer.split())}",
        }.get(form, "text"),
        "language": fact.language,
    }
    drawn = rng.random()
    if drawn >= SYSTEM + TURNS:
        return {"instruction": question, "input": passage, "output": answer, **common}
    if drawn < SYSTEM:
        first = [{"role": "system", "content": rng.choice(wording["system"])}]
    else:
        hello, welcome = rng.choice(wording["greetings"])
        first = [{"role": "user", "content": hello}, {"role": "assistant", "content": welcome}]
    question = "\n".join(filter(None, [question, passage]))
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"messages": [*first, *turns], **common}


def _texts(language: str, rng: random.Random) -> Iterator[str]:
    """Texts with statements of facts, or with questions and answers, without end.

    Every stated fact occurs about as often, and so does every fact of a `faq`.
    """
    stated, asked = (
        _shuffled_rounds([fact for fact in facts(language) if fact.use == use], rng)
        for use in ("stated", "faq")
    )
    separator: str = WORDING[language]["separator"]
    while True:
        sentences = range(rng.randint(*SENTENCES))
        if rng.random() < FAQ:
            yield "\n".join(_question_and_answer(next(asked)) for _ in sentences)
        else:
            yield separator.join(_statement(next(stated), rng) for _ in sentences)


def _shuffled_rounds(items: list[Fact], rng: random.Random) -> Iterator[Fact]:
    while True:
        yield from rng.sample(items, len(items))


def _question_and_answer(fact: Fact) -> str:
    template, slots = _wording(fact)
    question = " ".join(filter(None, [_passage(fact), template["faq"].format(**slots)]))
    return f"Question: {question}\nAnswer: {fact.answer}"


def _statement(fact: Fact, rng: random.Random) -> str:
    template, slots = _wording(fact)
    return rng.choice(template["statements"]).format(**slots, answer=fact.answer)


def _wording(fact: Fact) -> tuple[dict[str, Any], dict[str, Any]]:
    """The templates of a fact, and the values for them."""
    wording = WORDING[fact.language]
    own = dict(wording["kinds"].get(fact.kind, {}))
    return wording[own.pop("wording", fact.kind)], {**own, **fact.slots}


def _passage(fact: Fact) -> str:
    """The passage that a question is about; empty if it has none."""
    passage: str = WORDING[fact.language]["passage"]
    return passage.format(**fact.slots) if "name" in fact.slots else ""
