"""Masking with placeholders can be undone for any texts, and changes nothing else."""

from itertools import pairwise
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.masking.rules import ScoredSpan, mapping_of, unmasked
from wxb.masking.masker import Masker
from wxb.masking.placeholders import BRACKETS, Placeholders, apply_edits
from wxb.masking.rules import ValuePatterns
from wxb.tasks.ner.record import Span

TYPES = ["NAME", "A_1", "<B>", "LITERAL", "姓 名", "<>\n"]
PIECES = [
    *("<NAME_1>", "<NAME_2>", "<LITERAL_1>", "<A_1_1>", "[NAME_1]", "&lt;", "\\", "[", "<B_1>"),
    *("<NAME_01>", "<NAME_", "1>", "<", ">", "_1>", "NAME", "Ann", "\r\n", "\0", "\ufeff"),
    *("𠮷", " "),
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12).map("".join)


class FixedRecognizer:
    """Predicts given spans."""

    def __init__(self, spans):
        self.spans, self.types, self.threshold = spans, TYPES, 0.0

    def scored_spans(self, texts, *, caption):
        return [[ScoredSpan(span, 1.0) for span in self.spans[text]] for text in texts]


@st.composite
def spans_in(draw, text):
    """Disjoint spans, some of them adjacent."""
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return [
        Span(start, end, draw(st.sampled_from(TYPES)))
        for start, end in pairwise(edges)
        if draw(st.booleans())
    ]


documents = st.dictionaries(texts, st.none(), min_size=1, max_size=4).flatmap(
    lambda keys: st.fixed_dictionaries({text: spans_in(text) for text in keys})
)


def masked(documents, mapping):
    masker = Masker(FixedRecognizer(documents), "number", mapping)
    edits = [*masker.edits(documents)]
    return edits, [apply_edits(text, row) for text, row in zip(documents, edits, strict=True)]


@given(documents)
def test_unmasking_restores_the_texts(documents):
    mapping = Placeholders()
    _, once = masked(documents, mapping)
    assert unmasked(mapping, once) == list(documents)


@given(documents, documents)
def test_a_mapping_can_be_extended_after_it_was_saved(first, second):
    mapping = Placeholders()
    _, first_masked = masked(first, mapping)
    again = mapping_of(mapping.values)
    _, second_masked = masked(second, again)
    assert unmasked(again, [*first_masked, *second_masked]) == [*first, *second]


@given(documents)
def test_nothing_changes_outside_spans_but_strings_like_placeholders(documents):
    mapping = Placeholders()
    for text, spans in documents.items():
        [edits], [new] = masked({text: spans}, mapping)
        for edit in edits:
            own = text[edit.start : edit.end]
            is_literal = edit.new.startswith("<LITERAL_")
            assert is_literal or any(s.start < edit.end and edit.start < s.end for s in spans)
            assert not {"\r", "\n"} & {*own}
        edges = [0, *(edge for edit in edits for edge in edit[:2]), len(text)]
        kept = [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
        news = [edit.new for edit in edits]
        assert new == "".join(part for pair in zip(kept, [*news, ""], strict=True) for part in pair)


@given(documents)
def test_without_a_mapping_a_masker_numbers_all_its_texts(documents):
    edits, new = masked(documents, None)
    values = {}
    for (text, spans), row in zip(documents.items(), edits, strict=True):
        covered = {index for edit in row for index in range(*edit[:2])}
        clear = {index for span in spans for index in range(*span[:2])} - covered
        assert not "".join(text[index] for index in clear).strip()
        for edit in row:
            value = text[edit.start : edit.end]
            assert values.setdefault(edit.new, value) == value
    assert unmasked(mapping_of(values), new) == list(documents)


def test_a_string_like_a_placeholder_is_a_value():
    texts = ["<NAME_1> [h 1] <h1>", "[name 2]"]
    masker = Masker(FixedRecognizer({text: [] for text in texts}), "number")
    assert masker.mask(texts) == ["<LITERAL_1> [h 1] <h1>", "<LITERAL_2>"]
    replacing = Masker(FixedRecognizer({"<NAME_1>": []}))
    assert replacing.mask(["<NAME_1>"]) == ["<NAME_1>"]


@pytest.mark.parametrize(
    ("text", "restored", "altered"),
    [
        *((text, "x a@b y", 0) for text in ("<EMAIL_1>", "&lt;EMAIL_1&gt;", r"\<EMAIL_1\>")),
        *((text, "x a@b y", 0) for text in ("[EMAIL_1]", "{Email_1}", "< EMAIL_1 >", "<EMAIL 1>")),
        *((text, "x a@b y", 0) for text in ("<EMAIL-1>", r"<EMAIL\_1>", "<EMAIL1>", "《EMAIL_1》")),
        ("\uff1cEMAIL_\uff11\uff1e", "x a@b y", 0),
        *((text, f"x {text} y", 1) for text in ("EMAIL_1", "(email_1)", "<EMAIL_1", "<EMAIL_2>")),
        *((text, "x a@b y", 0) for text in ("%3CEMAIL_1%3e", "&#60;EMAIL_1&#62;", "⟨EMAIL_1⟩")),
        (r"\u003cEMAIL_1\u003E", "x a@b y", 0),
        *((text, "x a@b y", 0) for text in ("<EMAIL_01>", "<EMAIL #1>", "<EMAIL_ 1>")),
        *((text, f"x {text} y", 1) for text in ("_EMAIL_1_", "<EMAIL\n_1>", "EMAIL-1")),
        *((text, f"x {text} y", 0) for text in ("EMAIL 1", "E_1", "EMAIL_12", "<CITY_7>")),
    ],
)
def test_placeholders_that_look_altered_are_restored_or_counted(text, restored, altered):
    mapping = mapping_of({"<EMAIL_1>": "a@b"})
    assert unmasked(mapping, [f"x {text} y"]) == [restored]
    assert mapping.altered == altered


@pytest.mark.parametrize("text", ["<ID_CARD_1>", "[Id Card 1]", "<ID-CARD_1>", r"<ID\_CARD\_1>"])
def test_types_of_several_words_are_restored(text):
    assert unmasked(mapping_of({"<ID_CARD_1>": "a@b"}), [text]) == ["a@b"]


def test_time_grows_with_the_length_of_a_text():
    text, seconds = "Ann é " * 50_000, perf_counter()
    values = ValuePatterns(f"Ann {number}" for number in range(10_000))
    assert (*values.find(text), *values.find("x Ann 77 Ann 777x")) == ((2, 8),)
    mapping = mapping_of({"<NAME_1>": "Ann"})
    assert not [*mapping.escape(text, [(i, i + 3, "NAME") for i in range(0, len(text), 6)])]
    assert perf_counter() - seconds < 10  # an hour, if each span took the time of the text


@given(texts, st.sampled_from(BRACKETS))
def test_texts_that_look_altered_are_restored_as_they_were(text, brackets):
    mapping = Placeholders()
    documents = {text: [], "Ann": [Span(0, 3, "NAME")], f"[name 1]{text}": []}
    rows, _ = masked(documents, mapping)
    new = [apply_edits(*both, brackets) for both in zip(documents, rows, strict=True)]
    assert unmasked(mapping, new) == list(documents)


@pytest.mark.parametrize(
    "text", ["<NAME_0>", "<NAME_\u0661>", "<_1>", "<NA\nME_1>", "NAME_1", "<X_1>"]
)
def test_other_strings_are_kept(text):
    assert not [*mapping_of({"<NAME_1>": "Ann"}).escape(text, [])]
