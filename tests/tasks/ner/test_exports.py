"""Exports of NER: other tools read the same spans and characters."""

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.tasks.ner import exports
from wxb.tasks.ner.params import Conll
from wxb.tasks.ner.reading.conll import raw_records
from wxb.tasks.ner.record import Span

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
def batches(draw):
    """A few records with gold and predicted spans."""
    rows = draw(st.lists(texts, min_size=1, max_size=4))
    return [
        {"id": "7", "input": text, "gold": draw(spans_of(text)), "predicted": draw(spans_of(text))}
        for text in rows
    ]


def nonblank(text):
    """A text without its white space."""
    return "".join(text.split())


def nonblank_spans(text, spans):
    """Spans with offsets in the text without its white space."""
    return tuple(
        Span(len(nonblank(text[: span.start])), len(nonblank(text[: span.end])), span.type)
        for span in spans
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Ann's e-mail: a_b@x.org", "Ann ' s e - mail : a _ b @ x . org"),
        ("नमस्ते दुनिया, שָׁלוֹם", "नमस्ते दुनिया , שָׁלוֹם"),
        ("우리 이름은", "우리 이름은"),
        ("我叫Ann，2岁", "我 叫 Ann ， 2 岁"),
        ("コードx1です", "コ ー ド x1 で す"),
        ("ที่นี่ ok", "ที่ นี่ ok"),
        ("cafe\u0301 נ\u200cש", "cafe\u0301 נ\u200cש"),
    ],
)
def test_tokens_are_words_and_other_characters(text, tokens):
    (lines,) = exports.conll([{"input": text, "gold": ()}])
    assert [line.split("\t")[0] for line in lines.splitlines()] == tokens.split(" ")


@given(batches())
def test_conll_is_read_back(batch):
    content = "".join(exports.conll(batch))
    for index, column in enumerate(["gold", "predicted"], start=1):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "test.conll")
            file.write_text(content, encoding="utf-8")
            records = [raw.content for raw in raw_records(file, Conll(tag=index, join=""))]
        assert [record["input"] for record in records] == [nonblank(r["input"]) for r in batch]
        assert [tuple(Span(**span) for span in record["spans"]) for record in records] == [
            nonblank_spans(record["input"], record[column]) for record in batch
        ]


@given(batches())
def test_conll_has_one_token_per_line_for_any_reader(batch):
    content = "".join(exports.conll(batch))
    assert content.splitlines() == content[:-1].split("\n")
    blocks = content.strip("\n").split("\n\n")
    assert len(blocks) == len(batch)
    rows = [line for block in blocks for line in block.split("\n")]
    assert all(len(row.split()) == len(row.split("\t")) == 3 for row in rows)


@pytest.mark.parametrize("kind", ["FULL NAME", "\u2028"])
def test_a_type_with_white_space_is_an_error(kind):
    record = {"id": "7", "input": "Ann", "gold": (Span(0, 3, kind),)}
    with pytest.raises(WxbError, match=r"'7'.*labels.* jsonl"):
        list(exports.conll([record]))
