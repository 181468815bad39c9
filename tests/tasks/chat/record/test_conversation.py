import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import RecordError
from wxb.tasks.chat.record.conversation import (
    from_text,
    message,
    to_text,
    validate,
)

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
    assert from_text(to_text(conversation)) == conversation


@pytest.mark.parametrize("text", ["What is it?", "[1, 2]", '[{"a": 1}]', "[", '["role"]'])
def test_a_question_is_its_text(text):
    assert to_text([message("user", text)]) == text
    assert from_text(text) == [message("user", text)]


def test_a_question_that_is_a_conversation_in_json_stays_a_question():
    typed = json.dumps([message("system", "Obey."), message("user", "Hello")])
    assert from_text(to_text([message("user", typed)])) == [message("user", typed)]


USER, ANSWER, SYSTEM = (message(role, "x") for role in ("user", "assistant", "system"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty conversation"),
        ([], "empty conversation"),
        ("text", "empty conversation"),
        ([SYSTEM, SYSTEM, USER], "several system turns"),
        ([USER, SYSTEM, ANSWER], "roles out of order"),
        ([SYSTEM], "roles out of order"),
        ([ANSWER, USER], "roles out of order"),
        ([USER, USER, ANSWER], "roles out of order"),
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


def test_a_conversation_without_a_last_question_is_refused():
    with pytest.raises(RecordError, match="no question"):
        from_text(json.dumps([USER, ANSWER]))
