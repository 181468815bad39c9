"""The gold of a text, which is its class."""

import pyarrow as pa

from wxb.corpora import labelling


class Labelling(labelling.Labelling):
    """The class of a text, as a string."""

    GOLD = pa.string()
