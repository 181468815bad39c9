"""Conversations with the answer that ends them: their gold in Parquet."""

from __future__ import annotations

import pyarrow as pa

from wxb.corpora import labelling

# `format` is None where the answer cannot be checked.
GOLD = pa.struct([(name, pa.string()) for name in ("text", "kind", "format")])

pack, unpack = labelling.pack, labelling.unpack
