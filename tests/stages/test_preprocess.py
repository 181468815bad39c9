import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.preprocess import main, preprocess
from wxb.corpora import clean
from wxb.errors import WxbError
from wxb.files import read_json, read_jsonl
from wxb.params import Corpus, check, read_yaml

ROOT = Path(__file__).parents[2]
REAL = ROOT / "../shared/data/pii/synth_dataset_v2.json"


def corpus(**changes):
    return Corpus.model_validate({"path": "x", "split": {"test": 0.2, "valid": 0.2}, **changes})


def raw(number, text=None, **changes):
    text = f"Ann has number {number}" if text is None else text
    spans = [{"start": 0, "end": 3, "type": "NAME"}]
    return {"id": f"id {number}", "input": text, "spans": spans, "language": "en", **changes}


def run(folder, contents, **changes):
    """The clean folder made of some records."""
    file, out = folder / "records.jsonl", folder / "clean"
    file.write_text("\n".join(map(json.dumps, contents)), encoding="utf-8")
    preprocess([file], corpus(**changes), seed=1, label="preprocess@test", out=out)
    return out


def kept(out):
    return {name: clean.read(out / f"{name}.parquet") for name in clean.SPLITS}


def rejected(out):
    return list(read_jsonl(out / "rejects.jsonl"))


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
)
def test_every_raw_record_ends_in_a_split_or_in_the_rejects(
    tmp_path_factory, odd, languages, limit
):
    contents = GOOD + [raw(i) | changes for i, changes in enumerate(odd)]
    out = run(tmp_path_factory.mktemp("run"), contents, languages=languages, max_records=limit)
    counts = read_json(out / "profile.json")
    splits, rejects = kept(out), rejected(out)
    assert counts["records"] == {
        "raw": len(contents),
        "rejected": len(rejects),
        **{name: len(members) for name, members in splits.items()},
    }
    assert sum(map(len, splits.values())) + len(rejects) == len(contents)
    assert counts["rejects"] == reasons(out)
    everything = [r for members in splits.values() for r in members]
    assert len({r.text for r in everything}) == len({r.id for r in everything}) == len(everything)
    known = [r.id for r in everything] + [r["id"] for r in rejects if r["id"] is not None]
    assert Counter(c["id"] for c in contents if c["id"]) - Counter(known) == Counter()


def test_each_reason_is_told(tmp_path):
    contents = [
        *GOOD,
        raw("copy", text=GOOD[0]["input"]),
        raw("French", language="fr"),
        raw("empty", text=""),
        raw("surplus"),
    ]
    out = run(tmp_path, contents, languages=["en"], max_records=30)
    assert (
        rejected(out)
        == [
            {
                "origin": "id French",
                "reason": "other language",
                "detail": "'fr' is not among ['en']",
                "id": "id French",
            },
            {
                "origin": "records.jsonl:line 33",
                "reason": "blank text",
                "detail": "'input' has no visible character",
                "id": "id empty",
            },
            {
                "origin": "id copy",
                "reason": "duplicate text",
                "detail": "same text as id good 0",
                "id": "id copy",
            },
            {
                "origin": "id surplus",
                "reason": "over max_records",
                "detail": "",
                "id": "id surplus",
            },
        ]
        or sorted(reasons(out)) == []
    )


def test_the_same_bytes_every_time(tmp_path):
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        out = run(tmp_path / name, GOOD)
        contents.append({p.name: p.read_bytes() for p in out.iterdir()})
    assert contents[0] == contents[1]
    names = ["profile.json", "rejects.jsonl", "test.parquet", "train.parquet", "valid.parquet"]
    assert sorted(contents[0]) == names


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ([raw(1, text="")], r"records\.jsonl: all 1 records were rejected.*blank text.*`fields`"),
        (GOOD[:1], "split has no labelled record"),
        ([raw(i, spans=None) for i in range(30)], "split has no labelled record"),
    ],
)
def test_too_little_is_an_error_and_nothing_is_written(tmp_path, contents, message):
    with pytest.raises(WxbError, match=message):
        run(tmp_path, contents)
    assert not (tmp_path / "clean").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"[{"),
        ("a.json", b""),
        ("a.jsonl", b"\xff\xfe[\0]\0"),
        ("a.csv", b'input,spans\n"'),
        ("a.json", b"{}"),
    ],
)
def test_an_unreadable_file_leaves_no_clean_folder(tmp_path, monkeypatch, name, content):
    monkeypatch.chdir(tmp_path)
    params = check(read_yaml(ROOT / "params.yaml"))
    (tmp_path / "data/raw/pii").mkdir(parents=True)
    (tmp_path / "data/raw/pii" / name).write_bytes(content)
    with pytest.raises(WxbError, match=rf"data/raw/pii/{name}: .*expected|not CSV"):
        main(params, "pii")
    assert not list((tmp_path / "data/clean").iterdir())


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL.name} is not in ../shared/data/pii")
def test_real_records_are_all_accounted_for(tmp_path):
    fields = {
        "text": "full_text",
        "spans": "spans",
        "start": "start_position",
        "end": "end_position",
        "type": "entity_type",
        "value": "entity_value",
        "language": None,
        "id": None,
    }
    split = {"by": "template_id", "test": 0.2, "valid": 0.1}
    settings = corpus(fields=fields, split=split)
    out = tmp_path / "clean"
    preprocess([REAL], settings, seed=1, label="preprocess@test", out=out)
    assert read_json(out / "profile.json")["records"]["raw"] == 1500
    assert reasons(out) == {"duplicate text": 108}
    splits = kept(out)
    assert sum(map(len, splits.values())) == 1392
    groups = {name: {r.group for r in members} for name, members in splits.items()}
    assert not groups["train"] & groups["test"]
    assert not groups["valid"] & (groups["train"] | groups["test"])
