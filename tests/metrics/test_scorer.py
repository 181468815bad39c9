"""What scorers do whose gold and predictions are plain JSON."""

import json

import numpy as np

from wxb.corpora.records import Record
from wxb.metrics import Metric, scorer
from wxb.metrics.scorer import Judged


class Scorer(scorer.Scorer):
    METRICS = (Metric("accuracy", "accuracy"),)
    HEADLINE, SIGNATURE, UNIT, COUNTS = "accuracy", "accuracy", "records", ()

    def statistics(self, rows):
        return np.array([(row.gold == row.predicted, 1) for row in rows])

    def scores(self, sums):
        return {"accuracy": sums[..., 0] / sums[..., 1]}

    def totals(self, sums):
        return {"support": int(sums[0, 1])}


def test_a_judged_record_is_written_and_read_again():
    record = Record("1", "Guten Tag", "de", None, "letters")
    row = Scorer().judge(record, "en", Scorer().known([record]))
    assert row == Judged("1", "Guten Tag", "de", "en", "letters")
    assert Scorer().parse(json.loads(json.dumps(row._asdict()))) == row


def test_a_record_that_is_its_own_group_has_none():
    assert Scorer().judge(Record("1", "Guten Tag", "de", None, "Guten Tag"), "en", None).group == ""


def test_rows_of_two_systems_are_the_same_whatever_was_predicted():
    row = Judged("1", "Guten Tag", "de", "en")
    assert Scorer().same(row) == Scorer().same(row._replace(predicted="de"))
    assert Scorer().same(row) != Scorer().same(row._replace(gold="fr"))


def test_a_table_is_written_as_csv(tmp_path):
    scorer.write_table(tmp_path / "a.csv", ["name", "count"], [("a,b", 1), ("é", 2)])
    expected = 'name,count\n"a,b",1\né,2\n'
    assert (tmp_path / "a.csv").read_bytes().decode() == expected
