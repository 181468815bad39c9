"""From records to items: every reference is an item, and too long ones are counted as lost."""

import numpy as np
import pytest

from tests import training_steps
from tests.tasks.translation.translators import LONGEST, PAIRS, experiment, tokenizer
from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.corpora.text import tokenizers
from wxb.tasks.translation.seq2seq import Seq2SeqMethod

RECORDS = [
    Record("1", "一二三", ("One.", PAIRS[0]["english"] * 9), None, "a"),
    Record("2", PAIRS[1]["chinese"] * 9, ("Two!", "Too!"), None, "b"),
]


@pytest.fixture
def items(tmp_path):
    method = Seq2SeqMethod(experiment(), [], tokenizer())
    features, targets, counts = training_steps.encode(method, RECORDS, tmp_path)
    assert counts == {"gold": 4, "kept": 3, "lost": 1}
    items = method.items(features, targets, RECORDS)
    lengths = [(len(item["labels"]), len(item["input_ids"])) for item in items]
    assert lengths == sorted(lengths)
    return items


def test_every_reference_that_fits_is_an_item_with_its_source(items):
    backend = tokenizer().backend_tokenizer
    assert {backend.decode(item["labels"].tolist()) for item in items} == {"One.", "Two!", "Too!"}
    assert {int(item["labels"][-1]) for item in items} == {tokenizer().eos_token_id}
    by_text = {backend.decode(i["labels"].tolist()): i["input_ids"] for i in items}
    assert backend.decode(by_text["One."].tolist()) == RECORDS[0].input
    assert len(by_text["Two!"]) == LONGEST
    truncated = backend.decode(by_text["Two!"].tolist())  # perhaps within a character
    assert RECORDS[1].input.startswith(truncated.rstrip("\N{REPLACEMENT CHARACTER}"))


def test_a_tokenizer_without_eos_is_an_error():
    other = tokenizers.train("wordpiece", 300, ["a b"])
    with pytest.raises(WxbError, match="byte-level-bpe"):
        Seq2SeqMethod(experiment(), [], other)


def test_validation_metrics_are_bleu_of_the_sums():
    statistics = np.array([[4, 4, 4, 3, 2, 1, 4, 3, 2, 1]] * 3, float)
    assert Seq2SeqMethod.compute_metrics(statistics, np.zeros(3)) == {"bleu": pytest.approx(100)}
