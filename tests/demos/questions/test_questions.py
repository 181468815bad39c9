from collections import Counter
from datetime import date

import pytest

from demos.questions import FORMS, generate
from demos.questions.facts import KINDS, LANGUAGES, facts
from wxb.tasks.chat.record.checking import equals_answer, has_format


def records_of(labelled=3000, unlabelled=300, languages=LANGUAGES, seed=1):
    return list(generate(labelled=labelled, unlabelled=unlabelled, languages=languages, seed=seed))


def answer(record):
    return record["messages"][-1]["content"] if "messages" in record else record["output"]


def test_every_answer_has_its_format():
    for record in records_of(labelled=3000, unlabelled=0):
        assert has_format(record["format"], answer(record)), record
        assert equals_answer(record["format"], answer(record), answer(record))


def test_facts_are_unique_and_their_answers_right():
    answers = {fact.key: fact.answer for fact in facts("en") + facts("zh")}
    assert len(answers) == len(facts("en") + facts("zh"))
    for fact in facts("en") + facts("zh"):
        a, b = fact.slots.get("a"), fact.slots.get("b")
        match fact.kind:
            case "plus":
                assert int(fact.answer) == a + b
            case "minus":
                assert int(fact.answer) == a - b
            case "larger" | "smaller":
                assert int(fact.answer) == (max if fact.kind == "larger" else min)(a, b)
            case "date-after" | "date-before":
                days = (date.fromisoformat(fact.answer) - a).days
                assert days == fact.slots["n"] * (1 if fact.kind == "date-after" else -1)
    assert answers["opposite 熱"] == "冷"
    assert answers["weekday-after Monday 2"] == "Wednesday"
    assert answers["month-before 二月 3"] == "十一月"


def test_records_depend_on_the_seed_and_each_asks_another_fact():
    records = records_of()
    assert records == records_of()
    assert records != records_of(seed=2)
    assert len({record["id"] for record in records}) == 3300
    questions = [record for record in records if "text" not in record]
    assert len(questions) == 3000
    assert len({record["content"] for record in questions}) == 3000
    assert {record["kind"] for record in questions} == {*KINDS}
    combinations = Counter(record["combination"] for record in questions)
    assert len(combinations) == len(KINDS) * len(FORMS)
    assert min(combinations.values()) >= 4


@pytest.mark.parametrize(
    ("changes", "message"), [({"languages": ["fr"]}, "fr"), ({"labelled": 10**6}, "at most")]
)
def test_invalid_arguments_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        records_of(**changes)
