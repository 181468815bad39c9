"""What other tools read from an export is what was exported: every span, every character."""

import importlib.util
import json
import os
import sys
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wxb.corpora import clean, reading
from wxb.corpora.records import Record
from wxb.errors import WxbError
from wxb.files import write_json
from wxb.metrics import evaluation
from wxb.params import check, read_yaml
from wxb.tasks.ner import exports, metrics
from wxb.tasks.ner import reading as ner_reading
from wxb.tasks.ner import record as labelling
from wxb.tasks.ner.exports import Exported
from wxb.tasks.ner.metrics import Judged, counts, prf
from wxb.tasks.ner.params import Corpus
from wxb.tasks.ner.record.spans import Span

ROOT = Path(__file__).parents[3]

needs_spacy = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None,
    reason="spaCy is not installed: pip install -e '.[benchmarks]'",
)

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
def judged(draw):
    text = draw(texts)
    gold, predicted = draw(spans_of(text)), draw(spans_of(text))
    scores = tuple(draw(st.integers(0, 10_000)) / 10_000 for _ in predicted)
    id_, language = draw(st.text("1é", max_size=2)), draw(st.sampled_from(["en", "zh", "ja", None]))
    return Exported(id_, text, language, gold, predicted, scores)


@st.composite
def batches(draw):
    """A few records of a corpus or of an experiment."""
    batch = draw(st.lists(judged(), min_size=1, max_size=4))
    if draw(st.booleans()):
        return batch
    return [record._replace(predicted=None, scores=()) for record in batch]


def nonblank(text):
    """A text without its white space."""
    return "".join(text.split())


def in_ink(text, spans):
    """Spans of a text as spans of its visible characters."""
    return tuple(
        Span(len(nonblank(text[: span.start])), len(nonblank(text[: span.end])), span.type)
        for span in spans
    )


def read_back(content, name, **changes):
    """The records that the corpora's own reader finds in a file."""
    corpus = Corpus.model_validate(
        {"task": "ner", "path": "x", "split": {"test": 0.2, "valid": 0.1}, **changes}
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(content)
        return list(reading.read(Path(folder), corpus, ner_reading))


def exported(text="Ann  Lee, 42", gold=(), predicted=None, **changes):
    spans = [
        None if given is None else tuple(Span(*s) for s in given) for given in (gold, predicted)
    ]
    return Exported("7", text, "en", *spans, **changes)


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
def test_tokens_are_words_and_single_marks(text, tokens):
    assert [text[start:end] for start, end in exports.cut(text)] == tokens.split(" ")


@given(texts.flatmap(lambda text: st.tuples(st.just(text), spans_of(text), spans_of(text))))
def test_tokens_lose_nothing_but_white_space(drawn):
    text, gold, predicted = drawn
    tokens = exports.cut(text, gold, predicted)
    assert "".join(text[start:end] for start, end in tokens) == nonblank(text)
    assert not any(c.isspace() for start, end in tokens for c in text[start:end])


@given(texts.flatmap(lambda text: st.tuples(st.just(text), spans_of(text), spans_of(text))))
def test_tags_on_token_offsets_are_the_spans(drawn):
    text, gold, predicted = drawn
    tokens = exports.cut(text, gold, predicted)
    for spans in (gold, predicted):
        tags = exports.iob2(tokens, spans)
        found = [Span(tokens[a][0], tokens[b][1], type_) for type_, a, b in get_entities(tags)]
        assert found == list(spans)


@given(batches())
def test_conll_is_read_back(batch):
    content = b"".join(exports.conll(batch))
    for column in range(len(batch[0].columns)):
        found = read_back(content, "test.conll", conll={"tag": 1 + column, "join": ""})
        assert [record.input for record in found] == [nonblank(record.text) for record in batch]
        gold = [in_ink(record.text, record.columns[column]) for record in batch]
        assert [record.gold for record in found] == gold
        assert not any(record.repaired for record in found)


@given(batches())
def test_conll_has_its_form_for_any_reader_of_lines(batch):
    content = b"".join(exports.conll(batch)).decode()
    assert content.endswith("\n")
    assert content.splitlines() == content[:-1].split("\n")
    *blocks, last = content.removeprefix("\n").removesuffix("\n").split("\n\n")
    assert len(blocks) + 1 == len(batch)
    for block in (*blocks, last):
        for line in block.split("\n"):
            assert len(line.split()) == len(line.split("\t")) == 1 + len(batch[0].columns)


@settings(max_examples=50)
@given(st.lists(judged(), min_size=1, max_size=4))
def test_seqeval_scores_the_columns_as_our_scorer_does_the_spans(batch):
    blocks = b"".join(exports.conll(batch)).decode().strip("\n").split("\n\n")
    columns = [
        [[line.split("\t")[column] for line in block.split("\n")] for block in blocks]
        for column in (1, 2)
    ]
    with warnings.catch_warnings(action="ignore"):  # nothing predicted, or nothing to find
        theirs = precision_recall_fscore_support(*columns, average="micro", scheme=IOB2)
    ours = prf(counts([r.gold for r in batch], [r.predicted for r in batch]).sum(axis=0))
    assert theirs[:3] == pytest.approx(ours)


@given(batches())
def test_jsonl_is_read_back(batch):
    content = b"".join(exports.jsonl(batch))
    assert len(content.decode().splitlines()) == len(batch)
    names = {"input": "text", "type": "label", "language": None, "id": None}
    fields = ["spans"] if batch[0].predicted is None else ["gold", "spans"]
    for column, field in enumerate(fields):
        found = read_back(content, "test.jsonl", fields={**names, "spans": field})
        assert [record.input for record in found] == [record.text for record in batch]
        assert [record.gold for record in found] == [record.columns[column] for record in batch]


@needs_spacy
@settings(max_examples=50)
@given(batches())
def test_docbin_is_read_back(batch):
    import spacy
    from spacy.tokens import DocBin

    (content,) = exports.docbin(batch)
    docs = list(DocBin().from_bytes(content).get_docs(spacy.blank("xx").vocab))
    for doc, record in zip(docs, batch, strict=True):
        assert doc.text == record.text
        *_, shown = record.columns
        assert _spans(doc.ents) == shown
        if record.predicted is not None:
            assert _spans(doc.gold["gold"]) == record.gold
        assert doc.user_data == {"id": record.id, "language": record.language}
    assert list(exports.docbin(batch)) == [content], "the same records gave other bytes"


def _spans(found):
    return tuple(Span(span.start_char, span.end_char, span.label_) for span in found)


@needs_spacy
def test_spacy_trains_on_an_export(tmp_path):
    import spacy
    from spacy.training import Corpus as SpacyCorpus

    path = tmp_path / "train.spacy"
    records = [exported(gold=[(0, 8, "NAME"), (10, 12, "AGE")]), exported("Bob\n\n31 ")]
    exports.write(records, "spacy", path)
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = list(SpacyCorpus(path)(nlp))
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("ner").labels == ("AGE", "NAME")
    # What spaCy's models see of a word, by the pipeline that reads it.
    assert [token.norm_ for token in examples[0].reference] == ["ann", " ", "lee", ",", "42"]
    assert examples[0].get_aligned_ner() == ["B-NAME", "I-NAME", "L-NAME", "O", "U-AGE"]


def test_without_spacy_it_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    with pytest.raises(WxbError, match=r"pip install --editable '\.\[benchmarks\]'"):
        exports.write([exported()], "spacy", tmp_path / "test.spacy")
    assert list(tmp_path.iterdir()) == []


def test_conll_of_an_experiment_has_gold_then_predicted():
    record = exported(
        gold=[(0, 8, "NAME")], predicted=[(0, 2, "NAME"), (10, 12, "AGE")], scores=(0.5, 0.25)
    )
    assert b"".join(exports.conll([record, exported("x", predicted=[])])).decode() == (
        "An\tB-NAME\tB-NAME\nn\tI-NAME\tO\nLee\tI-NAME\tO\n,\tO\tO\n42\tO\tB-AGE\n\nx\tO\tO\n"
    )


def test_jsonl_of_an_experiment_has_predicted_spans_with_scores():
    record = exported(gold=[(0, 8, "NAME")], predicted=[(10, 12, "AGE")], scores=(0.25,))
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
        ([(0, 3, "FULL NAME")], "type 'FULL NAME' holds white space"),
        ([(0, 3, "\u2028")], "holds white space"),
    ],
)
def test_what_columns_cannot_express_is_an_error(spans, fault):
    for record in (
        exported(gold=spans),
        exported(gold=[], predicted=spans, scores=(1,) * len(spans)),
    ):
        with pytest.raises(WxbError, match=f"record '7': .*{fault}.* jsonl"):
            list(exports.conll([record]))
        (line,) = exports.jsonl([record])
        assert len(json.loads(line)["spans"]) == len(spans)


SPLITS = ("train", "valid", "test", "new")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The parameters of a working folder with one clean corpus and one evaluated experiment."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data/clean/pii"
    folder.mkdir(parents=True)
    write_json(folder / "profile.json", {"splits": {name: {} for name in SPLITS}})
    for split in SPLITS:
        text = f"{split} record"
        labelled = Record("7", text, (Span(0, len(split), "SPLIT"),), "en", text)
        clean.write(
            folder / f"{split}.parquet",
            [labelled, Record("8", "raw", None, "en", "raw")],
            labelling,
        )
    prediction = Judged("7", "test record", (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),), (0.5,))
    evaluation.write(metrics, tmp_path / "reports/predictions/ner/ner-encoder", [prediction])
    return check(read_yaml(ROOT / "params.yaml"))


def test_a_corpus_gives_the_labelled_records_of_a_split(project):
    for split in SPLITS:
        span = Span(0, len(split), "SPLIT")
        assert exports.records(project, "pii", split) == [
            Exported("7", f"{split} record", "en", (span,))
        ]
    with pytest.raises(WxbError, match="has no split 'tset'; did you mean 'test'"):
        exports.records(project, "pii", "tset")


def test_an_experiment_gives_gold_and_predicted_spans(project):
    gold, predicted = (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),)
    assert exports.records(project, "ner-encoder", "test") == [
        Exported("7", "test record", None, gold, predicted, (0.5,))
    ]
    with pytest.raises(WxbError, match="found split 'valid': export its corpus 'pii'"):
        exports.records(project, "ner-encoder", "valid")


def test_what_is_not_there_is_told_with_the_command_that_makes_it(project):
    Path("data/clean/pii/profile.json").unlink()
    with pytest.raises(WxbError, match=r"profile\.json: .*`dvc repro preprocess@pii`"):
        exports.records(project, "pii", "valid")
    with pytest.raises(WxbError, match="`dvc repro evaluate@ner-decoder`"):
        exports.records(project, "ner-decoder", "test")
    with pytest.raises(WxbError, match=r"did you mean 'ner-encoder'\? \(there is: pii, ner-"):
        exports.records(project, "ner-encodr", "test")


def test_a_name_of_two_things_is_an_error(project):
    both = project.model_copy(update={"corpora": {"ner-encoder": project.corpora["pii"]}})
    with pytest.raises(WxbError, match="corpus and an experiment 'ner-encoder'"):
        exports.records(both, "ner-encoder", "test")


@pytest.mark.parametrize(
    ("output", "given", "chosen"),
    [
        (None, None, "jsonl"),
        (None, "conll", "conll"),
        ("a.CONLL", None, "conll"),
        ("a.jsonl", None, "jsonl"),
        ("a.spacy", None, "spacy"),
        ("a.txt", "conll", "conll"),
        ("a.jsonl", "spacy", "spacy"),
    ],
)
def test_the_format_is_given_or_that_of_the_suffix(output, given, chosen):
    assert exports.format_of(output and Path(output), given) == chosen


def test_no_format_is_guessed():
    for output in ("a.txt", "spacy", "a.conll.gz"):
        with pytest.raises(WxbError, match=r"expected \.conll, \.jsonl or \.spacy"):
            exports.format_of(Path(output), None)
    with pytest.raises(WxbError, match="with --output"):
        exports.format_of(None, "spacy")


def test_a_file_is_replaced_whole_or_stays(tmp_path):
    target, link = tmp_path / "real/test.conll", tmp_path / "link.conll"
    exports.write([exported("new")], "conll", target)
    link.symlink_to(target)
    exports.write([exported("newer")], "conll", link)
    assert link.is_symlink()
    assert target.read_bytes() == b"newer\tO\n"
    with pytest.raises(WxbError, match="overlap"):
        exports.write([exported(), exported(gold=[(0, 3, "A"), (2, 8, "B")])], "conll", target)
    assert target.read_bytes() == b"newer\tO\n"
    assert [path.name for path in target.parent.iterdir()] == ["test.conll"]


def test_a_folder_or_a_device_is_not_replaced(tmp_path):
    kept, pipe = tmp_path / "folder.conll", tmp_path / "pipe.conll"
    (kept / "inside").mkdir(parents=True)
    os.mkfifo(pipe)
    for output in (kept, pipe):
        with pytest.raises(WxbError, match="expected a file"):
            exports.write([exported()], "conll", output)
    assert (kept / "inside").exists()
    (tmp_path / "file").touch()
    with pytest.raises(WxbError, match="cannot be written"):
        exports.write([exported()], "conll", tmp_path / "file/test.conll")
