import pytest

from stages.preprocess import preprocess
from tests.cli.new.formats import as_table
from tests.corpora.records import record, to_letters
from tests.repository import write
from wxb.cli.inputs import TextReader
from wxb.core.errors import WxbError
from wxb.core.files import read_json, read_jsonl
from wxb.corpora.records import RecordError
from wxb.tasks.classification import reading
from wxb.tasks.classification.params import Corpus
from wxb.tasks.classification.reading import clean

SPLIT = {"test": 0.25, "valid": 0.25}
HEADER = ("review", "sentiment")


def corpus(**more):
    fields = {"input": "review", "label": "sentiment", "language": None, "id": None}
    block = {"fields": fields, "split": SPLIT, **more}
    return Corpus(task="classification", path="x", **block)


def preprocessed(tmp_path, corpus, seed=1):
    """The profile and the rejects of a corpus."""
    out = tmp_path / "clean"
    preprocess(tmp_path / "raw", corpus, seed=seed, caption="test", out=out)
    return read_json(out / "profile.json"), [*read_jsonl(out / "rejects.jsonl")]


def reviews(count, label="good", first=1000):
    return [(f"a film called {to_letters(first + index)}", label) for index in range(count)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("One.<br /><br />Two.", "One.\nTwo."),
        ("<p>One</p><P class='x'>Two</P>", "One\nTwo"),
        ("<i>so</i> good", "so good"),
        ("I <3 it, 1 < 2 and x<y>z", "I <3 it, 1 < 2 and x<y>z"),
        ("Tom &amp; Jerry &#39;99 &eacute;", "Tom & Jerry '99 é"),
        ("it\x92s fine \x85", "it’s fine …"),
        ("plain", "plain"),
    ],
)
def test_a_text_is_cleaned_as_a_browser_shows_it(text, shown):
    assert clean(text, html=True)[0] == shown


def test_records_of_other_files_are_cleaned_like_those_of_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(TextReader, "task", "classification")
    monkeypatch.setattr(TextReader, "corpus", corpus(html="removed"))
    (tmp_path / "new.jsonl").write_text('{"review": "so<br />good"}\n{"review": "<br />"}\n')
    first, second = TextReader("x").read(tmp_path / "new.jsonl")
    assert (first.input, second.input) == ("so\ngood", None)
    (tmp_path / "new.jsonl").write_text('{"text": "so<br />good"}\n')
    for field in (None, "text"):
        (item,) = TextReader("x", field).read(tmp_path / "new.jsonl")
        assert item.input == "so\ngood"


def test_repairs_are_listed_and_html_may_be_kept():
    assert len(clean(f"<b>a</b>{10**6 * ' '}b", html=True)[0]) == 10**6 + 2  # in linear time
    assert len(clean("<b>a</b> &amp; \x92", html=True)[1]) == 3
    assert clean("<b>a</b> &amp;", html=False) == ("<b>a</b> &amp;", ())


@pytest.mark.parametrize(
    ("label", "class_"),
    [
        ("positive", "positive"),
        ("POS", "positive"),
        ("Positive", "positive"),
        (" 正面 ", "positive"),
        (1, "positive"),
        ("0", "negative"),
        ("mixed", "mixed"),
        ("", None),
        (None, None),
    ],
)
def test_labels_are_mapped_to_classes_ignoring_case(label, class_):
    labels = {"pos": "positive", "正面": "positive", "1": "positive", "0": "negative"}
    raw = {"review": "plain", "sentiment": label}
    found = reading.Reading().gold_and_repairs(raw, "", corpus(labels=labels))
    assert found == (class_, ())


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"sentiment": ["good"]}, "wrong type"),
        ({"sentiment": 0.5}, "wrong type"),
        ({"sentiment": "good\x1b[31m\nbad"}, "wrong type"),
        ({"sentiment": "unsup"}, "left out"),
        ({}, "missing field"),
        ({"sentiment": "\ud800"}, "wrong type"),
    ],
)
def test_an_unusable_label_is_an_error(raw, reason):
    raw = {"review": "plain", **raw}
    with pytest.raises(RecordError) as error:
        reading.Reading().gold_and_repairs(raw, "", corpus(labels={"unsup": None}))
    assert error.value.reason == reason


def test_a_file_without_a_class_and_two_sources_of_classes_are_errors(tmp_path):
    write(tmp_path / "raw/other.csv", "review\na\n")
    news = corpus(fields={"input": "review", "label": None}, classes={"Fake.csv": "fake"})
    with pytest.raises(WxbError, match=r"other\.csv: matches no pattern of `classes`"):
        preprocessed(tmp_path, news)
    with pytest.raises(ValueError, match=r"give either `fields\.label`, or `classes`"):
        corpus(classes={"Fake.csv": "fake"})


@pytest.mark.parametrize(
    ("delimiter", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), (",", "gb18030")]
)
def test_a_messy_table_becomes_records_and_rejects(tmp_path, delimiter, encoding):
    long = " ".join(["這部電影很好看"] * 15_000)
    rows = [
        ("id of it", "review", "sentiment", "stars"),
        ("1", "two\r\nlines, 很好看", "好", "5"),
        ("2", "", "好", "1"),
        ("3", long, "好", "1"),
        ("4", "nobody labelled it", "", "1"),
        ("5", "short row", "good"),
        *[(str(n), text, "ab"[n % 2], "3") for n, (text, _) in enumerate(reviews(12), start=6)],
    ]
    write(tmp_path / "raw/r.csv", as_table(rows, delimiter, encoding))
    profile, rejects = preprocessed(tmp_path, corpus(labels={"好": "good"}))
    assert profile["rejects"] == {"blank text": 1, "broken CSV": 1, "too long": 1}
    kept = sum(profile["records"][split] for split in ("train", "valid", "test"))
    assert profile["records"]["raw"] == 17 == len(rejects) + kept
    assert sum(split["unlabelled"] for split in profile["splits"].values()) == 1
    assert profile["repaired"] == ({"read as gb18030": 14} if encoding == "gb18030" else {})


def test_a_class_may_occur_once_and_imbalance_is_in_the_profile(tmp_path):
    rows = [HEADER, *reviews(12), ("odd one", "rare")]
    write(tmp_path / "raw/r.csv", as_table(rows))
    profile, _ = preprocessed(tmp_path, corpus())
    counts = [split["classes"] for split in profile["splits"].values()]
    assert sum(row.get("rare", 0) for row in counts) == 1
    assert max(split["largest_to_smallest"] for split in profile["splits"].values()) > 1


def test_training_records_of_one_class_are_an_error(tmp_path):
    files = {"train": ["train.csv"], "valid": ["valid.csv"], "test": ["test.csv"]}
    for name in files:
        count, first = (8, 0) if name == "train" else (2, 50 + len(name))
        rows = [HEADER, *reviews(count, "good", first), *reviews(count, "bad", first + 100)]
        write(tmp_path / "raw" / f"{name}.csv", as_table(rows))
    with pytest.raises(WxbError, match=r"class 'good'.*max_records"):
        preprocessed(tmp_path, corpus(split={"files": files}, max_records=8))


def test_near_duplicates_have_one_wording():
    texts = [
        "Two banks, it said, lost 30 million.",
        "two banks it said lost 5 million",
        "Two banks -- it said -- lost 30 million!",
    ]
    assert len({reading.Reading().wording(record(n, text)) for n, text in enumerate(texts)}) == 1
    assert reading.Reading().wording(record(9, "3 - 2")) == ""
