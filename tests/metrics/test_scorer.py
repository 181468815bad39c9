"""What scorers take whose gold and predictions are plain JSON."""

import json

from wxb.corpora.records import Record
from wxb.metrics import scorer


def test_a_judged_record_is_written_and_read_again():
    record = Record("1", "Guten Tag", "de", None, "letters")
    row = scorer.judge(record, "en", scorer.known([record]))
    assert row == scorer.Judged("1", "Guten Tag", "de", "en", "letters")
    assert scorer.parse(json.loads(json.dumps(row._asdict()))) == row


def test_a_record_that_is_its_own_group_has_none():
    assert scorer.judge(Record("1", "Guten Tag", "de", None, "Guten Tag"), "en", None).group == ""


def test_rows_of_two_systems_are_the_same_whatever_was_predicted():
    row = scorer.Judged("1", "Guten Tag", "de", "en")
    assert scorer.same(row) == scorer.same(row._replace(predicted="de"))
    assert scorer.same(row) != scorer.same(row._replace(gold="fr"))
