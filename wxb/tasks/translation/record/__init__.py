"""The gold of a source: one or more references."""

import pyarrow as pa

from wxb.corpora.records import Labelling

LABELLING = Labelling(pa.list_(pa.string()), tuple[str, ...])
