"""Which spans are masked and counted, and which verification finds."""

import pytest

from tests.masking.rules import Rules, ScoredSpan
from wxb.core.errors import WxbError
from wxb.masking.edits import Edit, apply_edits
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
    return [apply_edits(t, e) for t, e in zip(texts, edits, strict=True)], report


def test_types_have_their_operator_or_the_default():
    operators = {DEFAULT: Number(), "AGE": Mask(), "EMAIL": Redact()}
    assert masked(TEXT, operators=operators)[0] == ["<NAME_1> (**) and <NAME_1>, , <NAME_2> *"]


def test_the_report_has_counts_and_no_values():
    _, report = masked(TEXT, "Bob", operators={DEFAULT: Replace(), "EMAIL": Keep()}, allowed={"5"})
    assert report.to_json() == {
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


def test_verification_also_finds_values_by_rules():
    missed = "bob@x.com"  # by this recognizer
    assert masked(missed)[1].left == {"e-mail address": 1}
    assert masked(missed, allowed={missed})[1].left == {}
    assert masked(missed, only={"NAME"})[1].left == {}
    assert masked("to bob@x.org", operators={DEFAULT: Replace(), "EMAIL": Keep()})[1].left == {}


def test_adjacent_spans_of_one_type_are_merged():
    assert masked("AnnBob met Eve5", operators={DEFAULT: Replace()})[0] == [
        "<NAME> met <NAME><AGE>"
    ]
    parts = [ScoredSpan(Span(0, 3, "NAME"), 0.9), ScoredSpan(Span(3, 6, "NAME"), 0.7)]
    masker = Masker(Rules(), {DEFAULT: Number()})
    masker.recognizer.predict = lambda texts: [parts]
    assert masker.edits(["AnnBob"], Report("test")) == [[Edit(0, 6, "<NAME_1>", "NAME", 0.7)]]


def test_only_selected_types_are_masked():
    [text], report = masked(TEXT, only={"AGE"})
    assert text == "Ann (<AGE>) and Ann, bob@x.org, Zoé <AGE>"
    assert report.masked == {"AGE": 2}
    assert report.kept == report.left == {}


def test_verification_does_not_count_replacements():
    # The rules predict the letters of a replacement as a name.
    _, report = masked("Ann 5", operators={DEFAULT: Replace(new_value="Xx")})
    assert report.left == {}


def test_verification_counts_new_spans():
    # The replacement and the letters after it look like a name.
    texts, report = masked("5ann 6", operators={DEFAULT: Replace(new_value="Z")})
    assert texts == ["Zann Z"]
    assert report.left == {"NAME": 1}
    assert report.documents_left == 1


@pytest.mark.parametrize("spans", [[(0, 3), (2, 4)], [(4, 6), (0, 3)], [(0, 6), (1, 2)]])
def test_overlapping_spans_are_an_error(spans):
    masker = Masker(Rules(), {DEFAULT: Number()}, Placeholders())
    masker.recognizer.predict = lambda texts: [[ScoredSpan(Span(*s, "NAME"), 1.0) for s in spans]]
    [edits] = masker.edits(["abcdef"], Report("test"))
    with pytest.raises(WxbError, match="spans that overlap or are not sorted") as error:
        apply_edits("abcdef", edits)
    assert "abc" not in str(error.value)


def test_the_error_of_a_failing_model_does_not_quote_texts():
    masker = Masker(Rules(), {DEFAULT: Replace()})

    def fail(texts):
        raise ValueError(f"cannot read {texts[0]}")

    masker.recognizer.predict = fail
    with pytest.raises(WxbError, match=r"fails on one of 1 documents \(ValueError\)") as error:
        masker.edits(["Ann"], Report("test"))
    assert "Ann" not in str(error.value)
    assert error.value.__suppress_context__
