"""The benchmark of classifiers on a small generated collection."""

import csv

import pytest
from typer.testing import CliRunner

from demos.reviews import generate
from tests.benchmarks.script import script

benchmark = script("classification/texts")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("reviews") / "reviews.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["review", "sentiment"])
        records = generate(labelled=150, unlabelled=0, languages=["en"], seed=1)
        rows.writerows([record["review"], record["sentiment"]] for record in records)
    return path


def run(*arguments):
    result = CliRunner().invoke(benchmark.app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_curve_is_a_table_and_is_resumed(file, tmp_path):
    sizes = ("--size", 80, "--size", 150)
    command = (file, "--system", "tfidf", *sizes, "--folder", tmp_path)
    first = run(*command)
    assert "| 150 (105) |" in first
    again = run(*command)
    assert again.splitlines()[-3:] == first.splitlines()[-3:]
    assert {path.name for path in tmp_path.iterdir()} == {
        "reviews-tfidf-150-1.json",
        "reviews-tfidf-80-1.json",
    }
