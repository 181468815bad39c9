"""Comparisons are formatted in full, within the width of the terminal."""

import io

import pytest
from rich.console import Console

from wxb.project.reproduction.comparison import Change, Comparison, Score, Swap, Verdict
from wxb.project.reproduction.ranges import Range
from wxb.project.reproduction.wording import as_json, details, verdict_line

LONG = "an-experiment-of-some-name"
BEFORE = {"f1": 0.5, "f1_low": 0.49, "f1_high": 0.51, **{f"metric_{i}": i for i in range(9)}}
AFTER = {"f1": 0.505, "f1_low": 0.495, "f1_high": 0.515, "metric_8": 0.123456789}
MACHINES = (
    [{"device": "Abacus, 1 CPU thread(s)", "cpu": "Abacus", "capability": "AVX2", "torch": "2"}],
    [{"device": "Pascaline", "cpu": "Pascaline", "capability": "AVX2", "torch": "2"}],
)
RESULT = Comparison(
    "ner",
    [
        Score(LONG, Verdict.INSIDE, "f1", BEFORE, AFTER, Range(0.49, 0.51)),
        Score("new", Verdict.NEW, "f1", None, AFTER),
    ],
    [Swap("one", "two", 0.001, "no difference found", 0.02, "beyond noise")],
    [Change("[seed]", 1, None), Change("a", "x" * 100, {"b": 1})],
    ([1], [1, 2, 3]),
    {},
    MACHINES,
)
VERSIONS = ("HEAD (abc)", "here", "dvc repro report@ner")


@pytest.mark.parametrize("width", [80, 120])
def test_all_details_are_printed(width):
    screen = io.StringIO()
    for part in details(RESULT, *VERSIONS):
        Console(file=screen, width=width).print(part)
    output = screen.getvalue()
    assert max(map(len, output.splitlines())) <= width
    assert "…" not in output
    words = " ".join(output.split())
    for fact in (
        LONG,
        "0.5000 (0.4900–0.5100)",
        "metric 0 0 -> absent, metric 1 1 -> absent",
        "and 3 more",
        "one and two: +0.001 at HEAD (abc) (no difference found), -0.020 here (beyond noise)",
        "[seed] 1 -> null",
        "HEAD (abc) 1 here 1, 2, 3",
        "HEAD (abc) Abacus, 1 CPU thread(s) (AVX2, torch 2) here Pascaline (AVX2, torch 2)",
    ):
        assert fact in words
    assert output.count("x") >= 100


def test_the_verdict_line_is_first_and_in_json():
    screen = io.StringIO()
    first, *_ = details(RESULT, *VERSIONS)
    Console(file=screen, width=1000).print(first)
    assert (
        screen.getvalue().strip()
        == verdict_line(RESULT, *VERSIONS)
        == as_json(RESULT, *VERSIONS)["line"]
    )
    assert verdict_line(RESULT, *VERSIONS) == (
        "ner: not a rerun of HEAD (abc): 2 parameters differ. 1 of 1 is inside its 95% interval"
        " (test records). New: new."
    )
