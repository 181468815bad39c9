from pathlib import Path
from types import SimpleNamespace

from wxb.tasks.classification import card
from wxb.tasks.classification.metrics import CLASSES


def test_further_test_sets_are_named(tmp_path):
    (tmp_path / CLASSES).write_text("class,precision,recall,f1,support,predicted\na,1,1,1,2,2\n")
    names = ("accuracy", "accuracy_low", "other-source_accuracy", "other-source_accuracy_high")
    experiment = SimpleNamespace(method="tfidf")
    facts = card.Card().facts(experiment, Path("none"), tmp_path, dict.fromkeys(names, 0.5))
    assert facts["further"] == ["other-source"]
