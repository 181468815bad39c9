"""A few trials of `make trust`."""

import pytest

from tests import trust


@pytest.mark.slow
def test_interrupts_and_flipped_bits_do_no_harm():
    assert trust.main(commands=4, engines=4, flips=6) == 0
