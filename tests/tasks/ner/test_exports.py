"""Exports of NER: other tools read the same spans and characters."""

import json
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wxb.core.errors import WxbError
from wxb.corpora import reading
from wxb.tasks.exports import ExportRecord
from wxb.tasks.ner import exports
from wxb.tasks.ner.metrics import PredictionRow, counts, prf
from wxb.tasks.ner.params import Corpus
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record.spans import Span

WHITE = [c for c in map(chr, range(0x3001)) if c.isspace()]
SCRIPTS = [
    *("Ann", "can't", "3.14", "a_b", "e\u0301", "Ёж", "שלום", "नमस्ते", "สวัสดี", "ភាសា", "한국어"),
    *("東京", "カード", "々", "𠮷", "👩‍👩‍👧", "🇩🇪", "\u200b", "\ufeff", "\xad", "\u0300", "-", "#"),
    *("-DOCSTART-", "-X-", "|", "\\", '"', "\x07", "\x7f"),
]
TYPES = ["AGE", "GIVEN-NAME", "姓名", "0", "O"]

pieces = st.one_of(
    st.sampled_from(SCRIPTS),
    st.sampled_from(WHITE),
    st.just(" "),
    st.characters(codec="utf-8", exclude_characters="\0"),
)
texts = st.lists(pieces, min_size=1, max_size=12).map("".join).filter(str.strip)


@st.composite
def spans_of(draw, text):
    """Disjoint spans without outer white space, some of them adjacent."""
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = []
    for start, end in pairwise(edges):
        mention = text[start:end]
        if mention.strip() and draw(st.booleans()):
            start += len(mention) - len(mention.lstrip())
            type_ = draw(st.sampled_from(TYPES))
            spans.append(Span(start, start + len(mention.strip()), type_))
    return tuple(spans)


@st.composite
def experiment_records(draw):
    """A record of an experiment."""
    text = draw(texts)
    gold, predicted = draw(spans_of(text)), draw(spans_of(text))
    scores = tuple(draw(st.integers(0, 10_000)) / 10_000 for _ in predicted)
    id_, language = draw(st.text("1é", max_size=2)), draw(st.sampled_from(["en", "zh", "ja", None]))
    return ExportRecord(
        id_, text, language, gold, PredictionRow(id_, text, gold, predicted, scores)
    )


@st.composite
def batches(draw):
    """A few records of a corpus or of an experiment."""
    batch = draw(st.lists(experiment_records(), min_size=1, max_size=4))
    if draw(st.booleans()):
        return batch
    return [record._replace(row=None) for record in batch]


def nonblank(text):
    """A text without its white space."""
    return "".join(text.split())


def nonblank_spans(text, spans):
    """Spans with offsets in the text without its white space."""
    return tuple(
        Span(len(nonblank(text[: span.start])), len(nonblank(text[: span.end])), span.type)
        for span in spans
    )


def read_back(content, name, **changes):
    """The records of a file, read by our own reader."""
    corpus = Corpus.model_validate(
        {"task": "ner", "path": "x", "split": {"test": 0.2, "valid": 0.1}, **changes}
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(content)
        return list(reading.read(Path(folder), corpus, Reading()))


def export_record(text="Ann  Lee, 42", gold=(), predicted=None, scores=()):
    gold = tuple(Span(*span) for span in gold)
    predicted = None if predicted is None else tuple(Span(*span) for span in predicted)
    row = None if predicted is None else PredictionRow("7", text, gold, predicted, scores)
    return ExportRecord("7", text, "en", gold, row)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Ann's e-mail: a_b@x.org", "Ann ' s e - mail : a _ b @ x . org"),
        ("12:30, 3.5€", "12 : 30 , 3 . 5 €"),
        ("नमस्ते दुनिया, שָׁלוֹם", "नमस्ते दुनिया , שָׁלוֹם"),
        ("우리 이름은", "우리 이름은"),
        ("我叫Ann，2岁", "我 叫 Ann ， 2 岁"),
        ("コードx1です", "コ ー ド x1 で す"),
        ("ที่นี่ ok", "ที่ นี่ ok"),
        ("cafe\u0301 na\u0308ive", "cafe\u0301 na\u0308ive"),
        ("נ\u200cש", "נ\u200cש"),
    ],
)
def test_tokens_are_words_and_other_characters(text, tokens):
    assert [text[start:end] for start, end in exports.tokenize(text)] == tokens.split(" ")


@given(batches())
def test_conll_is_read_back(batch):
    content = b"".join(exports.conll(batch))
    for column in range(len(exports.spans_by_column(batch[0]))):
        records = read_back(content, "test.conll", conll={"tag": 1 + column, "join": ""})
        assert [record.input for record in records] == [nonblank(record.input) for record in batch]
        gold = [
            nonblank_spans(record.input, exports.spans_by_column(record)[column])
            for record in batch
        ]
        assert [record.gold for record in records] == gold
        assert not any(record.repaired for record in records)


@given(batches())
def test_conll_has_one_token_per_line_for_any_reader(batch):
    content = b"".join(exports.conll(batch)).decode()
    assert content.endswith("\n")
    assert content.splitlines() == content[:-1].split("\n")
    *blocks, last = content.removeprefix("\n").removesuffix("\n").split("\n\n")
    assert len(blocks) + 1 == len(batch)
    for block in (*blocks, last):
        for line in block.split("\n"):
            assert (
                len(line.split())
                == len(line.split("\t"))
                == 1 + len(exports.spans_by_column(batch[0]))
            )


@settings(max_examples=50)
@given(st.lists(experiment_records(), min_size=1, max_size=4))
def test_seqeval_scores_of_the_columns_are_ours(batch):
    blocks = b"".join(exports.conll(batch)).decode().strip("\n").split("\n\n")
    columns = [
        [[line.split("\t")[column] for line in block.split("\n")] for block in blocks]
        for column in (1, 2)
    ]
    with warnings.catch_warnings(action="ignore"):  # no predicted or no gold spans
        theirs = precision_recall_fscore_support(*columns, average="micro", scheme=IOB2)
    ours = prf(counts([r.gold for r in batch], [r.row.predicted for r in batch]).sum(axis=0))
    assert theirs[:3] == pytest.approx(ours)


@given(batches())
def test_jsonl_is_read_back(batch):
    content = b"".join(exports.jsonl(batch))
    assert len(content.decode().splitlines()) == len(batch)
    names = {"input": "text", "type": "label", "language": None, "id": None}
    fields = ["spans"] if batch[0].row is None else ["gold", "spans"]
    for column, field in enumerate(fields):
        records = read_back(content, "test.jsonl", fields={**names, "spans": field})
        assert [record.input for record in records] == [record.input for record in batch]
        assert [record.gold for record in records] == [
            exports.spans_by_column(record)[column] for record in batch
        ]


def test_conll_of_an_experiment_has_gold_then_predicted():
    record = export_record(
        gold=[(0, 8, "NAME")], predicted=[(0, 2, "NAME"), (10, 12, "AGE")], scores=(0.5, 0.25)
    )
    assert b"".join(exports.conll([record, export_record("x", predicted=[])])).decode() == (
        "An\tB-NAME\tB-NAME\nn\tI-NAME\tO\nLee\tI-NAME\tO\n,\tO\tO\n42\tO\tB-AGE\n\nx\tO\tO\n"
    )


def test_jsonl_of_an_experiment_has_predicted_spans_with_scores():
    record = export_record(gold=[(0, 8, "NAME")], predicted=[(10, 12, "AGE")], scores=(0.25,))
    (line,) = exports.jsonl([record])
    assert json.loads(line) == {
        "text": "Ann  Lee, 42",
        "spans": [{"start": 10, "end": 12, "label": "AGE", "score": 0.25}],
        "meta": {"id": "7", "language": "en"},
        "gold": [{"start": 0, "end": 8, "label": "NAME"}],
    }


@pytest.mark.parametrize(
    ("spans", "fault"),
    [
        ([(0, 3, "A"), (2, 8, "B")], r"\(0, 3, 'A'\) and \(2, 8, 'B'\) overlap"),
        ([(0, 3, "A"), (0, 3, "B")], "overlap"),
        ([(0, 4, "A")], "'Ann ', with outer white space"),
        ([(3, 5, "A")], "outer white space"),
        ([(0, 3, "FULL NAME")], "type 'FULL NAME' has white space"),
        ([(0, 3, "\u2028")], "has white space"),
    ],
)
def test_spans_that_columns_cannot_express_are_an_error(spans, fault):
    for record in (
        export_record(gold=spans),
        export_record(gold=[], predicted=spans, scores=(1,) * len(spans)),
    ):
        with pytest.raises(WxbError, match=f"record '7': .*{fault}.* jsonl"):
            list(exports.conll([record]))
        (line,) = exports.jsonl([record])
        assert len(json.loads(line)["spans"]) == len(spans)
