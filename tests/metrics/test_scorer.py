"""The defaults of scorers, for gold and predictions that are plain JSON."""

import json

import numpy as np

from wxb.corpora.records import Record
from wxb.metrics import Metric, scorer
from wxb.metrics.scorer import PredictionRow


class Scorer(scorer.Scorer):
    METRICS = (Metric("accuracy", "accuracy"),)
    HEADLINE, SIGNATURE, UNIT, COUNTS = "accuracy", "accuracy", "records", ()

    def statistics(self, rows):
        return np.array([(row.gold == row.predicted, 1) for row in rows])

    def scores(self, sums):
        return {"accuracy": sums[..., 0] / sums[..., 1]}

    def totals(self, sums):
        return {"support": int(sums[0, 1])}


def test_a_row_is_parsed_from_its_json():
    record = Record("1", "Guten Tag", "de", None, "letters")
    row = Scorer().row(record, "en", Scorer().vocabulary([record]))
    assert row == PredictionRow("1", "Guten Tag", "de", "en", "letters")
    assert Scorer().parse(json.loads(json.dumps(row._asdict()))) == row


def test_a_record_that_is_its_own_group_has_no_group():
    assert Scorer().row(Record("1", "Guten Tag", "de", None, "Guten Tag"), "en", None).group == ""


def test_the_identity_of_a_row_ignores_the_prediction():
    row = PredictionRow("1", "Guten Tag", "de", "en")
    assert Scorer().identity(row) == Scorer().identity(row._replace(predicted="de"))
    assert Scorer().identity(row) != Scorer().identity(row._replace(gold="fr"))
