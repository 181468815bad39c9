import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.tasks.chat.record.checking import keeps, of, right


@pytest.mark.parametrize(
    ("form", "kept", "broken"),
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
def test_formats(form, kept, broken):
    assert keeps(form, kept)
    assert not keeps(form, broken)


@pytest.mark.parametrize(
    ("form", "answer", "reply", "is_right"),
    [
        ("text", "Cold", "cold.", True),
        ("text", "冷", "冷。", True),
        ("number", "12", "\uff11\uff12", True),  # right, though not in the format
        ("number", "12", "The answer is 12", False),
        ("json name", '{"name": "Ann"}', '{ "name" : "Ann" }', True),
        ("json name", '{"name": "Ann"}', '{"name": "ann"}', False),
        ("json name", '{"name": "Ann"}', "Ann", False),
    ],
)
def test_what_is_right(form, answer, reply, is_right):
    assert right(form, answer, reply) == is_right


@given(st.sampled_from(["text", "number", "date", "letters", "words 2", "json a"]), st.text())
def test_any_reply_can_be_checked(form, reply):
    assert right(form, reply, reply) or form.startswith("json")
    keeps(form, reply)


@pytest.mark.parametrize("form", ["", "integer", "words", "words x", "json", "number 3", "words 0"])
def test_other_formats_are_refused(form):
    with pytest.raises(ValueError, match="expected text, number"):
        of(form)
