"""The gold of a conversation: its last answer, kind of question, and format if checkable."""

import pyarrow as pa

from wxb.corpora.records import Labelling

LABELLING = Labelling(pa.struct([(name, pa.string()) for name in ("text", "kind", "format")]))
