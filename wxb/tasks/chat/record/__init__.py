"""Conversations with the answer that ends them: their gold in Parquet."""

from __future__ import annotations

import pyarrow as pa

from wxb.corpora import labelling

# `format` is None where the answer cannot be checked.


class Labelling(labelling.Labelling):
    """An answer, its kind of question, and its format."""

    GOLD = pa.struct([(name, pa.string()) for name in ("text", "kind", "format")])
