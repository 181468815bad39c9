"""`wxb new corpus`: guesses about files, with which the reader reads them."""

import csv
import json
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from stages.preprocess import preprocess
from tests.corpora.records import to_letters
from wxb.cli.new import corpus, trial
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.tasks.ner.params import Corpus
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Labelling

DATA = Path(__file__).parents[3] / "../shared/data"
NAMES = ["Ann Miller", "Bob Stone", "Eve Hart", "Joe Lund", "Kim Park", "Max Weber", "Sue Reed"]
TOWNS = [
    "Paris",
    "Rome",
    "Oslo",
    "Turin",
    "Seoul",
    "Ghent",
    "Leeds",
    "Bonn",
    "Graz",
    "Lyon",
    "Bath",
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(number, *, inclusive=False, wrong=False):
    """A record with two spans and their values."""
    name, town = NAMES[number % len(NAMES)], TOWNS[number % len(TOWNS)]
    text = f"To {name} of {town}, as number {number}, {to_letters(number)}, on the list."
    spans = []
    for value, label in ((name, "NAME"), (town, "CITY")):
        start = text.index(value) + 3 * wrong
        end = start + len(value) - inclusive
        spans.append({"begin": start, "stop": end, "tag": label, "mention": value})
    return {"body": text, "marks": spans}


def records(count=60, **kind):
    return [record(number, **kind) for number in range(count)]


def write(path, content):
    Path(path).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return Path(path)


def guessed(path):
    """The block as it reads back, without its name."""
    ((_, block),) = YAML(typ="safe").load(corpus.guess_corpus(Path(path), None).block).items()
    return block


def cleaned(path, block):
    """The profile that the stage `preprocess` writes for a block."""
    path = Path(path)
    if path.is_dir():
        shutil.copytree(path, "raw")
    else:
        Path("raw").mkdir()
        shutil.copy(path, "raw")
    params = Corpus.model_validate(block)
    preprocess(Path("raw"), params, Reading(), Labelling(), seed=1, label="p", out=Path("clean"))
    return read_json(Path("clean/profile.json"))


FIELDS = {
    "input": "body",
    "spans": "marks",
    "start": "begin",
    "end": "stop",
    "type": "tag",
    "value": "mention",
    "language": None,
    "id": None,
}
BY_DOCUMENT = {"by": None, "test": 0.2, "valid": 0.1}


def test_fields_are_guessed_by_their_values():
    write("post.json", records())
    assert guessed("post.json") == {
        "task": "ner",
        "path": "post.json",
        "fields": FIELDS,
        "split": BY_DOCUMENT,
    }
    assert cleaned("post.json", guessed("post.json"))["records"]["rejected"] == 0


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "semicolons.csv", "tsv", "parquet"])
def test_every_format_of_records(suffix):
    path = Path(f"post.{suffix}")
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(r) + "\n" for r in records()), encoding="utf-8")
    elif suffix != "parquet":
        delimiter = {"csv": ",", "tsv": "\t"}.get(suffix, ";")
        with path.open("w", newline="") as file:
            rows = csv.DictWriter(file, ["body", "marks"], delimiter=delimiter)
            rows.writeheader()
            rows.writerows({**r, "marks": str(r["marks"])} for r in records())
            rows.writerow({"body": "Nobody labelled this.", "marks": ""})
    else:
        pq.write_table(pa.Table.from_pylist(records()), path)
    assert guessed(path)["fields"] == FIELDS
    assert corpus.guess_corpus(path, None).trial.unlabelled == suffix.endswith("sv")


@pytest.mark.parametrize("kind", [{"inclusive": True}, {"wrong": True}])
def test_wrong_offsets_are_repaired_by_value(kind):
    guess = corpus.guess_corpus(write("post.json", records(**kind)), None)
    assert guessed("post.json")["repair"] == "by-value"
    assert guessed("post.json")["fields"] == FIELDS
    assert guess.trial.repaired == {"span found by value": 120}
    assert "0 of 120 offsets fit" in guess.notes[0]
    assert ("120 if `end` is included" in guess.notes[0]) == ("inclusive" in kind)


def without_values(rows):
    for row in rows:
        for span in row["marks"]:
            del span["mention"]
    return rows


def test_spans_without_values():
    write("post.json", without_values(records()))
    assert guessed("post.json")["fields"] == {**FIELDS, "value": None}
    assert "repair" not in guessed("post.json")


def test_ends_that_are_included_are_an_error_without_values():
    write("post.json", without_values(records(inclusive=True)))
    with pytest.raises(WxbError, match="add 1 to each 'stop'"):
        guessed("post.json")


def test_tokens_of_a_span_are_not_its_characters():
    rows = without_values(records())
    for row in rows:
        for span in row["marks"]:
            span.update(token_start=1, token_end=2)
    assert guessed(write("post.json", rows))["fields"] == {**FIELDS, "value": None}


def test_the_text_is_the_one_that_spans_fit():
    rows = [{"masked": "To [NAME] of [CITY], as a number on the list", **r} for r in records()]
    assert guessed(write("post.json", rows))["fields"]["input"] == "body"


def test_language_id_and_group():
    rows = [
        {"uid": n, "lang": "en", "template_id": n % 12, "label": f"kind {n % 15}", **record(n)}
        for n in range(60)
    ]
    block = guessed(write("post.json", rows))
    assert block["fields"]["language"] == "lang"
    assert block["fields"]["id"] == "uid"
    assert block["split"]["by"] == "template_id"
    assert cleaned("post.json", block)["splits"]["test"]["groups"] > 1


@pytest.mark.parametrize(
    ("field", "values", "groups"),
    [
        ("author", [f"author {n % 20}" for n in range(60)], True),
        ("handle", [f"writer {n % 20}" for n in range(60)], True),
        ("doc_id", [*range(59), 0], True),  # its name says so
        ("handle", [f"writer {n}" for n in range(59)] + ["writer 0"], False),
        ("sentiment", [f"mood {n % 20}" for n in range(60)], False),
        ("entityType", [f"type {n % 20}" for n in range(60)], False),
        ("author", [f"author {n % 3}" for n in range(60)], False),  # too few to divide
        ("author", ["nobody"] * 40 + [f"author {n}" for n in range(20)], False),
        ("length", [n % 20 for n in range(60)], False),
        ("author", [f"author {n % 20}" for n in range(59)] + [None], False),
    ],
)
def test_a_group_repeats_and_is_no_label(field, values, groups):
    rows = [{field: value, **record(n)} for n, value in enumerate(values)]
    assert guessed(write("post.json", rows))["split"]["by"] == (field if groups else None)


def test_ids_that_repeat_are_none():
    rows = [{"id": n % 50, **record(n)} for n in range(60)]
    assert guessed(write("post.json", rows))["fields"]["id"] is None


def test_rejects_have_an_example():
    rows = records()
    rows[6]["marks"][0]["mention"] = "Nobody"
    rows[7] = rows[8]
    guess = corpus.guess_corpus(write("post.json", rows), None)
    assert guess.trial.rejects == {"value not found": 1}
    assert guess.trial.examples["value not found"].startswith("post.json:record 7: 'Nobody'")
    assert guess.trial.kept == 59
    assert guess.trial.repeated == 1
    assert guess.trial.counts["spans"] == {"NAME": 59, "CITY": 59}


def test_published_splits_of_records():
    Path("post").mkdir()
    for name, start in (("train", 0), ("dev", 60), ("test", 80)):
        write(f"post/{name}.json", [record(n) for n in range(start, start + 20)])
    block = guessed("post")
    files = {"train": ["train.json"], "valid": ["dev.json"], "test": ["test.json"]}
    assert block["split"] == {"files": files}
    assert cleaned("post", block)["records"]["test"] == 20


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["eng.train", "eng.testa", "eng.testb"], True),
        (["a-Train.txt", "a_validation.txt", "a-TEST.txt"], True),
        (["train/x.txt", "val/x.txt", "test/x.txt"], True),
        (["train-[0].txt", "train-1.txt", "dev.txt", "test.txt"], True),
        (["train.txt", "test.txt"], False),
        (["train.txt", "dev.txt", "test.txt", "more.txt"], False),
        (["interval.txt", "train.txt", "test.txt"], False),
    ],
)
def test_published_splits_by_names_of_files(names, splits):
    for number, name in enumerate(names):
        path = Path("town", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = f"Ann{number} B-NAME\nis O\n\n"
        words = (to_letters(100 * number + n) for n in range(20))
        path.write_text("".join(lines.replace("is", word) for word in words))
    block = guessed("town")
    assert ("files" in block["split"]) == splits
    cleaned("town", block)


def columns(rows, sentences=30):
    """The text of a column file; `#` and `字` in it tell its sentences apart."""
    count = ((to_letters(n), chr(ord("一") + n)) for n in range(sentences))
    return "".join(rows.replace("#", n).replace("字", sign) + "\n" for n, sign in count)


@pytest.mark.parametrize(
    ("rows", "conll"),
    [
        ("Ann# B-NAME\nMay I-NAME\nis# O\n", {}),
        ("Ann#\tNNP\tB-NP\tI-NAME\nis#\tVBZ\tB-VP\tO\n", {}),
        ("1 Ann# B-NAME\n2 is# O\n", {"token": 1}),
        ("Ann# B-NAME x\nis# O y\n", {"tag": 1}),
        ("Ann# S-NAME\nis# O\n", {}),
        ("-DOCSTART- O\n\nAnn# B-NAME\nis# O\n", {}),
        ("Ann# B-NAME\nMay L-NAME\n", {}),
        ("Ann# W-NAME\nis# O\n", {}),
        ("王\tB-PER\n明\tI-PER\n字\tO\n来\tO\n", {"join": ""}),
        ("王0\tB-PER\n明1\tI-PER\n字0\tO\n来0\tO\n", {"join": "", "characters": True}),
    ],
)
def test_columns(rows, conll):
    Path("town.conll").write_text(columns(rows), encoding="utf-8")
    block = guessed("town.conll")
    expected = {"token": 0, "tag": -1, "join": " ", "unit": "sentence", **conll}
    assert block["conll"] == expected
    guess = corpus.guess_corpus(Path("town.conll"), None)
    assert not guess.trial.rejects
    assert cleaned("town.conll", block)["labels"]


def test_columns_may_be_in_a_table_by_its_suffix():
    Path("town.tsv").write_text(columns("王\tB-PER\n明\tI-PER\n字\tO\n"), encoding="utf-8")
    assert "conll" in guessed("town.tsv")


def test_an_html_page_is_an_error():
    Path("town.txt").write_text("<!DOCTYPE html><html>")
    with pytest.raises(WxbError, match=r"town\.txt: found an HTML page; expected records"):
        corpus.guess_corpus(Path("town.txt"), None)


def test_a_file_without_tags_says_what_is_expected():
    Path("town.txt").write_text("Ann PERSON\nis nothing\n")
    with pytest.raises(WxbError, match=r"(?s)town.txt: found lines such as 'Ann PERSON'.*B-NAME"):
        guessed("town.txt")


def test_a_file_beside_columns_is_named():
    Path("town").mkdir()
    Path("town/a.conll").write_text(columns("Ann# B-NAME\nis# O\n"))
    Path("town/sources").write_text("Where these come from\nis a long story.\n")
    with pytest.raises(WxbError, match=r"town/sources: .* has to leave the folder"):
        guessed("town")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [{"review": "Good.", "mood": "up"}],
            r"(?s)'mood': text; expected one of.* classification: a text and its class.* ner: ",
        ),
        ([{"tokens": ["a"], "tags": [0]}], r"found \[0\]; expected their names: give the folder"),
        ([1, 2], "found no record that is an object"),
        ("text", "expected a list of records"),
    ],
)
def test_records_without_spans_are_an_error(content, message):
    with pytest.raises(WxbError, match=message):
        guessed(write("post.json", content))


def test_a_file_whose_records_are_all_rejected_shows_the_guess():
    rows = records()
    for row in rows:
        row["marks"].append(row["marks"][0])
    with pytest.raises(WxbError, match=r"(?s)first of 60 .*overlapping spans.*input: body"):
        guessed(write("post.json", rows))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Frau Müller aus Köln grüßt herzlich. Ça coûte très cher, señor."),
        ("gb18030", "王小明住在北京市海淀区，电话号码是零二二三。他昨天去了上海。"),
        ("big5", "王小明住在臺北市信義區，電話號碼是零二二三。他昨天去了高雄。"),
        ("utf-16", "Ann is here."),
    ],
)
def test_other_encodings_come_with_the_command_that_converts(encoding, text):
    rows = json.dumps([{"text": text}], ensure_ascii=False)
    Path("post.json").write_bytes(rows.encode(encoding))
    command = rf"iconv -f {encoding.upper()} -t UTF-8 post.json > new.json"
    with pytest.raises(WxbError, match=rf"post.json: found .*`{command}`"):
        guessed("post.json")


def test_bytes_that_are_no_text():
    Path("post.bin").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(WxbError, match=r"post.bin: found no text.*; expected UTF-8"):
        guessed("post.bin")


def test_missing_files():
    with pytest.raises(WxbError, match="no such file or folder"):
        guessed("nowhere.json")
    Path("empty").mkdir()
    with pytest.raises(WxbError, match="empty: found no file"):
        guessed("empty")


def test_too_few_groups_are_noted():
    few = corpus.guess_corpus(write("post.json", records(5)), None)
    assert "few groups: found 5" in few.notes[-1]
    assert not any(
        "few groups" in n for n in corpus.guess_corpus(write("post.json", records()), None).notes
    )


def test_names_and_paths():
    write("my post.v2.json", records())
    guess = corpus.guess_corpus(Path.cwd() / "my post.v2.json", None)
    assert guess.name == "my-post"
    assert guessed("my post.v2.json")["path"] == "my post.v2.json"
    with pytest.raises(WxbError, match="give --name"):
        corpus.corpus_name(Path("記錄.json"))
    write("../outside.json", records())
    assert guessed("../outside.json")["path"] == "../outside.json"


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 9), st.sampled_from(["x", "to x", ""])),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.sampled_from("stuv"), inner)),
)), max_size=4))  # fmt: skip
def test_any_file_is_read_or_an_error(rows):
    write("any.json", rows)
    with suppress(WxbError):
        assert trial.count_records(
            Path("any.json"), Corpus.model_validate(guessed("any.json"))
        ).kept


@pytest.mark.parametrize(
    ("languages", "texts", "english"),
    [
        (["en", "en-GB", "English"], [], True),
        (["en", "fr"], [], False),
        ([], ["This is the letter that you have not sent to us."], True),
        ([], ["Das ist der Brief, den Sie uns nicht geschickt haben."], False),
        ([], ["這是你們沒有寄給我們的信。 It is to us."], False),
        ([], [], False),
    ],
)
def test_english_is_recognized(languages, texts, english):
    counts = trial.Trial(texts=texts)
    counts.languages.update(languages)
    assert counts.is_english == english


CSV = "pii/ai4privacy_format/synthetic_pii_data_"


@pytest.mark.parametrize(
    ("path", "kept", "key", "value", "english"),
    [
        ("pii/synth_dataset_v2.json", 1500, "split.by", "template_id", True),
        ("pii/generated_small.json", 100, "repair", "by-value", True),
        ("pii/ai4privacy_format/repaired_spans.json", 209, "split.by", "uid", True),
        (f"{CSV}claude-3-haiku.csv", 117, "repair", "by-value", True),
        (f"{CSV}ai21-jamba-instruct.csv", 99, "repair", "by-value", True),
        ("ner/conll2003", 20744, "split.files.valid", ["valid.txt"], True),
        ("ner/wnut17", 5690, "split.files.test", ["emerging.test.annotated"], True),
        ("ner/msra", 3442, "conll.join", "", False),
        ("ner/weibo", 1890, "conll.characters", True, False),
    ],
)
@pytest.mark.slow
def test_real_corpora(path, kept, key, value, english):
    if not (DATA / path).exists():
        pytest.skip(f"{path} is not in ../shared/data")
    guess = corpus.guess_corpus(DATA / path, None)
    assert (guess.trial.kept, guess.trial.rejects.total()) == (kept, 0)
    assert guess.trial.is_english == english
    ((_, block),) = YAML(typ="safe").load(guess.block).items()
    profile = cleaned(DATA / path, block)
    assert set(profile["rejects"]) <= {"duplicate text", "near duplicate"}
    for part in key.split("."):
        block = block[part]
    assert block == value
