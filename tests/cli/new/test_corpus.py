"""`wxb new corpus`: names that it knows, and names that it asks for."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from stages.preprocess import preprocess
from tests.cli.new.formats import as_table
from tests.corpora.records import to_letters
from tests.repository import write
from wxb.cli.new.corpus import corpus_name, new_corpus
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params.tasks import corpus_class
from wxb.tasks.recognition import FlagError

BY_DOCUMENT = {"by": None, "test": 0.2, "valid": 0.1}
FIELDS = {
    **{"input": "body", "spans": "marks", "start": "begin", "end": "stop", "type": "tag"},
    **{"value": "mention"},
}
WORDS = [to_letters(number) for number in range(40)]
pytestmark = pytest.mark.usefixtures("cwd")


def record(number, *, shift=0):
    """A text with two spans, whose ends are shifted."""
    name, city = f"Ann{to_letters(number)}", f"Rome{to_letters(number)}"
    text = f"{name} lives in {city}, said {to_letters(number)}."
    spans = [
        {"begin": (i := text.index(v)), "stop": i + len(v) + shift, "tag": tag, "mention": v}
        for v, tag in ((name, "NAME"), (city, "CITY"))
    ]
    return {"body": text, "marks": spans}


def records(count=60, **kind):
    return [record(number, **kind) for number in range(count)]


def table(path, /, **columns):
    """A CSV file with a row for each of WORDS; a column is a function from row to cell."""
    rows = ([make(n) for make in columns.values()] for n in range(len(WORDS)))
    return write(path, as_table([columns, *rows]))


def text(number):
    return f"It is {WORDS[number]} that was named here."


def one_of_two(number):
    return ("good", "bad")[number % 2]


def read(path, task=None, **flags):
    """The block of some files, and what was read with it."""
    flags = {name.replace("_", "-"): value for name, value in flags.items()}
    return new_corpus(Path(path), task, flags)


def block(path, task=None, **flags):
    return read(path, task, **flags)[0]


def cleaned(path, content):
    """The profile that the stage `preprocess` writes for a block."""
    if Path(path).is_dir():
        shutil.copytree(path, "raw")
    else:
        Path("raw").mkdir()
        shutil.copy(path, "raw")
    params = corpus_class(content["task"]).model_validate(content)
    preprocess(Path("raw"), params, seed=1, caption="p", out=Path("clean"))
    return read_json(Path("clean/profile.json"))


@pytest.mark.parametrize("delimiter", [None, ",", ";", "\t"])
def test_spans_are_known_by_their_keys_in_json_and_tables(delimiter):
    path = Path("post.tsv" if delimiter == "\t" else "post.csv" if delimiter else "post.json")
    if delimiter:
        rows = [(r["body"], json.dumps(r["marks"])) for r in records()]
        rows = [("body", "marks"), *rows, ("Nobody labelled this.", "")]
        write(path, as_table(rows, delimiter))
    else:
        write(path, [*records(), {"body": "Nobody labelled this.", "marks": None}])
    content, trial = read(path)
    assert content == {"task": "ner", "path": path.name, "fields": FIELDS, "split": BY_DOCUMENT}
    assert [record.input for record in trial.records if record.gold is None] == [
        "Nobody labelled this."
    ]


def test_unknown_names_are_asked_for_and_given():
    rows = [{"words": r["body"], "found": [{"a": s["begin"], "b": s["stop"], "c": s["tag"]}
             for s in r["marks"]]} for r in records()]  # fmt: skip
    path = write("post.json", rows)
    with pytest.raises(FlagError, match=r"(?s)'words': 'Ann.*--input, --gold.*--start, --end"):
        block(path)
    with pytest.raises(FlagError, match=r"--start and --end and --tag: .* a, b, c in 'found'"):
        block(path, input="words", gold="found")
    given_names = {"input": "words", "gold": "found", "start": "a", "end": "b", "tag": "c"}
    expected = {"input": "words", "spans": "found", "start": "a", "end": "b", "type": "c"}
    assert block(path, **given_names)["fields"] == expected
    path = write("post.json", [{"frase": text(n), "tono": one_of_two(n)} for n in range(40)])
    with pytest.raises(FlagError, match="choose with --task"):
        block(path, input="frase", gold="tono")


@pytest.mark.parametrize(
    ("extra", "flag", "name"),
    [
        ({"full_text": "To [NAME], as a number on the list"}, "input", "body"),
        ({"more": [{"start": 0, "end": 3, "label": "NAME"}]}, "gold", "marks"),
        ({"author": "Ann", "doc_id": 7}, "group", "-"),
    ],
)
def test_two_names_that_fit_are_a_question(extra, flag, name):
    path = write("post.json", [{**row, **extra} for row in records()])
    with pytest.raises(FlagError, match=f"--{flag}"):
        block(path)
    content = block(path, **{flag: name})
    assert {key: content["fields"][key] for key in FIELDS} == FIELDS
    assert content["split"] == BY_DOCUMENT


def test_wrong_offsets_are_rejected_and_repaired_on_request():
    path = write("post.json", [*records(40, shift=1), *records(60)[40:]])
    with pytest.raises(FlagError, match="--offsets: 40 of 120 spans"):
        block(path)
    rejects = read(path, offsets="characters")[1].rejects
    assert [reject.reason for reject in rejects] == ["value differs"] * 40
    repaired = [name for record in read(path, repair="")[1].records for name in record.repaired]
    assert repaired == ["span found by value"] * 80
    write("post.json", records(shift=1))
    with pytest.raises(WxbError, match=r"(?s)60 like this one .*value differs.*repair: by-value"):
        block(path, offsets="characters")


def test_language_id_and_group():
    rows = [{"uid": n, "lang": "en", "template_id": n % 12, **record(n)} for n in range(60)]
    content = block(write("post.json", rows))
    assert [content["fields"][key] for key in ("language", "id")] == ["lang", "uid"]
    assert content["split"]["by"] == "template_id"
    assert cleaned("post.json", content)["splits"]["test"]["groups"] > 1
    assert block("post.json", group="lang")["split"]["by"] == "lang"
    rows[0]["template_id"] = None
    with pytest.raises(FlagError, match="'template_id' is blank in 1 of 60 records"):
        block(write("post.json", rows))
    del rows[0]["template_id"]
    assert block(write("post.json", rows))["split"]["by"] is None


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["eng.train", "eng.testa", "eng.testb"], True),
        (["a-Train.txt", "a_validation.txt", "a-TEST.txt"], True),
        (["train/x.txt", "val/x.txt", "test/x.txt"], True),
        (["train-[0].txt", "train-1.txt", "dev.txt", "test.txt"], True),
        (["train.txt", "test.txt"], False),
    ],
)
def test_published_splits_by_names_of_files(names, splits):
    for number, name in enumerate(names):
        lines = (f"Ann{number} B-NAME\n{to_letters(100 * number + n)} O\n\n" for n in range(20))
        write(Path("town", name), "".join(lines))
    content = block("town")
    assert ("files" in content["split"]) == splits
    cleaned("town", content)


@pytest.mark.parametrize(
    ("rows", "conll"),
    [
        ("Ann# B-NAME\nMay I-NAME\nis# O\n", {}),
        ("1 Ann# B-NAME\n2 is# O\n", {"token": 1, "tag": 2}),
        ("Ann# B-NAME x\nis# O\n", {}),  # rows of different lengths
        ("-DOCSTART- O\n\nAnn# B-NAME\nis# O\n", {}),
        ("Ann# W-NAME\nMay L-NAME\n", {}),
        ("王\tB-PER\n明\tI-PER\n字\tO\n来\tO\n", {"join": ""}),
    ],
)
@pytest.mark.parametrize("suffix", ["conll", "tsv"])
def test_columns(rows, conll, suffix):
    count = ((to_letters(n), chr(ord("一") + n)) for n in range(30))
    lines = "".join(rows.replace("#", n).replace("字", sign) + "\n" for n, sign in count)
    content, trial = read(write(f"town.{suffix}", lines))
    assert content["conll"] == {"token": 0, "tag": 1, "join": " ", **conll}
    assert not trial.rejects
    assert cleaned(f"town.{suffix}", content)["labels"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ([{"review": "Good.", "mood": "up"}], FlagError, r"(?s)'mood': 'up'.*classification: a te"),
        ([1, 2], FlagError, "found 1"),
        ("text", WxbError, "broken JSON"),
        ([{"messages": [{"by": "user", "words": "Who?"}]}], FlagError, "messages"),
    ],
)
def test_other_records_are_an_error(content, error, message):
    with pytest.raises(error, match=message):
        block(write("post.json", content))


def test_names_and_paths():
    path = write("my post.v2.json", records()).resolve()
    assert corpus_name(path) == "my-post"
    assert block(path)["path"] == "my post.v2.json"
    with pytest.raises(WxbError, match="give --name"):
        corpus_name(Path("記錄.json"))
    write("../outside.json", records())
    assert block("../outside.json")["path"] == "../outside.json"
    with pytest.raises(WxbError, match="no such file or folder"):
        block("nowhere.json")


@pytest.mark.parametrize(
    ("make", "task", "expected"),
    [
        ({"Review_Text": text, "sentiment": one_of_two}, "classification",
         {"input": "Review_Text", "label": "sentiment"}),
        ({"id": int, "English": text, "chinese": lambda n: f"第{n}句話。"}, "translation",
         {"input": "English", "target": "chinese", "id": "id"}),
        ({"tgt": lambda n: f"我說{WORDS[n]}。", "src": text}, "translation",
         {"input": "src", "target": "tgt"}),
        # A column with the whole prompt, as Alpaca has it, is not for pretraining.
        ({"Question": text, "answer": one_of_two, "text": text}, "chat",
         {"instruction": "Question", "output": "answer", "text": None}),
    ],
)  # fmt: skip
def test_known_names_of_each_task(make, task, expected):
    content = block(table("a.csv", **make))
    assert (content["task"], content["fields"]) == (task, expected)


def test_files_that_are_classes_need_an_option():
    for name in ("Spam.csv", "ham[1].csv"):
        table(f"mail/{name}", text=lambda n, name=name: f"{text(n)} {name}")
    with pytest.raises(FlagError, match="--class-per-file"):
        block("mail")
    content, trial = read("mail", class_per_file="")
    assert content["classes"] == {"Spam.csv": "spam", "ham[[]1].csv": "ham[1]"}
    assert Counter(r.gold for r in trial.records) == {"spam": 40, "ham[1]": 40}


def test_recordings_with_transcripts_in_one_of_two_tables():
    noise = np.random.default_rng(1)
    Path("own/clips").mkdir(parents=True)
    for number in range(len(WORDS)):
        soundfile.write(f"own/clips/{number}.wav", 0.3 * noise.standard_normal(4000), 16_000)
    columns = {"file_name": lambda n: f"clips/{n}.wav", "text": text}
    table("own/transcripts.csv", ID=int, **columns, client_id=lambda n: f"speaker {n % 10}")
    assert block("own")["split"]["by"] == "client_id"
    table("own/about.csv", ID=int, age=int)
    content, trial = read("own")
    fields = {"input": "file_name", "sentence": "text", "id": "ID", "speaker": "client_id"}
    assert (content["task"], content["fields"]) == ("speech", fields)
    assert content["manifest"] == "transcripts.csv"
    assert len(trial.records) == 40


def test_files_that_fit_several_tasks_need_an_option():
    path = table("a.csv", text=text, label=one_of_two, question=text, answer=text)
    with pytest.raises(FlagError, match="fits chat and classification; choose with --task"):
        block(path)
    assert block(path, "classification")["fields"] == {"input": "text", "label": "label"}
    with pytest.raises(FlagError, match=r"(?s)'label': .*translation: a text"):
        block(path, "translation")
    with pytest.raises(WxbError, match=r"--task: found 'classify'; did you mean 'classification'"):
        block(path, "classify")


def test_a_flag_of_one_task_chooses_it():
    Path("own").mkdir()
    for n in range(len(WORDS)):
        soundfile.write(f"own/{n}.wav", np.sin(np.arange(4000) / (n + 2)), 16_000)
    table("own/own.csv", Datei=lambda n: f"{n}.wav", Text=text, Person=lambda n: f"P{n % 5}")
    with pytest.raises(FlagError, match=r"speech.*; choose with --task"):
        block("own", input="Datei", gold="Text")
    assert block("own", input="Datei", gold="Text", speaker="Person")["task"] == "speech"
    with pytest.raises(FlagError, match=r"--speaker: found no field 'Persons'.*mean 'Person'"):
        block("own", input="Datei", gold="Text", speaker="Persons")
