from collections import Counter

import pytest

from demos.questions import LANGUAGES, WORDING, generate
from demos.questions.facts import KINDS, facts
from wxb.tasks.chat.record.checking import keeps, right


def made(labelled=3000, unlabelled=300, languages=LANGUAGES, seed=1):
    return list(generate(labelled=labelled, unlabelled=unlabelled, languages=languages, seed=seed))


def answer(record):
    return record["messages"][-1]["content"] if "messages" in record else record["output"]


def test_every_answer_is_right_and_keeps_its_format():
    for record in made(labelled=3000, unlabelled=0):
        assert keeps(record["format"], answer(record)), record
        assert right(record["format"], answer(record), answer(record))


def test_every_kind_has_its_facts_and_wordings():
    for language in LANGUAGES:
        assert {*facts(language)} == {*KINDS}
        for kind in KINDS:
            asked = WORDING[language][kind]["asked"]
            assert len({*asked}) == 6, (language, kind)
            assert WORDING[language][kind]["faq"] not in asked


def test_arithmetic_is_right():
    for fact in facts("en")["addition"]:
        assert int(fact.answer) == fact.slots["a"] + fact.slots["b"]
    assert {f.key: f.answer for f in facts("en")["tomorrow"]}["2026-02-27"] == "2026-02-28"
    assert {f.key: f.answer for f in facts("zh")["opposite"]}["冷"] == "熱"


def test_the_same_seed_makes_the_same_records_and_another_others():
    assert made(300, 30) == made(300, 30)
    assert made(300, 30) != made(300, 30, seed=2)


def test_records_are_as_many_as_asked_for_and_of_all_kinds():
    records = made()
    assert Counter("text" in record for record in records) == {False: 3000, True: 300}
    counted = Counter(record["kind"] for record in records if "text" not in record)
    assert {*counted} == {*KINDS}
    assert len({record["id"] for record in records}) == 3300


def test_other_wordings_are_of_other_things():
    records = [record for record in made() if "text" not in record]
    things = {
        wording: {r["content"] for r in records if r["wording"] == wording}
        for wording in ("usual", "other")
    }
    assert not things["usual"] & things["other"]
    assert len(things["other"]) > 100


@pytest.mark.parametrize(
    ("more", "told"), [({"languages": ["fr"]}, "fr"), ({"labelled": 10**6}, "at most")]
)
def test_what_cannot_be_made_is_told(more, told):
    with pytest.raises(ValueError, match=told):
        made(**more)
