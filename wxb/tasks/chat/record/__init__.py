"""The gold of a conversation: its last answer, the kind of question, and the answer's format.

The format is None if the answer cannot be checked.
"""

import pyarrow as pa

from wxb.corpora.records import Labelling

LABELLING = Labelling(pa.struct([(name, pa.string()) for name in ("text", "kind", "format")]))
