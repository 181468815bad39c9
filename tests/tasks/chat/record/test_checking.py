import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import RecordError
from wxb.tasks.chat.record.checking import has_format, is_correct, parse_format


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
    ],
)
def test_correctness(format_, answer, reply, expected):
    assert is_correct(format_, answer, reply) == expected


@given(st.sampled_from(["text", "number", "date", "letters", "words 2", "json a"]), st.text())
def test_any_reply_can_be_checked(format_, reply):
    assert is_correct(format_, reply, reply) or format_.startswith("json")
    has_format(format_, reply)


@pytest.mark.parametrize(
    "format_", ["", "integer", "words", "words x", "json", "number 3", "words 0"]
)
def test_unknown_formats_are_refused(format_):
    with pytest.raises(RecordError, match="expected text, number"):
        parse_format(format_)
