"""The benchmark of classifiers on a small made-up collection."""

import csv

import pytest
from typer.testing import CliRunner

from demos.reviews import generate
from tests.benchmarks.script import script

benchmark = script("classification")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("reviews") / "reviews.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["review", "sentiment"])
        made = generate(labelled=150, unlabelled=0, languages=["en"], seed=1)
        rows.writerows([one["review"], one["sentiment"]] for one in made)
    return path


def run(*arguments):
    done = CliRunner().invoke(benchmark.app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_folds_predict_as_scikit_learns_pipeline_does(file):
    assert "; 0 predictions differ" in run("folds", file, "--number", 3)


def test_a_curve_is_a_table_and_a_chart_of_what_is_kept(file, tmp_path):
    asked = ("curve", file, "--system", "tfidf", "--size", 80, "--size", 150, "--output", tmp_path)
    first = run(*asked)
    assert "| 150 (105) |" in first
    assert 'x-axis "labelled records" [80, 150]' in first
    again = run(*asked, "--kept")
    assert again in first
    assert {path.name for path in tmp_path.iterdir()} == {
        "reviews-tfidf-150-1.json",
        "reviews-tfidf-80-1.json",
    }
