import json
import shutil
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.preprocess import preprocess
from tests.corpora.records import corpus, to_letters
from tests.project_copy import ROOT
from wxb.core.errors import WxbError
from wxb.core.files import read_json, read_jsonl
from wxb.corpora import clean
from wxb.tasks.ner.metrics import Scorer
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import LABELLING

DATA = ROOT / "../shared/data"


def raw(index, text=None, **changes):
    text = f"Ann has number {to_letters(index)}" if text is None else text
    spans = [{"start": 0, "end": 3, "type": "NAME"}]
    record = {"id": f"id {index}", "input": text, "spans": spans, "language": "en"}
    return {**record, "scene": f"of {index}", **changes}


def run(folder, contents, **changes):
    """The clean folder of some records."""
    changes = {"split": {"test": 0.2, "valid": 0.2}, **changes}
    (folder / "raw").mkdir(parents=True)
    file = folder / "raw/records.jsonl"
    file.write_text("\n".join(map(json.dumps, contents)), encoding="utf-8")
    return clean_folder(folder, corpus(**changes))


def clean_folder(folder, settings):
    out = folder / "clean"
    preprocess(folder / "raw", settings, seed=1, caption="preprocess@test", out=out)
    return folder / "clean"


def read_splits(out):
    return {
        name: [*clean.read(clean.split_file(out, name), LABELLING)] for name in clean.splits(out)
    }


def rejected(out):
    return list(read_jsonl(out / "rejects.jsonl"))


def test_near_duplicates_of_the_test_set_are_one_group(tmp_path):
    texts = [f"{['Pay', 'pay', 'PAY'][i % 3]} {i} {to_letters(i // 3)}" for i in range(60)]
    splits = read_splits(run(tmp_path, [raw(i, text, spans=[]) for i, text in enumerate(texts)]))
    rows = Scorer().rows(splits["test"], [()] * len(splits["test"]), set())
    groups = Counter(row.group for row in rows)
    assert {*groups.values()} == {3}
    assert "" not in groups


def reasons(out):
    return dict(Counter(reject["reason"] for reject in rejected(out)))


GOOD = [raw(f"good {i}") for i in range(30)]
ODD = st.sampled_from(
    [
        {},
        {"input": ""},
        {"input": "Ann\0"},
        {"input": "Ann \ud800"},
        {"input": "Ann again"},
        {"input": "Ann has NUMBER  b"},
        {"scene": "one"},
        {"scene": "two"},
        {"input": "Ann" * 20_000},
        {"id": "good 1"},
        {"id": "\ud800"},
        {"id": None},
        {"language": "fr"},
        {"language": None},
        {"spans": None},
        {"spans": []},
        {"spans": 3},
        {"spans": [{"start": 0, "end": 99, "type": "NAME"}]},
        {"spans": [{"start": 2, "end": 1, "type": "NAME"}]},
        {"spans": [{"start": 0, "end": 3, "type": "A"}, {"start": 1, "end": 3, "type": "B"}]},
    ]
)


@settings(max_examples=40, deadline=None)
@given(
    odd=st.lists(ODD, max_size=30),
    languages=st.sampled_from([None, ["en"]]),
    limit=st.sampled_from([None, 25, 40]),
    further=st.sampled_from([None, {"situations": {"by": "scene", "share": 0.2}}]),
)
def test_every_raw_record_ends_in_a_split_or_in_the_rejects(
    tmp_path_factory, odd, languages, limit, further
):
    contents = GOOD + [raw(i) | changes for i, changes in enumerate(odd)]
    out = run(
        tmp_path_factory.mktemp("run"),
        contents,
        languages=languages,
        max_records=limit,
        split={"test": 0.2, "valid": 0.2, "further": further},
    )
    counts = read_json(out / "profile.json")
    splits, rejects = read_splits(out), rejected(out)
    assert list(splits) == ["train", "valid", "test", *(further or [])]
    assert counts["records"] == {
        "raw": len(contents),
        "rejected": len(rejects),
        **{name: len(members) for name, members in splits.items()},
    }
    assert sum(map(len, splits.values())) + len(rejects) == len(contents)
    assert counts["rejects"] == reasons(out)
    records = [r for members in splits.values() for r in members]
    assert len({r.input for r in records}) == len({r.id for r in records}) == len(records)
    for left, right in combinations(splits.values(), 2):
        wording = Reading().wording
        assert {*map(wording, left)} & {*map(wording, right)} <= {""}
    known = [r.id for r in records] + [r["id"] for r in rejects if r["id"] is not None]
    assert Counter(c["id"] for c in contents if c["id"]) - Counter(known) == Counter()


def test_the_same_bytes_every_time(tmp_path):
    contents = []
    for name in ("a", "b"):
        out = run(tmp_path / name, GOOD)
        contents.append({p.name: p.read_bytes() for p in out.rglob("*") if p.is_file()})
    assert contents[0] == contents[1]
    splits = ["test.parquet", "train.parquet", "valid.parquet"]
    names = ["labels.json", "profile.json", "rejects.jsonl", *splits]
    assert sorted(contents[0]) == names


def test_a_corrected_test_record_changes_no_training_data(tmp_path):
    first = run(tmp_path / "a", GOOD)
    tested = {record.id for record in read_splits(first)["test"]}
    spans = [{"start": 0, "end": 3, "type": "CITY"}]
    corrected = [{**r, "spans": spans} if r["id"] in tested else r for r in GOOD]
    second = run(tmp_path / "b", corrected)
    data = [
        {p.name: p.read_bytes() for p in (out / "training").iterdir()} for out in (first, second)
    ]
    assert data[0] == data[1]
    assert {s.type for record in read_splits(second)["test"] for s in record.gold} == {"CITY"}


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ([raw(1, text="")], r"raw: all 1 record .*\(records\.jsonl:line 1\).*blank text.*`fields`"),
        (GOOD[:1], "split has no labelled record"),
        ([raw(i, spans=None) for i in range(30)], "split has no labelled record"),
    ],
)
def test_too_few_records_are_an_error_without_output(tmp_path, contents, message):
    with pytest.raises(WxbError, match=message):
        run(tmp_path, contents)
    assert not (tmp_path / "clean").exists()


def test_if_all_offsets_are_shifted_the_error_suggests_repair_by_value(tmp_path):
    shifted = {"start": 1, "end": 4, "type": "NAME", "value": "Ann"}
    contents = [raw(1, text=""), *(raw(i, spans=[shifted]) for i in range(30))]
    message = r"all 31 records .*, 30 like this one .*value differs: .*set `repair: by-value`"
    with pytest.raises(WxbError, match=message):
        run(tmp_path, contents, fields={"value": "value"})
    repaired = clean_folder(tmp_path, corpus(fields={"value": "value"}, repair="by-value"))
    assert reasons(repaired) == {"blank text": 1}


def test_a_further_test_set_is_grouped_by_the_values_it_holds_out(tmp_path):
    contents = [raw(i, scene=f"scene {i // 2}") for i in range(40)]
    split = {"test": 0.2, "valid": 0.1, "further": {"situations": {"by": "scene", "share": 0.2}}}
    out = run(tmp_path, contents, split=split)
    scenes = {record["input"]: record["scene"] for record in contents}
    members = read_splits(out)["situations"]
    assert len({record.group for record in members}) == len(members) / 2 == 4
    assert all(record.group == scenes[record.input] for record in members)
    facts = clean.test_set_facts(out)
    assert {name: fact["grouped_by"] for name, fact in facts.items()} == {
        "test": None,
        "situations": "scene",
    }
    assert facts["test"]["records"]["situations"] == len(members)
    assert facts["test"]["nearness"] == read_json(out / "profile.json")["nearness"]["test"]
    assert not any("warnings" in fact for fact in facts.values())


def test_counts_of_the_profile_become_warnings(tmp_path):
    spans = [{"start": 0, "end": 2, "type": "NAME"}]
    contents = [raw(i, spans=spans, likes=1) for i in range(20)]
    contents += [raw(i + 20, contents[i]["input"]) for i in range(3)] + [raw(30, " ")]
    assert clean.test_set_facts(run(tmp_path, contents))["test"]["warnings"] == [
        "1 of 24 records rejected: blank text",
        "3 of 24 records rejected: duplicate text, other label",
        "fields not read: 'scene' 24, 'likes' 20",
        "ends of spans at word edges: 50%",
    ]


PRESIDIO = {
    **{"input": "full_text", "start": "start_position", "end": "end_position", "id": None},
    **{"type": "entity_type", "value": "entity_value"},
}
AI4PRIVACY = {"input": "source_text", "spans": "privacy_mask", "type": "label", "value": "value"}
BY_VALUE = {"fields": AI4PRIVACY | {"id": None}, "repair": "by-value"}
MASKS = "pii/ai4privacy_format/synthetic_pii_data"
CHARACTERS = {"join": "", "characters": True}
COPIES, CONFLICT, FOUND = "duplicate text", "duplicate text, other label", "span found by value"


def split_files(train, valid, test):
    return {"files": {"train": [train], "valid": [valid], "test": [test]}}


@pytest.mark.parametrize(
    ("path", "settings", "records", "spans", "rejects", "repaired"),
    [
        ("pii/synth_dataset_v2.json", {"fields": PRESIDIO}, 1392, 2847, {COPIES: 108}, {}),
        ("pii/generated_small.json", {"fields": PRESIDIO, "repair": "by-value"}, 96, 173,
         {COPIES: 4}, {FOUND: 1}),
        (f"{MASKS}_ai21-jamba-instruct.csv", BY_VALUE, 99, 287, {}, {FOUND: 281}),
        pytest.param(
            "ner/conll2003",
            {"conll": {}, "split": split_files("train.txt", "valid.txt", "test.txt")},
            18_408, 32_415, {COPIES: 1663, CONFLICT: 68, "near duplicate": 605}, {},
            marks=pytest.mark.slow),
        ("ner/weibo", {"conll": CHARACTERS, "split": split_files("*.train", "*.dev", "*.test")},
         1699, 2398, {COPIES: 132, CONFLICT: 59}, {}),
    ],
)  # fmt: skip
def test_all_real_records_are_counted(tmp_path, path, settings, records, spans, rejects, repaired):
    if not (DATA / path).exists():
        pytest.skip(f"{path} is not in ../shared/data")
    if (DATA / path).is_dir():
        shutil.copytree(DATA / path, tmp_path / "raw")
    else:
        (tmp_path / "raw").mkdir()
        shutil.copy(DATA / path, tmp_path / "raw")
    out = clean_folder(tmp_path, corpus(**settings))
    profile = read_json(out / "profile.json")
    splits = read_splits(out)
    assert sum(map(len, splits.values())) == records
    assert sum(len(r.gold) for members in splits.values() for r in members) == spans
    assert profile["rejects"] == reasons(out) == rejects
    assert profile["repaired"] == repaired
    assert profile["records"]["raw"] == records + sum(rejects.values())


def test_the_cause_of_an_empty_split_comes_first(cwd):
    with pytest.raises(WxbError, match=r": 19 records rejected, 19 .* for duplicate id") as e:
        run(cwd, [raw(index, id="1") for index in range(20)])
    assert "Without them, the valid split has no labelled record" in str(e.value)
    assert len([*read_jsonl(cwd / "logs/preprocess@test.rejects.jsonl")]) == 19


@pytest.mark.parametrize(("formats", "count"), [({}, 1), ({"text": 3}, 0)])
def test_answers_that_cannot_be_checked_are_a_warning(formats, count):
    counts = {"records": {"raw": 9}, "rejects": {}, "fields_not_read": {}}
    texts = clean.warnings({**counts, "splits": {"test": {"formats": formats}}})
    assert len([text for text in texts if "no answer can be checked" in text]) == count
