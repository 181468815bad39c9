"""BLEU, chrF and TER: those of sacrebleu, from sums that any records can be drawn of."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from wxb.corpora.records import Record
from wxb.metrics.bootstrap import intervals, paired
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.metrics.words import Words, unseen, words
from wxb.tasks.translation.predictor import Hypothesis, Translation

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


def streams(gold):
    most = max(map(len, gold))
    return [[refs[i] if i < len(refs) else None for refs in gold] for i in range(most)]


@given(pairs)
@settings(deadline=None)
def test_scores_are_those_of_sacrebleu(drawn):
    predicted, gold = zip(*drawn, strict=True)
    table = sums.statistics(predicted, gold)
    found = metrics.Scorer().scores(table.sum(axis=0))
    for metric, key in ((BLEU(), "bleu"), (CHRF(), "chrf"), (TER(), "ter")):
        expected = metric.corpus_score([*predicted], streams(gold)).score
        assert float(found[key]) == pytest.approx(expected, abs=1e-6), key
    exact = np.mean([one in refs for one, refs in drawn])
    assert float(found["exact"]) == pytest.approx(exact)


def test_references_in_chinese_are_cut_into_characters():
    predicted, gold = ["我喜欢猫。", "你好"], [["我喜欢狗。"], ["你好吗？"]]
    expected = BLEU(tokenize="zh").corpus_score(predicted, streams(gold)).score
    found = sums.statistics(predicted, gold).sum(axis=0)
    assert float(sums.bleu(found)) == pytest.approx(expected)
    edits = TER(normalized=True, asian_support=True).corpus_score(predicted, streams(gold)).score
    assert float(sums.ter(found)) == pytest.approx(edits)
    assert 0 < edits < 50
    assert "tok:13a" in metrics.Scorer().SIGNATURE
    assert "tok:zh where references are Chinese" in metrics.Scorer().SIGNATURE
    assert "case:mixed" in metrics.Scorer().SIGNATURE


def test_many_sums_at_once_have_the_scores_of_each():
    rng = np.random.default_rng(0)
    table = sums.statistics(["the cat", "a dog sat on the mat"], [["the cat"], ["a cat sat on it"]])
    many = rng.integers(0, 3, (5, 2)) @ table
    for key, found in metrics.Scorer().scores(many).items():
        each = [float(metrics.Scorer().scores(row)[key]) for row in many]
        assert found.tolist() == pytest.approx(each), key


def made(seed):
    """References, and the translations of a good and of a worse system."""
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{n}" for n in range(50)]
    gold = [[" ".join(rng.choice(vocabulary, rng.integers(5, 15)))] for _ in range(300)]

    def noisy(share):
        return [
            " ".join(w if rng.random() > share else rng.choice(vocabulary) for w in refs[0].split())
            for refs in gold
        ]

    return gold, noisy(0.3), noisy(0.36)


def test_intervals_and_pairs_are_those_of_sacrebleu_within_resampling():
    gold, a, b = made(1)
    tables = [sums.statistics(system, gold) for system in (a, b)]
    options = {"resamples": 2000, "seed": 1}
    interval = intervals(tables[0], metrics.Scorer().scores, **options)["bleu"]
    difference = paired(*tables, lambda s: metrics.Scorer().scores(s)["bleu"], **options)
    named = {"BLEU": BLEU()}
    test = PairedTest([("a", a), ("b", b)], named, streams(gold), test_type="bs", n_samples=2000)
    _, scores = test()
    theirs, other = scores["BLEU"]
    assert interval.value == pytest.approx(theirs.score, abs=1e-6)
    assert (interval.high - interval.low) / 2 == pytest.approx(theirs.ci, rel=0.15)
    assert difference.value == pytest.approx(theirs.score - other.score, abs=1e-6)
    # Theirs counts one side, of differences without a sign.
    assert difference.p_value / 2 == pytest.approx(other.p_value, abs=0.02)


def record(source, *references, group=""):
    return Record(source, source, references, None, group or source)


KNOWN = Words.of([record("我有一只猫。", "I have a cat."), record("他跑。", "He runs.")])


def test_words_are_characters_of_chinese_and_words_elsewhere():
    assert words("Tom有3只猫, okay?") == ["tom", "有", "3", "只", "猫", "okay"]


@pytest.mark.parametrize(
    ("source", "references", "new"),
    [
        ("我有猫", ["i HAVE a cat!"], False),
        ("我有狗", ["I have a cat."], True),
        ("我有猫", ["I have a dog."], True),
        ("我有猫", ["I have a dog.", "I have a cat."], False),
    ],
)
def test_a_record_is_new_where_its_source_or_all_references_are(source, references, new):
    assert unseen(record(source, *references), KNOWN) == new


def test_a_row_comes_back_as_it_was_kept():
    attention = {"source": ["a"], "target": ["b"], "weights": [[1.0]]}
    told = Translation([Hypothesis("x", -1.0), Hypothesis("y", -2.0)], attention=attention)
    row = metrics.Scorer().judge(record("a b", "x", "z", group="g"), told, KNOWN)
    assert (row.predicted, row.group, row.gold) == ("x", "g", ("x", "z"))
    assert metrics.Scorer().parse(json.loads(json.dumps(row._asdict()))) == row
    assert metrics.Scorer().judge(record("a b", "x"), told, KNOWN).group == ""


def test_details_tell_every_sentence_once_by_length_and_once_by_words(tmp_path):
    rows = [
        metrics.Judged(str(n), " ".join(["w"] * n), ("a b c d",), "a b c d", unseen=n % 2 == 0)
        for n in range(1, 24)
    ]
    found = metrics.Scorer().details(rows)["by_kind"]
    counts = [row["sentences"] for row in found.values()]
    assert sum(counts[:4]) == sum(counts[4:]) == len(rows)
    assert found["a word that training lacks"]["bleu"] == pytest.approx(100)
    metrics.Scorer().write_details(tmp_path, rows)
    lines = (tmp_path / metrics.BREAKDOWN).read_text().splitlines()
    assert lines[0].startswith("kind,sentences,bleu,chrf")
    assert len(lines) == 1 + len(found)
