"""spaCy and our experiments: training, misaligned spans, and comparison on the same records."""

import pytest

from tests.benchmarks.script import script
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import Span

OPTIONS = {"epochs": 8, "seed": 1, "label": "spaCy@test"}


@pytest.fixture(scope="module")
def benchmark():
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install -e '.[benchmarks]'")
    return script("spacy_ner")


def record(index, text, *mentions, language="en"):
    """A record whose first span of each mention is gold; a mention is `value/TYPE`."""
    spans = []
    for mention in mentions:
        value, kind = mention.split("/")
        start = text.index(value)
        spans.append(Span(start, start + len(value), kind))
    return Record(f"id {index}", text, tuple(sorted(spans)), language, text)


NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")
TRAIN = [
    record(f"{name} {age}", f"Yesterday {name} said she was {age}.", f"{name}/NAME", f"{age}/AGE")
    for name in NAMES[:6]
    for age in (31, 42, 57)
]
HELD_OUT = [
    record(name, f"Yesterday {name} said she was 64.", f"{name}/NAME", "64/AGE")
    for name in NAMES[6:]
]


def test_misaligned_spans_are_missed(benchmark):
    chinese = record(1, "我叫王明今年三十", "王明/NAME", "三十/AGE", language="zh")
    fit = benchmark.train_ner(benchmark.pipeline("xx"), [*TRAIN, chinese], [], **OPTIONS)
    rows = benchmark.predict(fit.nlp, [chinese, *HELD_OUT])
    scores = evaluation.evaluate(metrics.Scorer(), [rows]).scores
    assert scores["support"] == 6
    assert scores["recall"]["value"] == pytest.approx(4 / 6, abs=1e-6)


def test_tokens_of_a_misaligned_span_have_no_target(benchmark):
    nlp = benchmark.pipeline("en")
    peer = script("spacy_peer")
    example = peer.example(nlp, record(1, "Dial 555x for Ann", "555/PHONE", "Ann/NAME"))
    assert example.get_aligned_ner() == ["O", None, "O", "U-NAME"]
