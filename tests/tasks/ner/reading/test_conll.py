from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from tests.corpora.records import corpus
from wxb.corpora import reading
from wxb.corpora.records import Record, Reject
from wxb.tasks.ner.reading import Reading, conll
from wxb.tasks.ner.reading.conll import Tag
from wxb.tasks.ner.record import Span


def read(folder, content, name="train.txt", **options):
    raw = folder / "raw"
    raw.mkdir(exist_ok=True)
    (raw / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(reading.read_folder(raw, corpus(conll=options), Reading()))


def text_and_mentions(record):
    return record.input, [(record.input[s.start : s.end], s.type) for s in record.gold]


def test_sentences_are_read_with_their_spans(tmp_path):
    content = "Ann\tB-PER\nLee\tI-PER\nsleeps\tO\n.\tO\n\nBonn\tB-LOC\n"
    assert read(tmp_path, content) == [
        Record(
            id="train.txt:line 1",
            input="Ann Lee sleeps .",
            gold=(Span(0, 7, "PER"),),
            language=None,
            group="Ann Lee sleeps .",
        ),
        Record("train.txt:line 6", "Bonn", (Span(0, 4, "LOC"),), None, "Bonn"),
    ]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("Ann NNP I-NP B-PER\nin IN O O\nBonn NNP I-NP B-LOC\n", {}),
        ("Ann   B-PER \nin O\n  Bonn B-LOC", {}),
        ("1\tAnn\tB-PER\tx\n2\tin\tO\tx\n3\tBonn\tB-LOC\tx\n", {"token": 1, "tag": 2}),
        ("B-PER\tAnn\nO\tin\nB-LOC\tBonn", {"token": -1, "tag": 0}),
        ("\ufeffAnn\tB-PER\r\nin\tO\r\nBonn\tB-LOC\r\n\r\n", {}),
        ("\n\t\n\nAnn\tB-PER\nin\tO\nBonn\tB-LOC\n \n\n", {}),
        ("-DOCSTART- -X- O O\nAnn\tB-PER\nin\tO\nBonn\tB-LOC\n", {}),
        ("Ann\tS-PER\nin\tO\nBonn\tU-LOC", {}),
        ("Ann\tW-PER\t\nin\tO\nBonn\tI-LOC", {}),
    ],
)
def test_columns_have_any_order_and_separator(tmp_path, content, options):
    (record,) = read(tmp_path, content, **options)
    expected = ("Ann in Bonn", [("Ann", "PER"), ("Bonn", "LOC")])
    assert text_and_mentions(record) == expected


def test_numbers_after_characters_are_dropped(tmp_path):
    content = "李0\tB-PER.NAM\n明1\tI-PER.NAM\n在0\tO\n😀12\tO\n波0\tB-GPE\n恩1\tI-GPE\n"
    (record,) = read(tmp_path, content, join="", characters=True)
    assert text_and_mentions(record) == ("李明在😀波恩", [("李明", "PER.NAM"), ("波恩", "GPE")])


def test_other_white_space_does_not_separate_columns(tmp_path):
    (record,) = read(tmp_path, "in O\nNew\xa0York B-LOC\n\u3000 O\n")
    assert text_and_mentions(record) == ("in New\xa0York \u3000", [("New\xa0York", "LOC")])


def test_documents_have_one_line_per_sentence(tmp_path):
    head = "-DOCSTART- -X- O O\n"
    content = f"{head}\nAnn\tB-PER\n\nin\tO\nBonn\tB-LOC\n{head}Ulm\tB-LOC\n\n{head}"
    first, second = read(tmp_path, content, unit="document")
    assert text_and_mentions(first) == ("Ann\nin Bonn", [("Ann", "PER"), ("Bonn", "LOC")])
    assert text_and_mentions(second) == ("Ulm", [("Ulm", "LOC")])
    assert [first.id, second.id] == ["train.txt:line 3", "train.txt:line 8"]


def test_sentences_of_a_marked_document_are_a_group(tmp_path):
    head = "-DOCSTART- -X- O O\n\n"
    content = f"before\tO\n\n{head}Ann\tB-PER\n\nBonn\tO\n\n{head}{head}Ulm\tO\n"
    records = read(tmp_path, content, name="test.txt")
    assert [(r.input, r.group) for r in records] == [
        ("before", "test.txt:0"),
        ("Ann", "test.txt:1"),
        ("Bonn", "test.txt:1"),
        ("Ulm", "test.txt:3"),
    ]
    whole = read(tmp_path, content, name="test.txt", unit="document")
    assert [r.group for r in whole] == [r.input for r in whole] == ["before", "Ann\nBonn", "Ulm"]


def test_documents_are_marked_per_file(tmp_path):
    read(tmp_path, "-DOCSTART-\n\nAnn\tO\n\n-DOCSTART-\n\nBonn\n", name="a")
    first, bad, second = read(tmp_path, "Ulm\tO\n\n-DOCSTART-\n", name="b")
    assert (first.group, second.group) == ("a:1", "Ulm")
    assert isinstance(bad, Reject)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *((line, "too few columns") for line in ("Bonn", "Bonn\t", "\u3000")),
        *((f"Bonn\t{tag}", "unknown tag") for tag in ("LOC", "X-LOC", "BI-LOC", "B-", "B", "o")),
        ("Bo\0nn\tO", "NUL character"),
    ],
)
def test_a_bad_line_rejects_its_sentence(tmp_path, line, reason):
    first, bad, last = read(tmp_path, f"Ann\tO\n\nnear\tO\n{line}\n!\tO\n\nUlm\tB-LOC\n")
    assert (first.input, last.input) == ("Ann", "Ulm")
    assert isinstance(bad, Reject)
    assert (bad.origin, bad.reason, bad.id) == ("train.txt:line 3", reason, None)
    assert "line 4" in bad.detail or reason == "NUL character"


def test_a_bad_line_rejects_its_document(tmp_path):
    content = "Ann\tO\n\nBonn\n\n-DOCSTART-\n\nUlm\tB-LOC\n"
    bad, good = read(tmp_path, content, unit="document")
    assert (bad.origin, bad.reason, good.input) == ("train.txt:line 1", "too few columns", "Ulm")


def test_token_and_tag_must_be_different_columns(tmp_path):
    (item,) = read(tmp_path, "a b B-LOC\n", token=2, tag=-1)
    assert item.reason == "too few columns"


def test_blank_sentences_are_rejected_and_replacement_characters_kept(tmp_path):
    blank, kept = read(tmp_path, "\u3000\tO\n \tO\n\n\ufffd\tB-X\n\u2028\tO\n\ufffd\tO\n")
    assert blank.reason == "blank text"
    assert text_and_mentions(kept) == ("\ufffd \u2028 \ufffd", [("\ufffd", "X")])


def marked(begin, inside, last, single):
    return lambda n: [single] if n == 1 else [begin, *inside * (n - 2), last]


SCHEMES = {
    "IOB2": lambda length: ["B", *["I"] * (length - 1)],
    "BIOES": marked("B", "I", "E", "S"),
    "BILOU": marked("B", "I", "L", "U"),
    "BMEWO": marked("B", "M", "E", "W"),
}


def tag_tokens(length, chunks, scheme):
    """The names of the tags of a sentence with these chunks, in order and disjoint."""
    names = ["O"] * length
    previous = None
    for first, end, type_ in chunks:
        if scheme == "IOB1":
            prefixes = ["I"] * (end - first)
            if previous is not None and previous[1:] == (first, type_):
                prefixes[0] = "B"
        else:
            prefixes = SCHEMES[scheme](end - first)
        names[first:end] = [f"{prefix}-{type_}" for prefix in prefixes]
        previous = first, end, type_
    return names


@st.composite
def sentences(draw, tokens):
    """Tokens and disjoint chunks of them."""
    words = draw(st.lists(tokens, min_size=1, max_size=12))
    cuts = sorted(draw(st.sets(st.integers(0, len(words)), max_size=8)))
    types = st.sampled_from([None, "A", "B-c"])
    chunks = [(a, b, draw(types)) for a, b in pairwise(cuts)]
    return words, [chunk for chunk in chunks if chunk[2]]


prefixes = st.sampled_from("BIES")
names = st.just("O") | st.builds("{}-{}".format, prefixes, st.sampled_from(["A", "B-c"]))


@given(st.lists(names, max_size=12))
def test_spans_of_any_tags_are_those_of_seqeval(names):
    tags = [Tag(*name.split("-", 1)) if name != "O" else conll.OUTSIDE for name in names]
    spans = [(type_, first, end - 1) for first, end, type_ in conll.token_spans(tags)]
    assert spans == get_entities(names)


odd = st.sampled_from("\u3000\xa0\u2028\x85 \r\x0b") | st.characters(
    exclude_categories=["Cs"], exclude_characters="\t\n\0\ufeff"
)


@given(
    st.lists(sentences(st.text(odd, min_size=1, max_size=4)), min_size=1, max_size=4),
    st.sampled_from(["IOB1", *SCHEMES]),
    st.sampled_from([" ", ""]),
    st.sampled_from(["sentence", "document"]),
)
def test_spans_select_the_tokens_of_their_chunk(tmp_path_factory, items, scheme, join, unit):
    content = "\n\n".join(
        "\n".join(
            f"{token}\t{name}"
            for token, name in zip(words, tag_tokens(len(words), chunks, scheme), strict=True)
        )
        for words, chunks in items
    )
    texts = [join.join(words) for words, _ in items]
    mentions = [[join.join(words[a:b]) for a, b, _ in chunks] for words, chunks in items]
    if unit == "document":
        texts, mentions = ["\n".join(texts)], [[*chain(*mentions)]]
    records = read(tmp_path_factory.getbasetemp(), content, join=join, unit=unit)
    assert len(records) == len(texts)
    for record, text, expected in zip(records, texts, mentions, strict=True):
        if isinstance(record, Reject):
            blank = not text.strip() or any(not mention.strip() for mention in expected)
            assert blank
            assert record.reason in ("blank text", "blank span")
            continue
        assert record.input == text
        selected = [text[span.start : span.end] for span in record.gold]
        assert selected == [mention.strip() for mention in expected]
