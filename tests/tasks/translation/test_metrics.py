"""BLEU, chrF and TER equal those of sacrebleu, for sums over any records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from wxb.corpora.records import Record
from wxb.metrics.intervals import Groups, intervals
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import unseen, words

sentences = st.lists(
    st.sampled_from(["the", "a", "cat", "dog", "sat", ".", ",", "mat", "!", "Tom's"]),
    min_size=1,
    max_size=12,
).map(" ".join)
pairs = st.lists(
    st.tuples(sentences | st.just(""), st.lists(sentences, min_size=1, max_size=3)),
    min_size=1,
    max_size=8,
)


def rows_of(predicted, gold):
    pairs = zip(predicted, gold, strict=True)
    return [metrics.PredictionRow("", "", tuple(refs), text) for text, refs in pairs]


def streams(gold):
    most = max(map(len, gold))
    return [[refs[i] if i < len(refs) else None for refs in gold] for i in range(most)]


@given(pairs)
@settings(deadline=None)
def test_scores_are_those_of_sacrebleu(drawn):
    predicted, gold = zip(*drawn, strict=True)
    scores = metrics.Scorer().scores(metrics.Scorer().sums(rows_of(predicted, gold)))
    for metric, key in ((BLEU(), "bleu"), (CHRF(), "chrf"), (TER(), "ter")):
        expected = metric.corpus_score([*predicted], streams(gold)).score
        assert float(scores[key]) == pytest.approx(expected, abs=1e-6), key
    exact = np.mean([text in refs for text, refs in drawn])
    assert float(scores["exact"]) == pytest.approx(exact)


def test_perfect_translations_are_not_certain():
    """sacrebleu's score of them is a little above 100, which is no value of the metric."""
    texts = [f"the dog number {number} sat on the mat" for number in range(20)]
    scorer = metrics.Scorer()
    groups = Groups.from_records([scorer.statistics(rows_of(texts, [[text] for text in texts]))])
    found = intervals(groups, scorer.scores, scorer.METRICS)
    assert found["bleu"] == pytest.approx((100, 100 * 0.025**0.05, 100))
    assert found["ter"] == pytest.approx((0, 0, 100 * (1 - 0.025**0.05)))


def test_thai_and_chinese_references_are_split_into_characters():
    sums = metrics.Scorer().sums(rows_of(["ฉันชอบแมว"], [["ฉันชอบหมา"]]))
    assert float(metrics.Scorer().scores(sums)["ter"]) == pytest.approx(100 * 2 / 9)
    predicted, gold = ["我喜欢猫。", "你好"], [["我喜欢狗。"], ["你好吗？"]]
    expected = BLEU(tokenize="zh").corpus_score(predicted, streams(gold)).score
    scores = metrics.Scorer().scores(metrics.Scorer().sums(rows_of(predicted, gold)))
    assert float(scores["bleu"]) == pytest.approx(expected)
    edits = TER(normalized=True, asian_support=True).corpus_score(predicted, streams(gold)).score
    assert float(scores["ter"]) == pytest.approx(edits)
    assert 0 < edits < 50
    assert "tok:13a" in metrics.Scorer().SIGNATURE
    assert "tok:zh where references are Chinese" in metrics.Scorer().SIGNATURE
    assert "case:mixed" in metrics.Scorer().SIGNATURE


@pytest.mark.parametrize(
    ("reference", "predicted"),
    [
        ("猫がソファで寝ています。", "猫がソファで座っています。"),
        ("แมวนอนบนโซฟา", "แมวนั่งบนโซฟา"),
        ("ឆ្មាដេកលើសាឡុង", "ឆ្មាអង្គុយលើសាឡុង"),
    ],
)
def test_scripts_without_spaces_are_split_into_characters(reference, predicted):
    expected = BLEU(tokenize="char").corpus_score([predicted], [[reference]]).score
    scorer = metrics.Scorer()
    scores = scorer.scores(scorer.sums(rows_of([predicted], [[reference]])))
    assert float(scores["bleu"]) == pytest.approx(expected)
    assert expected > 30
    assert "tok:char where they are Japanese" in scorer.SIGNATURE


def record(source, *references, group=""):
    return Record(source, source, references, None, group or source)


KNOWN = metrics.Scorer().vocabulary(
    [record("我有一只猫。", "I have a cat."), record("他跑。", "He runs.")]
)


def test_a_chinese_character_is_a_word():
    assert words("Tom有3只猫, okay?") == ["tom", "有", "3", "只", "猫", "okay"]


@pytest.mark.parametrize(
    ("source", "references", "expected"),
    [
        ("我有猫", ["i HAVE a cat!"], False),
        ("我有狗", ["I have a cat."], True),
        ("我有猫", ["I have a dog."], True),
        ("我有猫", ["I have a dog.", "I have a cat."], False),
    ],
)
def test_a_record_is_unseen_if_its_source_or_all_references_are(source, references, expected):
    assert unseen(record(source, *references), KNOWN) == expected


def test_details_count_every_sentence_once_by_length_and_once_by_words():
    rows = [
        metrics.PredictionRow(
            str(n), " ".join(["w"] * n), ("a b c d",), "a b c d", unseen=n % 2 == 0
        )
        for n in range(1, 24)
    ]
    by_kind = metrics.Scorer().details(rows)["by_kind"]
    counts = [row["sentences"] for row in by_kind.values()]
    assert sum(counts[:4]) == sum(counts[4:]) == len(rows)
    assert by_kind["a word that training lacks"]["bleu"] == pytest.approx(100)
