"""The gold of a text: the name of its class."""

import pyarrow as pa

from wxb.corpora.records import Labelling

LABELLING = Labelling(pa.string())
