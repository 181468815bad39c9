"""Counts with their nouns."""

import pytest

from wxb.core.wording import counted


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (2000, "2,000 records")],
)
def test_one_is_singular(count, text):
    assert counted(count, "records") == text
