"""Baselines of all tasks: rows of a study that need no training."""

from collections import Counter
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import training_steps
from tests.tasks.speech import tones
from wxb import tasks
from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.tasks.baselines import WORD
from wxb.tasks.chat.baseline import NearestResponder
from wxb.tasks.classification.baseline import GROUPS
from wxb.tasks.ner.baseline import MentionFinder, MentionsMethod
from wxb.tasks.ner.record import Span


class Case(NamedTuple):
    """A baseline, the gold of training records by input, and a prediction's part that is gold."""

    task: str
    kind: str
    gold: dict[str, Any]
    answer: Any
    labels: tuple[str, ...] = ()


CLASSES = {"A fine film.": "good", "A dull film.": "bad", "好电影": "good", "坏电影": "bad"}
CLASSES["A lovely play."] = "good"
SPANS = {
    "Ann Lee lives in Bonn.": (Span(0, 3, "FIRST"), Span(4, 7, "LAST"), Span(17, 21, "CITY")),
    "王芳住在北京。": (Span(0, 1, "LAST"), Span(4, 6, "CITY")),
}
PAIRS = {"我有一只猫": ("I have a cat", "I own a cat"), "我有一本书": ("I have a book",)}
ANSWERS = {"What is 1 plus 2?": "3", "What is 2 plus 2?": "4", "谁写了这本书?": "鲁迅"}
ANSWERS = {question: {"text": text, "kind": None} for question, text in ANSWERS.items()}

TEXTS = [
    Case("classification", "nearest", CLASSES, lambda p: p.label, ("bad", "good")),
    Case("ner", "mentions", SPANS, lambda p: tuple(scored.span for scored in p)),
    Case("translation", "nearest", PAIRS, lambda p: p.text),
    Case("chat", "nearest", ANSWERS, lambda p: p.text),
]
MAJORITY = TEXTS[0]._replace(kind="majority")


def block(task, kind, **changes):
    """An experiment of this baseline."""
    encoding = {"window": 2, "mel_bands": 16} if task == "speech" else {}
    settings = {"encoding": encoding, "model": {"kind": kind}, **changes}
    return training_steps.experiment(task, "baseline", **settings)


def train(folder, case, records):
    """Train as the stages do; returns the predictor, and the same after saving and loading."""
    experiment = block(case.task, case.kind)
    tokenizer = tokenizers.train("words", 100, ["some words"])
    method = tasks.get(case.task).method("baseline")(experiment, case.labels, tokenizer)
    predictor, history, counts = training_steps.train(method, folder, records, folder)
    assert history == [{"step": 0, "epoch": 0}]
    assert counts == {"gold": len(records), "kept": len(records)}
    return predictor, training_steps.saved_and_loaded(predictor, experiment, folder / "model")


def as_records(gold):
    return [Record(str(n), text, value, None, text) for n, (text, value) in enumerate(gold.items())]


@pytest.mark.parametrize("case", [*TEXTS, MAJORITY], ids=lambda case: f"{case.task}-{case.kind}")
def test_texts_without_a_known_word(case, tmp_path):
    predictor, _ = train(tmp_path, case, as_records(case.gold))
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json"}
    predictions = predictor.predict(["", "???", "xyzzy"])
    unknown = {"classification": "good", "ner": ()}.get(case.task, "")
    assert [*map(case.answer, predictions)] == [unknown] * 3
    assert predictor.model_metrics([], predictions) == {}
    assert (predictor.size(), predictor.size(trainable=True)) == (0, 0)


def test_the_majority_is_constant_and_as_sure_as_it_is_frequent(tmp_path):
    predictor, loaded = train(tmp_path, MAJORITY, as_records(CLASSES))
    predictions = predictor.predict([*CLASSES, "anything"])
    assert predictions == [("good", {"bad": 0.4, "good": 0.6})] * 6
    assert loaded.predict(["anything"]) == predictions[:1]


LEXICON = TEXTS[0]._replace(kind="lexicon")


def reviews(*pairs):
    """Twenty groups of records of each text and class."""
    return [
        Record(f"{text} {n}", text, gold, None, f"{gold} {n}")
        for n in range(GROUPS)
        for text, gold in pairs
    ]


def test_a_lexicon_has_log_odds_and_subtracts_negated_words(tmp_path):
    records = reviews(("A fine film.", "good"), ("It is not fine. A film!", "bad"))
    records += reviews(("rare", "bad"))[:1]
    predictor, loaded = train(tmp_path, LEXICON, records)
    lexicon = predictor.model["lexicon"]
    # "fine" counts for the good class, as it is negated in each bad review.
    assert lexicon["fine"] == round(log((2 * GROUPS + 1) / 1), 4)
    assert lexicon["film"] == 0
    assert "rare" not in lexicon
    texts = ["Fine!", "Never fine.", "No film. Fine. " * 999, "I don't find it fine", ""]
    predictions = loaded.predict(texts)
    assert [p.label for p in predictions] == ["good", "bad", "good", "bad", "bad"]
    assert predictions[0].probabilities["good"] == pytest.approx(41 / 42, abs=1e-6)
    assert predictions[-1].probabilities == {"bad": 0.5, "good": 0.5}


def test_a_lexicon_needs_two_classes(tmp_path):
    with pytest.raises(WxbError, match="needs two classes"):
        train(tmp_path, LEXICON._replace(labels=("a", "b", "c")), reviews(("x", "a")))


def test_a_louder_recording_gets_the_same_transcript(tmp_path):
    texts = ("啊哦", "一一", "哎啊", "哦")
    records = [tones.record(tmp_path, text, n) for n, text in enumerate(texts)]
    predictor, _ = train(tmp_path, Case("speech", "nearest", {}, None), records)
    louder = tones.record(tmp_path, "一一", 9)
    assert predictor.predict([louder.input])[0].text == "一一"


words = st.lists(st.sampled_from(["a", "bc", "d1", "猫", "狗"]), min_size=1, max_size=6)


@given(st.lists(words.map(" ".join), min_size=1, max_size=8))
def test_no_text_is_nearer_than_itself(texts):
    for found in NearestResponder({"texts": texts, "gold": texts}, None).nearest(texts, "test"):
        assert found[1] == 1


def test_chinese_texts_share_characters():
    model = {"texts": ["我喜欢猫", "他有一本书"], "gold": [0, 1]}
    found = NearestResponder(model, None).nearest(["一本旧书", "猫"], "test")
    assert [index for index, _ in found] == [1, 0]
    hindi = NearestResponder({"texts": ["दिन", "दान"], "gold": [0, 1]}, None)  # differ by a vowel
    assert hindi.nearest(["दान"], "test") == [(1, 1.0)]


@given(
    st.lists(st.sampled_from(["Ann", "Ann Lee", "Lee", "王", "王芳", "+4", "4"]), min_size=1),
    st.lists(st.sampled_from(["Ann", "Anna", "Lee", " ", "王", "芳", "+4", "4", "."])).map("".join),
)
def test_mentions_are_whole_words_and_disjoint(mentions, text):
    records = [
        Record("", f"{mention} x", (Span(0, len(mention), mention),), None, "")
        for mention in mentions
    ]
    model = MentionsMethod(block("ner", "mentions"), [], None).values(records, "test")
    (scored,) = MentionFinder(model, None).predict([text])
    spans = [span for span, _ in scored]
    assert all(left.end <= right.start for left, right in pairwise(spans))
    inside = {i for word in WORD.finditer(text) for i in range(word.start() + 1, word.end())}
    for start, end, kind in spans:
        assert text[start:end] == kind
        assert not {start, end} & inside
    longest = max(mentions, key=len)
    if text == longest:
        assert spans == [Span(0, len(text), longest)]


def test_a_mention_has_its_most_frequent_type():
    spans = Counter(CITY=2, SURNAME=1)
    records = [Record("", "Bonn", (Span(0, 4, kind),), None, "") for kind in spans.elements()]
    model = MentionsMethod(block("ner", "mentions"), [], None).values(records, "test")
    (scored,) = MentionFinder(model, None, labels=["CITY"]).predict(["In Bonn"])
    assert [span for span, _ in scored] == [Span(3, 7, "CITY")]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"kind": "guess"}},
        {"tuning": {"frozen": True}},
        {"training": {"epochs": 1}},
        {"encoding": {"max_length": 8}},
    ],
    ids=str,
)
def test_settings_of_training_are_refused(changes):
    with pytest.raises(ValueError, match="|".join([*changes, "epochs", "max_length", "kind"])):
        block("chat", "nearest", **changes)
    assert block("chat", "nearest").traits == ["nearest"]


def test_a_baseline_has_no_card(monkeypatch):
    from tests import demo
    from wxb.project.sharing import card

    params = demo.params()
    with pytest.raises(WxbError, match="ner-mentions has no card"):
        card(params, "ner-mentions")
