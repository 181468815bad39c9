"""Which spans are masked, what is counted of them, and what a second look finds."""

import pytest

from tests.masking.rules import Found, Rules
from wxb.core.errors import WxbError
from wxb.masking.edits import Edit, applied
from wxb.masking.masker import Masker, Report
from wxb.masking.operators import DEFAULT, Keep, Mask, Number, Redact, Replace
from wxb.masking.placeholders import Placeholders
from wxb.tasks.ner.record.spans import Span

TEXT = "Ann (44) and Ann, bob@x.org, Zoé 5"


def masked(*texts, operators=None, **choices):
    masker = Masker(Rules(), operators or {DEFAULT: Replace()})
    for name, value in choices.items():
        setattr(masker, name, value)
    report = Report("test")
    edits = masker.edits(texts, report)
    masker.verify(texts, edits, report)
    return [applied(t, e) for t, e in zip(texts, edits, strict=True)], report


def test_each_type_has_its_operator_and_the_rest_the_default():
    operators = {DEFAULT: Number(), "AGE": Mask(), "EMAIL": Redact()}
    assert masked(TEXT, operators=operators)[0] == ["<NAME_1> (**) and <NAME_1>, , <NAME_2> *"]


def test_the_report_counts_and_tells_no_value():
    _, report = masked(TEXT, "Bob", operators={DEFAULT: Replace(), "EMAIL": Keep()}, allowed={"5"})
    assert report.told() == {
        "experiment": "test",
        "skipped": 0,
        "documents": 2,
        "characters": len(TEXT) + 3,
        "masked": {"AGE": 1, "NAME": 4},
        "kept": {"AGE": 1, "EMAIL": 1},
        "escaped": 0,
        "left": {},
        "documents_left": 0,
    }


def test_spans_of_one_type_that_touch_are_one():
    assert masked("AnnBob met Eve5", operators={DEFAULT: Replace()})[0] == [
        "<NAME> met <NAME><AGE>"
    ]
    parts = [Found(Span(0, 3, "NAME"), 0.9), Found(Span(3, 6, "NAME"), 0.7)]
    masker = Masker(Rules(), {DEFAULT: Number()})
    masker.recognizer.predict = lambda texts: [parts]
    assert masker.edits(["AnnBob"], Report("test")) == [[Edit(0, 6, "<NAME_1>", "NAME", 0.7)]]


def test_only_some_types_are_masked_if_so_asked():
    [text], report = masked(TEXT, only={"AGE"})
    assert text == "Ann (<AGE>) and Ann, bob@x.org, Zoé <AGE>"
    assert report.masked == {"AGE": 2}
    assert report.kept == report.left == {}


def test_a_second_look_does_not_count_what_was_put_there():
    # The rules take letters of a replacement for a name, and a name beside it for another.
    _, report = masked("Ann 5", operators={DEFAULT: Replace(new_value="Xx")})
    assert report.left == {}


def test_a_second_look_counts_what_is_found_now():
    # What was put there makes a name of the letters beside it.
    texts, report = masked("5ann 6", operators={DEFAULT: Replace(new_value="Z")})
    assert texts == ["Zann Z"]
    assert report.left == {"NAME": 1}
    assert report.documents_left == 1


@pytest.mark.parametrize("spans", [[(0, 3), (2, 4)], [(4, 6), (0, 3)], [(0, 6), (1, 2)]])
def test_spans_that_overlap_are_refused(spans):
    masker = Masker(Rules(), {DEFAULT: Number()}, Placeholders())
    masker.recognizer.predict = lambda texts: [[Found(Span(*s, "NAME"), 1.0) for s in spans]]
    [edits] = masker.edits(["abcdef"], Report("test"))
    with pytest.raises(WxbError, match="spans that overlap or are not sorted") as error:
        applied("abcdef", edits)
    assert "abc" not in str(error.value)


def test_a_failing_model_is_told_without_its_words():
    masker = Masker(Rules(), {DEFAULT: Replace()})

    def fail(texts):
        raise ValueError(f"cannot read {texts[0]}")

    masker.recognizer.predict = fail
    with pytest.raises(WxbError, match=r"fails on one of 1 documents \(ValueError\)") as error:
        masker.edits(["Ann"], Report("test"))
    assert "Ann" not in str(error.value)
    assert error.value.__suppress_context__
