"""Masking with numbers can be undone, whatever the texts hold, and changes nothing besides."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.masking.rules import Found
from wxb.masking.edits import Edit, applied, gaps, places
from wxb.masking.masker import Masker, Report
from wxb.masking.operators import read
from wxb.masking.placeholders import PLACEHOLDER, Placeholders
from wxb.tasks.ner.record.spans import Span

TYPES = ["NAME", "A_1", "<B>", "LITERAL", "姓 名", "<>\n"]
PIECES = [
    *("<NAME_1>", "<NAME_2>", "<LITERAL_1>", "<A_1_1>", "<B_1>", "<NAME_01>", "<NAME_", "1>", "<"),
    *(">", "_1>", "NAME", "Ann", "Bob", "\r\n", "\0", "\ufeff", "𠮷", " "),
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12).map("".join)


class Told:
    """Finds the spans that it is told."""

    def __init__(self, spans):
        self.spans = spans

    def predict(self, texts):
        return [[Found(span, 1.0) for span in self.spans[text]] for text in texts]


@st.composite
def spans_of(draw, text):
    """Disjoint spans, some of them adjacent."""
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return [
        Span(start, end, draw(st.sampled_from(TYPES)))
        for start, end in pairwise(edges)
        if draw(st.booleans())
    ]


documents = st.dictionaries(texts, st.none(), min_size=1, max_size=4).flatmap(
    lambda keys: st.fixed_dictionaries({text: spans_of(text) for text in keys})
)


def masked(documents, mapping):
    masker = Masker(Told(documents), read("number"), mapping)
    edits = masker.edits(list(documents), Report("test"))
    return edits, [applied(text, row) for text, row in zip(documents, edits, strict=True)]


def places_of(spans):
    """Where spans are; those of one type that touch are one."""
    found = []
    for span in spans:
        if found and found[-1][1:] == (span.start, span.type):
            found[-1] = (found[-1][0], span.end, span.type)
        else:
            found.append(span)
    return [(start, end) for start, end, _ in found]


def unmasked(mapping, texts):
    return [applied(text, mapping.undone(text)) for text in texts]


@given(documents)
def test_unmasking_gives_the_very_texts_back(documents):
    mapping = Placeholders()
    _, once = masked(documents, mapping)
    assert unmasked(mapping, once) == list(documents)


@given(documents, documents)
def test_a_mapping_goes_on_after_it_was_written_and_read(first, second):
    mapping = Placeholders()
    _, one = masked(first, mapping)
    kept = json.loads(json.dumps([mapping.values, sorted(mapping.reserved)]))
    again = Placeholders(*kept)
    _, two = masked(second, again)
    assert unmasked(again, [*one, *two]) == [*first, *second]


@given(documents)
def test_what_was_masked_before_can_be_masked_again_and_undone(documents):
    mapping = Placeholders()
    _, once = masked(documents, mapping)
    _, twice = masked({text: [] for text in once}, mapping)
    assert unmasked(mapping, twice) == list(dict.fromkeys(once))


@given(documents)
def test_nothing_changes_outside_spans_but_placeholders_of_the_mapping(documents):
    mapping = Placeholders()
    for text, spans in documents.items():
        known = set(mapping.values)
        [edits], [new] = masked({text: spans}, mapping)
        inside = {*places_of(spans)}
        for edit in edits:
            assert edit[:2] in inside or text[edit.start : edit.end] in known
        kept = [text[start:end] for start, end in gaps(text, edits)]
        assert kept == [new[start:end] for start, end in gaps(new, _at(edits))]
        assert [new[start:end] for start, end in places(edits)] == [edit.new for edit in edits]


def _at(edits):
    return [Edit(start, end, "") for start, end in places(edits)]


@given(documents)
def test_without_a_mapping_each_text_has_numbers_of_its_own_and_keeps_the_rest(documents):
    edits, new = masked(documents, None)
    for (text, spans), row, one in zip(documents.items(), edits, new, strict=True):
        assert [edit[:2] for edit in row] == places_of(spans)
        alone, _ = masked({text: spans}, None)
        assert alone == [row]
        values = {edit.new: text[edit.start : edit.end] for edit in row}
        assert applied(one, Placeholders(values).undone(one)) == text


def test_the_same_value_of_a_type_has_one_number():
    numbers = Placeholders()
    assert [numbers.of("NAME", v) for v in ("Ann", "Bob", "Ann")] == [
        "<NAME_1>",
        "<NAME_2>",
        "<NAME_1>",
    ]
    assert numbers.of("CITY", "Ann") == "<CITY_1>"


def test_a_placeholder_that_a_text_holds_is_skipped():
    numbers = Placeholders()
    assert numbers.escaped("see <NAME_1>", []) == []
    assert numbers.of("NAME", "Ann") == "<NAME_2>"
    assert numbers.escaped("see <NAME_2>", []) == [Edit(4, 12, "<LITERAL_1>")]
    # What looks like the placeholder to come stays, too.
    assert numbers.escaped("<NAME_2> <LITERAL_2>", []) == [Edit(0, 8, "<LITERAL_1>")]
    assert numbers.escaped("<LITERAL_1> <LITERAL_3>", []) == [Edit(0, 11, "<LITERAL_4>")]


@pytest.mark.parametrize(
    "text", ["<NAME_0>", "<NAME_01>", "<NAME_\u0661>", "<_1>", "<NA\nME_1>", "NAME_1"]
)
def test_only_what_could_be_a_placeholder_is_reserved(text):
    assert not PLACEHOLDER.search(text)
