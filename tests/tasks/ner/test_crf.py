"""The CRF as a method: from records to saved predictors."""

import pytest

from tests import training_steps
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.corpora.text.tokenizers import SavedTokenizer
from wxb.tasks.ner.crf import CrfMethod, CrfRecognizer
from wxb.tasks.ner.record import Span

EXPERIMENT = training_steps.experiment("ner", "crf", training={"max_iterations": 30})
NAMES = ["Ann", "Bob", "Zoë Müller", "李明"]


def records():
    rows = [("", ()), ("no one is here.", ()), ("no \x1f one", ())]  # a token of white space
    for name in NAMES:
        for before, after in (("", " is here."), ("We saw ", " today."), ("It was ", ", not me.")):
            span = Span(len(before), len(before) + len(name), "NAME")
            rows.append((f"{before}{name}{after}", (span,)))
    return [Record(str(i), text, gold, "en", str(i)) for i, (text, gold) in enumerate(rows)]


def fit(records, folder):
    """The predictor, the history and the counts of gold spans after training."""
    texts = [record.input for record in records]
    tokenizers.train("words", 10, texts).save_pretrained(folder / "tokenizer")
    method = CrfMethod(EXPERIMENT, ["NAME"], SavedTokenizer(folder / "tokenizer"))
    return training_steps.train(method, folder, records, folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return fit(records(), tmp_path_factory.mktemp("crf"))


@pytest.mark.parametrize(
    ("text", "gold"), [("no one", ()), ("Ann", (Span(0, 3, "NAME"),)), ("", ())]
)
def test_records_with_one_tag_are_refused(text, gold, tmp_path):
    with pytest.raises(WxbError, match="needs training records with words in spans and outside"):
        fit([Record("0", text, gold, "en", "0")], tmp_path)


def test_it_learns_and_counts_its_gold(trained):
    predictor, history, counts = trained
    assert counts["gold"] == counts["kept"] == 3 * len(NAMES)
    assert history[-1]["loss"] < history[0]["loss"]
    predicted = predictor.predict([record.input for record in records()])
    assert [tuple(s.span for s in spans) for spans in predicted] == [r.gold for r in records()]
    assert all(0 < scored.score <= 1 for spans in predicted for scored in spans)
    assert predictor.model_metrics(records(), predicted) == {"seqeval_f1": 1.0}


def test_a_saved_predictor_predicts_the_same(trained, tmp_path):
    predictor, _, _ = trained
    predictor.save(tmp_path)
    assert read_json(tmp_path / "wxb.json")["method"] == "crf"
    loaded = CrfRecognizer.load(tmp_path)
    texts = ["We saw Ann, not Carl.", "", "   "]
    assert loaded.predict(texts) == predictor.predict(texts)
    assert loaded.size() == predictor.size() > 0
    assert loaded.types == ["NAME"]
    write_json(tmp_path / "features.json", read_json(tmp_path / "features.json")[1:])
    with pytest.raises(WxbError, match="lacks features"):
        CrfRecognizer.load(tmp_path)
