"""The gold of a source, which is one or more references, and how Parquet stores it."""

import pyarrow as pa

from wxb.corpora import records


class Labelling(records.Labelling):
    """The references of a source."""

    GOLD = pa.list_(pa.string())
    TYPE = tuple[str, ...]
