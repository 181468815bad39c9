"""What a task does whose gold Parquet stores as it is."""

from wxb.corpora.labelling import Labelling


def test_gold_is_stored_as_it_is():
    labelling = Labelling()
    assert labelling.unpack(labelling.pack("fr")) == "fr"
