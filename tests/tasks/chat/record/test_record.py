import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import RecordError
from wxb.corpora.text.templates import message
from wxb.tasks.chat.record.checking import equals_answer, has_format, parse_format
from wxb.tasks.chat.record.conversation import deserialize, serialize, validate

content = st.text(min_size=1).map(str.strip).filter(bool)


@st.composite
def conversations(draw):
    """Any conversation that ends with a question."""
    system = draw(st.booleans())
    turns = draw(st.lists(content, min_size=1, max_size=5).filter(lambda row: len(row) % 2))
    messages = [message(("user", "assistant")[i % 2], text) for i, text in enumerate(turns)]
    return [message("system", draw(content))] * system + messages


@given(conversations())
def test_a_conversation_is_read_from_its_text(conversation):
    assert deserialize(serialize(conversation)) == conversation


@pytest.mark.parametrize("text", ["What is it?", "[1, 2]", '[{"a": 1}]', "[", '["role"]'])
def test_a_question_is_its_text(text):
    assert serialize([message("user", text)]) == text
    assert deserialize(text) == [message("user", text)]


def test_a_question_that_is_a_conversation_in_json_stays_a_question():
    typed = json.dumps([message("system", "Obey."), message("user", "Hello")])
    assert deserialize(serialize([message("user", typed)])) == [message("user", typed)]


USER, ANSWER, SYSTEM = (message(role, "x") for role in ("user", "assistant", "system"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "empty conversation"),
        ("text", "empty conversation"),
        ([SYSTEM, SYSTEM, USER], "several system turns"),
        ([USER, SYSTEM, ANSWER], "roles out of order"),
        ([SYSTEM], "roles out of order"),
        ([ANSWER, USER], "roles out of order"),
        ([USER, {"role": "assistant"}], "no message"),
        ([USER, "hello"], "no message"),
        ([USER, message("assistant", " \n")], "blank message"),
        ([message("tool", "x")], "unknown role"),
    ],
)
def test_an_invalid_conversation_is_refused_with_a_reason(value, reason):
    with pytest.raises(RecordError) as error:
        validate(value)
    assert error.value.reason == reason


def test_a_list_with_a_text_is_that_text():
    text, image = {"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}
    assert validate([{"role": "user", "content": [text]}]) == [USER]
    with pytest.raises(RecordError, match="no message"):
        validate([{"role": "user", "content": [text, image]}])


def test_a_conversation_without_a_last_question_is_refused():
    with pytest.raises(RecordError, match="no question"):
        deserialize(json.dumps([USER, ANSWER]))


@pytest.mark.parametrize(
    ("format_", "kept", "broken"),
    [
        ("number", "12", "twelve"),
        ("number", "-3.5", "3,5"),
        ("number", " 7 ", "\uff17"),
        ("date", "2026-01-02", "2 January"),
        ("letters", "c-a-t", "cat"),
        ("letters", "c", "c-"),
        ("words 3", "one two three", "one two"),
        ("words 2", "貓、狗", "貓狗"),
        ("json name", '{"name": "Ann"}', '{"name": "Ann", "age": 3}'),
        ("json name", '{"name": null}', "name: Ann"),
        ("json name", '{"name": "a"}', '["name"]'),
        ("text", "anything", " "),
    ],
)
def test_formats(format_, kept, broken):
    assert has_format(format_, kept)
    assert not has_format(format_, broken)


@pytest.mark.parametrize(
    ("format_", "answer", "reply", "expected"),
    [
        ("text", "Cold", "cold.", True),
        ("text", "冷", "冷。", True),
        ("number", "12", "\uff11\uff12", True),  # correct, though not in the format
        ("number", "12", "The answer is 12", False),
        ("json name", '{"name": "Ann"}', '{ "name" : "Ann" }', True),
        ("json name", '{"name": "Ann"}', '{"name": "ann"}', False),
        ("json name", '{"name": "Ann"}', "Ann", False),
        ("json age", '{"age": 3}', '{"age": 3.0}', True),
        ("json right", '{"right": true}', '{"right": 1}', False),
        ("json name", '{"name": "A", "age": 3}', '{"age": 3, "name": "A"}', True),
    ],
)
def test_correctness(format_, answer, reply, expected):
    assert equals_answer(format_, answer, reply) == expected


@given(st.sampled_from(["text", "number", "date", "letters", "words 2", "json a"]), st.text())
def test_any_reply_can_be_checked(format_, reply):
    assert equals_answer(format_, reply, reply)
    has_format(format_, reply)


@pytest.mark.parametrize("format_", ["", "integer", "words x", "json", "number 3", "words 0"])
def test_unknown_formats_are_refused(format_):
    with pytest.raises(RecordError, match=r"expected text, number.*rename it"):
        parse_format(format_)
