"""The sections of classification pages."""

from tests.reporting.conftest import study_of
from wxb.reporting.page import languages
from wxb.tasks.classification.metrics import PredictionRow, Scorer
from wxb.tasks.classification.page import ERRORS, Page


def rows(right, number=200):
    """Rows of a system whose first `right` predictions are correct."""
    classes = [("ab"[i % 2], "ab"[i % 2 == (i < right)]) for i in range(number)]
    return [
        PredictionRow(str(i), f"text {i}", gold, predicted, dict.fromkeys("ab", 0.5))
        for i, (gold, predicted) in enumerate(classes)
    ]


def test_classes_and_confusions_with_the_first_errors():
    study = study_of(Scorer(), {"count": rows(150), "net": rows(200)})
    classes, errors = Page().sections(study)
    assert [[name, count, net] for name, count, net, _ in classes.blocks[1].rows] == [
        ["a", "100", "1.000"],
        ["b", "100", "1.000"],
    ]
    _, count, net = errors.blocks
    table, *wrong = count.blocks
    assert table.rows == [["a", "75", "25"], ["b", "25", "75"]]
    assert [example.title for example in wrong] == [str(150 + n) for n in range(ERRORS)]
    assert len(net.blocks) == 1


def test_scores_by_language():
    coded = [row._replace(language="de" if int(row.id) < 50 else "") for row in rows(40)]
    ((_, _, (table,)),) = languages(study_of(Scorer(), {"net": coded}))
    assert table.rows == [["unknown", "150", "0.000"], ["de", "50", "0.800"]]
    assert languages(study_of(Scorer(), {"net": rows(40)})) == []
