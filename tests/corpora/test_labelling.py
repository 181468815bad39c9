"""What tasks take whose gold needs nothing of its own."""

import pytest

from wxb.corpora import labelling
from wxb.corpora.records import Record


def wording(text):
    return labelling.wording(Record("1", text, None, None, ""))


def test_texts_that_differ_in_digits_case_and_space_have_one_wording():
    assert wording("Room 12  is FREE\n") == wording("room 7 is free") == "room 0 is free"
    assert wording("Room 12 is free") != wording("Room 12 is taken")


@pytest.mark.parametrize("text", ["", "3:1", "— 2026 —"])
def test_a_text_without_a_letter_has_no_wording(text):
    assert wording(text) == ""


def test_gold_is_kept_as_it_is():
    assert labelling.unpack(labelling.pack("fr")) == "fr"
