"""Tokens and targets are read unchanged from files, without copying."""

import tempfile
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora.text.encoded import (
    IGNORED,
    TOKENS,
    Encoded,
    concatenate,
    read_columns,
    read_encoded,
    slice_texts,
    write_columns,
    write_encoded,
)
from wxb.tasks.ner.models.bio import Targets


def read_targets(path):
    columns, _ = read_columns(path, Targets._fields)
    return Targets(**columns)


def random_tokens(lengths, seed=0):
    rng = np.random.default_rng(seed)
    tokens = sum(lengths)
    encoded = Encoded(
        *(rng.integers(0, 1000, tokens, np.int32) for _ in range(3)),
        row_splits=np.cumsum([0, *lengths], dtype=np.int64),
    )
    targets = Targets(
        rng.integers(IGNORED, 300, tokens, np.int16),
        rng.choice(np.array([IGNORED, 0, 1], np.int8), tokens),
        rng.choice(np.array([IGNORED, 0, 1], np.int8), tokens),
    )
    return encoded, targets


def assert_same(actual, expected):
    assert type(actual) is type(expected)
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 99))
def test_tokens_and_targets_are_read_as_written(lengths, seed):
    encoded, targets = random_tokens(lengths, seed)
    with tempfile.TemporaryDirectory() as folder:
        write_encoded(Path(folder, "features.arrow"), [encoded])
        write_columns(Path(folder, "targets.arrow"), targets._asdict(), encoded.row_splits)
        assert_same(read_encoded(Path(folder, "features.arrow")), encoded)
        assert_same(read_targets(Path(folder, "targets.arrow")), targets)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.sets(st.integers(1, 5)))
def test_slices_concatenate_to_the_whole(lengths, cuts):
    encoded, _ = random_tokens(lengths)
    edges = [0, *(cut for cut in sorted(cuts) if cut < len(lengths)), len(lengths)]
    parts = [slice_texts(encoded, start, stop) for start, stop in pairwise(edges)]
    columns, row_splits = concatenate(
        ({name: getattr(part, name) for name in TOKENS}, part.row_splits) for part in parts
    )
    assert_same(Encoded(**columns, row_splits=row_splits), encoded)
    with tempfile.TemporaryDirectory() as folder:
        whole, joined = Path(folder, "whole.arrow"), Path(folder, "joined.arrow")
        write_encoded(whole, [encoded])
        write_encoded(joined, parts)
        assert joined.read_bytes() == whole.read_bytes()
        assert_same(read_encoded(joined), encoded)


def test_chunks_are_written_in_the_memory_of_one(tmp_path):
    chunks = (random_tokens([10_000] * 10, seed)[0] for seed in range(20))  # 1.2 MB each
    tracemalloc.start()
    write_encoded(tmp_path / "features.arrow", chunks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


def test_splits_that_do_not_fit_are_refused(tmp_path):
    encoded, _ = random_tokens([3, 2])
    with pytest.raises(ValueError, match="row_splits end at 3"):
        write_encoded(
            tmp_path / "features.arrow", [encoded._replace(row_splits=encoded.row_splits[:-1])]
        )


def test_files_are_memory_mapped(tmp_path):
    encoded, targets = random_tokens([1000] * 200)
    write_encoded(tmp_path / "features.arrow", [encoded])
    write_columns(tmp_path / "targets.arrow", targets._asdict(), encoded.row_splits)
    before = pa.total_allocated_bytes()
    mapped = read_encoded(tmp_path / "features.arrow"), read_targets(tmp_path / "targets.arrow")
    assert pa.total_allocated_bytes() - before < 10_000
    for values in (*mapped[0][:3], *mapped[1]):
        assert not values.flags.owndata
        assert not values.flags.writeable
