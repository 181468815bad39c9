from collections import Counter

import pytest

from demos.questions import LANGUAGES, WORDING, generate
from demos.questions.facts import KINDS, facts
from wxb.tasks.chat.record.checking import has_format, is_correct


def records_of(labelled=3000, unlabelled=300, languages=LANGUAGES, seed=1):
    return list(generate(labelled=labelled, unlabelled=unlabelled, languages=languages, seed=seed))


def answer(record):
    return record["messages"][-1]["content"] if "messages" in record else record["output"]


def test_every_answer_has_its_format():
    for record in records_of(labelled=3000, unlabelled=0):
        assert has_format(record["format"], answer(record)), record
        assert is_correct(record["format"], answer(record), answer(record))


def test_every_kind_has_its_facts_and_wordings():
    for language in LANGUAGES:
        assert {*facts(language)} == {*KINDS}
        for kind in KINDS:
            questions = WORDING[language][kind]["questions"]
            assert len({*questions}) == 6, (language, kind)
            assert WORDING[language][kind]["faq"] not in questions


def test_arithmetic_is_right():
    for fact in facts("en")["addition"]:
        assert int(fact.answer) == fact.slots["a"] + fact.slots["b"]
    assert {f.key: f.answer for f in facts("en")["tomorrow"]}["2026-02-27"] == "2026-02-28"
    assert {f.key: f.answer for f in facts("zh")["opposite"]}["冷"] == "熱"


def test_records_depend_on_the_seed():
    assert records_of(300, 30) == records_of(300, 30)
    assert records_of(300, 30) != records_of(300, 30, seed=2)


def test_counts_and_kinds_of_records():
    records = records_of()
    assert Counter("text" in record for record in records) == {False: 3000, True: 300}
    assert {record["kind"] for record in records if "text" not in record} == {*KINDS}
    assert len({record["id"] for record in records}) == 3300


def test_other_wordings_are_of_other_facts():
    records = [record for record in records_of() if "text" not in record]
    contents = {
        wording: {r["content"] for r in records if r["wording"] == wording}
        for wording in ("usual", "other")
    }
    assert not contents["usual"] & contents["other"]
    assert len(contents["other"]) > 100


@pytest.mark.parametrize(
    ("changes", "message"), [({"languages": ["fr"]}, "fr"), ({"labelled": 10**6}, "at most")]
)
def test_invalid_arguments_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        records_of(**changes)
