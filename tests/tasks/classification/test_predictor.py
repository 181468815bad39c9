import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.classification import trained
from tests.tasks.classification.trained import RECORDS, TEXTS
from wxb.corpora.text import tokenizers
from wxb.project.trained import load
from wxb.tasks.classification import predictor as shared
from wxb.tasks.classification.encoder.method import Method as Encoder
from wxb.tasks.classification.metrics import calibration
from wxb.tasks.classification.recurrent.method import Method as Recurrent
from wxb.tasks.classification.tfidf.method import Method as Tfidf

WAYS = {
    "cls": (Encoder, trained.encoder("cls"), "wordpiece"),
    "mean": (Encoder, trained.encoder("mean"), "wordpiece"),
    "recurrent": (Recurrent, trained.recurrent(), "words"),
    "tfidf": (Tfidf, trained.tfidf(), "words"),
}


@pytest.fixture(scope="module", params=WAYS)
def both(request, tmp_path_factory):
    """A predictor as it was trained, and as it was saved and loaded."""
    method, experiment, kind = WAYS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return *trained.train(method, experiment, folder, kind), folder / "model"


def test_it_learned_and_comes_back_the_same(both):
    before, after, folder = both
    texts = [text for text, _ in TEXTS]
    found = after.predict(texts)
    assert (
        np.mean([one.label == record.gold for one, record in zip(found, RECORDS, strict=True)])
        > 0.9
    )
    for one, other in zip(before.predict(texts), found, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-4)
    assert [one.label for one in load(folder).predict(texts)] == [one.label for one in found]
    assert after.size() >= after.size(trainable=True) > 0


def test_probabilities_are_told_and_sum_to_one(both):
    _, after, _ = both
    (one,) = after.predict(["The film today was lovely."])
    assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-5)
    told = after.describe("", one)
    assert next(iter(told["probabilities"])) == told["label"] == one.label == "good"
    assert after.show("The film today was lovely.", one).startswith("good ")
    assert after.predict([]) == []


def test_a_batch_says_what_single_texts_do(both):
    _, after, _ = both
    texts = [
        "The film today was lovely.",
        "dull",
        "",
        "The play today was weak. " * 20,
        "unknownword",
    ]
    together = after.predict(texts)
    for text, one in zip(texts, together, strict=True):
        assert after.predict([text])[0].probabilities == pytest.approx(one.probabilities, abs=1e-4)


def test_the_words_that_decide_are_told_of_the_first_texts(both):
    _, after, _ = both
    texts = [text for text, _ in TEXTS]
    found = after.predict(texts)
    assert [one.evidence is None for one in found] == [False] * 3 + [True] * (len(texts) - 3)
    for text, one in zip(texts[:3], found[:3], strict=True):
        assert all(0 <= start < end <= len(text) for start, end, _ in one.evidence)
        words = {text[start:end] for start, end, _ in one.evidence}
        assert {*trained.GOOD, *trained.BAD} & {*" ".join(words).split()}


def test_temperature_is_chosen_and_told(both):
    _, after, _ = both
    found = after.predict([text for text, _ in TEXTS])
    told = after.further_metrics(RECORDS, found)
    assert told["temperature"] == after.settings["temperature"] != 1
    after.settings["temperature"] = 1.0
    plain = after.predict([text for text, _ in TEXTS])
    right = np.array([one.label == record.gold for one, record in zip(plain, RECORDS, strict=True)])
    sure = np.array([max(one.probabilities.values()) for one in plain])
    error = float(calibration.error(calibration.histogram(right, sure).sum(axis=0)))
    after.settings["temperature"] = told["temperature"]
    assert told["ece_uncalibrated"] == pytest.approx(error, abs=1e-3)


def test_what_decided_is_told_where_it_is_asked(both):
    _, after, _ = both
    text = TEXTS[0][0]
    told = after.describe(text, after.predict([text])[0])["evidence"]
    assert told
    assert all(one["text"] == text[one["start"] : one["end"]] for one in told)
    bare = after.predict([text] * 4)[3]
    assert "evidence" not in after.describe(text, bare)


@given(st.integers(0, 300), st.integers(4, 64), st.sampled_from(["start", "ends"]))
def test_what_is_kept_of_a_text_is_in_its_order_and_no_more_than_fits(length, room, keep):
    places = shared.kept_places(length, room, keep)
    assert len(places) == min(length, room)
    assert (np.diff(places) > 0).all()
    if length > room:
        assert places[0] == 0
        assert (places[-1] == length - 1) == (keep == "ends")


def test_pieces_of_a_word_are_summed():
    text = "unhappy end"
    assert shared.by_word(text, [(0, 2, 0.5), (2, 7, 0.25), (8, 11, 1.0)]) == [
        (0, 7, 0.75),
        (8, 11, 1.0),
    ]


def test_what_tells_the_publisher_is_not_read(tmp_path):
    text = "LONDON (Reuters) - They met."
    tokenizers.train("words", 300, [text]).save_pretrained(tmp_path)
    encoded = tokenizers.encode(tokenizers.SavedTokenizer(tmp_path), [text, "They met."])
    left = shared.without_giveaways(encoded, [text, "They met."], "removed")
    first, second = (left.ids[left.splits[k] : left.splits[k + 1]].tolist() for k in (0, 1))
    assert first == second
    assert shared.without_giveaways(encoded, [text, "They met."], "kept") is encoded
