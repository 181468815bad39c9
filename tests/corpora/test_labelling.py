"""What tasks take whose gold Parquet takes as it is."""

from wxb.corpora import labelling


def test_gold_is_kept_as_it_is():
    assert labelling.unpack(labelling.pack("fr")) == "fr"
