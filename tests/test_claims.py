"""Figures in the README and docs/: each is in docs/claims.yaml, with a file that has its value.

A claim names a sentence of a page, a file of evidence, and the key of each figure, in order. Parts
of a key are separated by "/"; `NAME=VALUE` selects the row of a list. Generated tables, code, the
level of intervals, versions and sizes of models are no claims.
"""

import re

import pytest

from docs.generate import COMMANDS
from tests.project_copy import ROOT
from wxb.core.files import read_json
from wxb.core.params import read_yaml

CLAIMS = read_yaml(ROOT / "docs/claims.yaml")
CASES = [(page, claim) for page, claims in CLAIMS.items() for claim in claims]
PAGES = {ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - {ROOT / COMMANDS}
NO_CLAIMS = re.compile(
    r"<!-- generated.*?<!-- end -->|^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|95%"
    r"|(?:Python|Llama|transformers|fastapi|uvicorn) [\d.]+\d(?:(?:, | to | and )[\d.]*\d)*"
    r"|\d[\d.]* (?:M|k|million|billion)\b",
    re.DOTALL | re.MULTILINE,
)
UNIT = r"(?:%| (?:CPU )?(?:seconds?|minutes?|hours?|times|ms|[GM]i?B)\b)"
NUMBER = r"\d[\d,]*(?:\.\d+)?"
FIGURE = re.compile(rf"(?<![\w.-])(?:\d[\d,]*\.\d+(?![\de])|{NUMBER}(?: to {NUMBER})?{UNIT})")


def prose(page):
    return NO_CLAIMS.sub("", page.read_text(encoding="utf-8"))


def figures(text):
    return [number for match in FIGURE.findall(text) for number in re.findall(NUMBER, match)]


def value(content, key):
    for part in key.split("/"):
        if isinstance(content, list) and "=" in part:
            wanted = {*part.split("&")}
            (content,) = (r for r in content if wanted <= {f"{k}={v}" for k, v in r.items()})
        else:
            content = content[int(part) if isinstance(content, list) else part]
    return float(content)


@pytest.mark.parametrize(("page", "claim"), CASES, ids=str)
def test_the_evidence_of_a_claim_has_its_figures(page, claim):
    assert claim["sentence"] in prose(ROOT / page)
    read = read_json if claim["file"].endswith(".json") else read_yaml  # of which JSON is slow
    evidence = read(ROOT / claim["file"])
    for figure, key in zip(figures(claim["sentence"]), claim["keys"], strict=True):
        found = abs(value(evidence, key)) * (100 if f"{figure}%" in claim["sentence"] else 1)
        assert f"{found:,.{len(figure.partition('.')[2])}f}" == figure, key


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.name)
def test_every_figure_is_claimed(page):
    text = prose(page)
    for claim in CLAIMS.get(page.relative_to(ROOT).as_posix(), []):
        text = text.replace(claim["sentence"], "")
    assert figures(text) == []


def test_leads_of_one_seed_that_three_do_not_have_are_counted():
    lost = 0
    for seeds in (ROOT / "reports/seeds").glob("*.json"):
        several, one = read_json(seeds), read_json(ROOT / "reports/studies" / seeds.name)
        corrected = [
            {(p["a"], p["b"]): p["difference"]["corrected"] for p in study["pairs"]}
            for study in (several, one)
        ]
        lost += sum(p <= 0.05 < corrected[0].get(pair, 0) for pair, p in corrected[1].items())
    assert f"one seed showed, {lost} were gone with three" in prose(ROOT / "docs/results.md")
