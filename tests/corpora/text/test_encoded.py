"""Tokens and targets survive their files, which are read without copying."""

import tempfile
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
    joined,
    part,
    read_columns,
    read_encoded,
    write_columns,
    write_encoded,
)
from wxb.tasks.ner.tagging.bio import Targets, read_targets


def made(lengths, seed=0):
    rng = np.random.default_rng(seed)
    tokens = sum(lengths)
    encoded = Encoded(
        *(rng.integers(0, 1000, tokens, np.int32) for _ in range(3)),
        splits=np.cumsum([0, *lengths], dtype=np.int64),
    )
    targets = Targets(
        rng.integers(IGNORED, 300, tokens, np.int16),
        rng.choice(np.array([IGNORED, 0, 1], np.int8), tokens),
        rng.choice(np.array([IGNORED, 0, 1], np.int8), tokens),
    )
    return encoded, targets


def assert_same(read, written):
    assert type(read) is type(written)
    for a, b in zip(read, written, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 99))
def test_reading_gives_what_was_written(lengths, seed):
    encoded, targets = made(lengths, seed)
    with tempfile.TemporaryDirectory() as folder:
        write_encoded(Path(folder, "features.arrow"), encoded)
        write_columns(Path(folder, "targets.arrow"), targets._asdict(), encoded.splits)
        assert_same(read_encoded(Path(folder, "features.arrow")), encoded)
        assert_same(read_targets(Path(folder, "targets.arrow")), targets)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6))
def test_columns_are_read_with_the_places_where_texts_begin(lengths):
    splits = np.cumsum([0, *lengths], dtype=np.int64)
    labels = np.arange(sum(lengths), dtype=np.int32)
    with tempfile.TemporaryDirectory() as folder:
        write_columns(Path(folder, "c.arrow"), {"labels": labels, "other": labels % 3}, splits)
        columns, its_splits = read_columns(Path(folder, "c.arrow"), ["other", "labels"])
    assert list(columns) == ["other", "labels"]
    np.testing.assert_array_equal(columns["labels"], labels)
    np.testing.assert_array_equal(columns["other"], labels % 3)
    np.testing.assert_array_equal(its_splits, splits)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.sets(st.integers(1, 5)))
def test_parts_join_to_the_whole(lengths, cuts):
    encoded, _ = made(lengths)
    edges = [0, *(cut for cut in sorted(cuts) if cut < len(lengths)), len(lengths)]
    parts = [part(encoded, start, stop) for start, stop in pairwise(edges)]
    columns, splits = joined(
        ({name: getattr(one, name) for name in TOKENS}, one.splits) for one in parts
    )
    assert_same(Encoded(**columns, splits=splits), encoded)


def test_the_same_features_give_the_same_bytes(tmp_path):
    encoded, targets = made([3, 0, 2])
    for name in ("a", "b"):
        write_encoded(tmp_path / f"{name}.features", encoded)
        write_columns(tmp_path / f"{name}.targets", targets._asdict(), encoded.splits)
    for kind in ("features", "targets"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_splits_that_do_not_fit_are_refused(tmp_path):
    encoded, _ = made([3, 2])
    with pytest.raises(ValueError, match="splits end at 3"):
        write_encoded(tmp_path / "features.arrow", encoded._replace(splits=encoded.splits[:-1]))


def test_files_are_memory_mapped(tmp_path):
    encoded, targets = made([1000] * 200)
    write_encoded(tmp_path / "features.arrow", encoded)
    write_columns(tmp_path / "targets.arrow", targets._asdict(), encoded.splits)
    before = pa.total_allocated_bytes()
    kept = read_encoded(tmp_path / "features.arrow"), read_targets(tmp_path / "targets.arrow")
    assert pa.total_allocated_bytes() - before < 10_000
    for values in (*kept[0][:3], *kept[1]):
        assert not values.flags.owndata
        assert not values.flags.writeable
