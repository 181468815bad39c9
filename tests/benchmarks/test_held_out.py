"""The benchmark of held-out parts on a small generated collection."""

import csv
import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from demos.news import generate
from tests.benchmarks.script import script
from tests.project_copy import ROOT
from wxb.core.errors import WxbError
from wxb.corpora.records import Record

benchmark = script("classification/held_out")


def record(index, gold, part):
    words = "".join(chr(ord("a") + int(digit)) for digit in str(index))
    return Record(id=str(index), input=f"text {words}", gold=gold, language=None, group=part)


def test_the_largest_part_of_each_class_is_trained_on():
    parts = [
        ("fake", "a"),
        ("fake", "a"),
        ("fake", "b"),
        ("real", "c"),
        ("real", "c"),
        ("real", "d"),
    ]
    records = [record(index, *parts[index % 6]) for index in range(60)]
    train, tests = benchmark.divide(records)
    assert {(r.gold, r.group) for r in train} == {("fake", "a"), ("real", "c")}
    assert {(r.gold, r.group) for r in tests} == {*parts}
    assert len(train) == 32
    assert not {r.id for r in train} & {r.id for r in tests}


def test_training_records_with_the_wording_of_a_test_record_are_left_out():
    records = [record(index, "fake", "ab"[index % 3 == 0]) for index in range(30)]
    copy = replace(records[1], id="copy", group="b", input=records[-1].input.upper())
    train, _ = benchmark.divide([*records, copy])
    assert records[-1] not in train
    assert len(train) == 15


def test_the_table_and_the_file_have_each_part(tmp_path):
    items = [*generate(labelled=120, unlabelled=0, languages=["en"], seed=1)]
    (tmp_path / "in").mkdir()
    for label in ("fake", "real"):
        with (tmp_path / f"in/{label}.csv").open("w", encoding="utf-8", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["text", "subject"])
            rows.writerows(
                [item["text"], f"{label}-{'big' if index % 4 else 'small'}"]
                for index, item in enumerate(items)
                if item["label"] == label
            )
    output = tmp_path / "news.json"
    command = [tmp_path / "in", "--class", "fake.csv=fake", "--class", "real.csv=real"]
    result = CliRunner().invoke(benchmark.app, [*map(str, command), "--output", str(output)])
    assert result.exit_code == 0, result.output
    content = json.loads(output.read_text())
    assert [(row["subject"], row["in training"]) for row in content["rows"]] == [
        ("fake-big", "yes"),
        ("fake-small", "no"),
        ("real-big", "yes"),
        ("real-small", "no"),
        ("all", "yes"),
        ("all", "no"),
    ]
    counts = [row["test articles"] for row in content["rows"]]
    assert sum(counts[:4]) == sum(counts[4:])
    assert "fake-small" in result.output


def test_the_docs_have_the_committed_figures():
    content = json.loads((ROOT / "reports/benchmarks/news.json").read_text())
    for name in ("errata.md", "results.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for system in ("tfidf", "tfidf_raw"):
            assert f"{content['rows'][-1][benchmark.TITLES[system]]:.3f}" in text


@pytest.mark.parametrize(
    ("fields", "error"),
    [("text", "give the class"), ("text,label", "no record"), ("subject,text", "too few")],
)
def test_a_folder_without_usable_classes_is_an_error(fields, error, tmp_path):
    (tmp_path / "texts.csv").write_text("text,subject\nhello,a\n")
    result = CliRunner().invoke(benchmark.app, [str(tmp_path), "--fields", fields])
    assert isinstance(result.exception, WxbError)
    assert error in str(result.exception)
