import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.tasks.speech.seq2seq.stored import BATCH, Stored, write


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 5), max_size=2 * BATCH + 3), st.integers(1, 4))
def test_what_was_written_is_read(tmp_path_factory, lengths, bands):
    path = tmp_path_factory.getbasetemp() / "features.arrow"
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(length, bands)).astype(np.float32) for length in lengths]
    write(path, iter(features), bands)
    stored = Stored(path)
    assert (len(stored), stored.bands) == (len(lengths), bands)
    for expected, found in zip(features, stored, strict=True):
        assert np.array_equal(expected.astype(np.float16), found)
    if lengths:
        assert np.array_equal(stored[-1], stored[len(lengths) - 1])
        assert len(stored[1:3]) == len(lengths[1:3])
    with pytest.raises(IndexError):
        stored[len(lengths)]
