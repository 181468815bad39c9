"""The class of a text as its gold, and what in a text tells its publisher."""

import pyarrow as pa

from wxb.corpora import labelling

GOLD = pa.string()

pack, unpack = labelling.pack, labelling.unpack
