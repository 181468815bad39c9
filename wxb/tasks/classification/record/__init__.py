"""The class of a text as its gold, and what in a text tells its publisher."""

import pyarrow as pa

from wxb.corpora import labelling


class Labelling(labelling.Labelling):
    """The class of a text."""

    GOLD = pa.string()
