"""Misaligned spans in training examples of spaCy."""

import pytest

from tests.benchmarks.script import script
from wxb.corpora.records import Record
from wxb.tasks.ner.record import Span


@pytest.fixture(scope="module")
def benchmark():
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install -e '.[benchmarks]'")
    return script("spacy_ner")


def test_tokens_of_a_misaligned_span_have_no_target(benchmark):
    nlp = benchmark.pipeline("en")
    peer = script("spacy_peer")
    spans = Span(5, 8, "PHONE"), Span(14, 17, "NAME")
    example = peer.example(nlp, Record("1", "Dial 555x for Ann", spans, "en", ""))
    assert example.get_aligned_ner() == ["O", None, "O", "U-NAME"]
