import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.tasks.speech.seq2seq.feature_file import BATCH, FeatureFile, write


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 5), max_size=2 * BATCH + 3), st.integers(1, 4))
def test_features_are_read_as_written(tmp_path_factory, lengths, bands):
    path = tmp_path_factory.getbasetemp() / "features.arrow"
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(length, bands)).astype(np.float32) for length in lengths]
    write(path, iter(features), bands)
    file = FeatureFile(path)
    assert (len(file), file.bands) == (len(lengths), bands)
    for index, expected in enumerate(features):
        assert np.array_equal(expected.astype(np.float16), file[index])
    if lengths:
        assert np.array_equal(file[-1], file[len(lengths) - 1])
    with pytest.raises(IndexError):
        file[len(lengths)]
