"""The gold of a text, which is its class."""

import pyarrow as pa

from wxb.corpora import records


class Labelling(records.Labelling):
    """The class of a text, as a string."""

    GOLD = pa.string()
