"""Which spans are masked and counted, and which values verification finds."""

import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.masking.rules import Rules, ScoredSpan
from wxb.core.errors import WxbError
from wxb.masking.masker import Masker, Report
from wxb.masking.placeholders import Edit, Placeholders
from wxb.tasks.ner.predictor import SpanFinder
from wxb.tasks.ner.record.spans import Span

TEXT = "Ann (44) and Ann, bob@x.org, Zoé 5"


def masked(*texts, operators="replace", **options):
    """The masked texts and the report of a verified masking."""
    masker = Masker(Rules(), operators, **options)
    report = Report("test", left=Counter())
    masker.edits(texts, report)
    return Masker(Rules(), operators, **options).mask(texts), report


def test_types_have_their_operator_or_the_default():
    operators = {"DEFAULT": {"operator": "number"}, "AGE": {"operator": "mask"}}
    operators["EMAIL"] = {"operator": "redact"}
    assert masked(TEXT, operators=operators)[0] == ["<NAME_1> (**) and <NAME_1>, , <NAME_2> *"]


def test_the_report_has_counts_and_no_values():
    _, report = masked(TEXT, "Bob", operators={"EMAIL": {"operator": "keep"}}, allow=["5"])
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


@pytest.mark.parametrize(
    ("text", "options", "left"),
    [
        ("bob@x.com", {}, {"e-mail address": 1}),  # this recognizer finds .org only
        ("a.bob@x.org", {}, {"e-mail address": 1}),
        ("bob@x.com", {"allow": ["bob@x.com"]}, {}),
        ("bob@x.com", {"deny": ["/.*com/"]}, {}),
        ("bob@x.com", {"deny": ["x.com"]}, {"e-mail address": 1}),
        ("to bob@x.org", {"operators": {"EMAIL": {"operator": "keep"}}}, {}),
        ("4111 1111 1111 1111", {}, {}),
        ("4111 1111 1111 1111", {"threshold": 0.6}, {"card number": 1}),
    ],
)
def test_verification_finds_values_that_are_not_masked_completely(text, options, left):
    report = masked(text, **options)[1]
    assert report.left == left
    assert report.documents_left == len(left)


def test_the_threshold_filters_spans_of_any_recognizer():
    assert masked(TEXT, threshold=0.9)[0] == ["<NAME> (44) and <NAME>, <EMAIL>, <NAME> 5"]
    assert masked(TEXT, threshold=0.95)[0] == ["Ann (44) and Ann, <EMAIL>, Zoé 5"]


def test_denied_values_are_masked_as_whole_words_and_with_the_spans_that_they_overlap():
    assert masked("in Anna, of an oak", deny=["an", "oa"])[0] == ["in <NAME>, of <DENIED> oak"]
    assert masked("我叫王明abc", deny=["王明"])[0] == ["我叫<DENIED>abc"]
    assert masked("5 Annex Bob", deny=["/x B/"])[0] == ["<AGE> <NAME>"]
    keep = {"NAME": {"operator": "keep"}}
    assert masked("Ann, Bob", deny=["Ann"], operators=keep)[0] == ["<DENIED>, Bob"]


def test_adjacent_spans_of_one_type_are_merged():
    assert masked("AnnBob met Eve5", operators="replace")[0] == ["<NAME> met <NAME><AGE>"]
    parts = [ScoredSpan(Span(0, 3, "NAME"), 0.9), ScoredSpan(Span(3, 6, "NAME"), 0.7)]
    masker = Masker(Rules(), "number")
    masker.recognizer.candidates = lambda texts, label: [parts]
    assert masker.edits(["AnnBob"], Report("test")) == [[Edit(0, 6, "<NAME_1>", "NAME", 0.7)]]


def test_only_selected_types_are_masked():
    [text], report = masked(TEXT, only=["AGE"])
    assert text == "Ann (<AGE>) and Ann, bob@x.org, Zoé <AGE>"
    assert report.masked == {"AGE": 2}
    assert report.kept == {}


def test_the_error_of_a_failing_model_does_not_quote_texts():
    masker = Masker(Rules())

    def fail(texts, label):
        raise ValueError(f"cannot read {texts[0]}")

    masker.recognizer.candidates = fail
    with pytest.raises(WxbError, match=r"fails on one of 1 documents \(ValueError\)") as error:
        masker.edits(["Ann"], Report("test"))
    assert "Ann" not in str(error.value)
    assert error.value.__suppress_context__


def test_python_masks_columns_of_a_data_frame():
    mask = partial(SpanFinder.mask, Rules())  # the method of trained models
    assert mask(["Ann", None, "", "5"]) == ["<NAME>", None, "", "<AGE>"]
    assert mask(["Ann"], operators="mask", threshold=0.95) == ["Ann"]
    with pytest.raises(TypeError, match="expected a list"):
        mask("Ann")


def test_a_masker_can_be_pickled():
    masker = Masker(Rules(), "number", deny=["x"])
    assert masker.mask(["Ann x"]) == ["<NAME_1> <DENIED_1>"]
    assert pickle.loads(pickle.dumps(masker)).mask(["Bob Ann"]) == ["<NAME_2> <NAME_1>"]


def test_threads_share_the_numbers_of_a_mapping():
    mapping = Placeholders()
    masker = Masker(Rules(), "number", mapping)
    texts = [" ".join(f"{(number * step) % 97}" for number in range(50)) for step in range(40)]
    with ThreadPoolExecutor(8) as threads:
        new = [*threads.map(lambda text: masker.mask([text])[0], texts)]
    assert [*map(mapping.restore, new)] == texts
    assert len({*mapping.values.values()}) == len(mapping.values)
