"""The defaults, for gold that Parquet can store."""

from wxb.corpora.labelling import Labelling


def test_gold_is_unchanged_by_default():
    labelling = Labelling()
    assert labelling.unpack(labelling.pack("fr")) == "fr"
