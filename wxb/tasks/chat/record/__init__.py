"""The gold of a conversation, which is its last answer, as a Parquet type."""

import pyarrow as pa

from wxb.corpora import records


class Labelling(records.Labelling):
    """An answer, its kind of question, and its format; None if it cannot be checked."""

    GOLD = pa.struct([(name, pa.string()) for name in ("text", "kind", "format")])
