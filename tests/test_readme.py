"""The READMEs: generated parts are current, scores are right, and both languages agree."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs import generate
from docs.generate import READMES, current_texts, refresh_blocks
from tests import demo
from tests.project_copy import ROOT
from tests.repository import Files
from tests.tasks.speech.tones import tone, write
from wxb.cli.app import app
from wxb.core.errors import WxbError
from wxb.core.params import check, read_yaml
from wxb.project import profiles, provenance, revisions

NAMES = ["Ann", "Bob", "Eve", "Joe", "Kim", "Max", "Sue", "Lou", "Ida", "Pam", "Ray", "Tim", "Una"]


@pytest.fixture(autouse=True)
def _root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_generated_parts_are_current():
    try:
        revisions.index()
    except WxbError as error:
        pytest.skip(f"no committed results: {error}")
    texts = current_texts()
    shown = {study for studies in generate.TABLES.values() for study in studies}
    committed = {*provenance.studies(revisions.index())} & profiles.studies()  # none of a user
    curves = re.compile(rf"({'|'.join(generate.CURVES)})-\d+")
    assert {study for study in committed if not curves.fullmatch(study)} == shown
    pages = ("docs/results.md", "docs/tasks/translation.md", "docs/img/curve-dark.svg")
    assert {*READMES, *map(Path, pages)} < texts.keys()
    stale = [path for path, text in texts.items() if text != path.read_text(encoding="utf-8")]
    assert stale == [], "run `python -m docs.generate`"


@pytest.mark.parametrize("path", READMES, ids=str)
def test_a_readme_is_short(path):
    assert path.stat().st_size <= 10_240


CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)]+)\)")
INLINE = re.compile(r"`([^`]+)`")
NUMBER = re.compile(r"[−+-]?\d[\d.,]*\d|[−+-]?\d")


def contents(line):
    """The start of a line, and its links, code and numbers in any order: languages differ in it."""
    words = INLINE.sub("", LINK.sub("]", line))
    links = [link for link in LINK.findall(line) if link not in map(str, READMES)]
    start = re.match(r"#*|- |\||<!--", line)[0], line.count("|") if line[:1] == "|" else 0
    return start, sorted(links), sorted(INLINE.findall(line)), sorted(NUMBER.findall(words))


def test_both_languages_have_the_same_commands_links_and_numbers():
    english, chinese = (path.read_text(encoding="utf-8") for path in READMES)
    assert CODE.findall(english) == CODE.findall(chinese)
    lines = [CODE.sub("", text).splitlines() for text in (english, chinese)]
    for first, second in zip(*lines, strict=True):
        assert contents(first) == contents(second)


def test_the_table_of_a_benchmark_has_its_numbers_formatted(monkeypatch):
    machine = {"device": "a CPU", "torch": "2"}
    row = {"model": "lstm", "updates": 1000, "F1": [0.5, 0.4, 0.6], "less": [-0.1, -0.2, 0.0]}
    speed = {
        "made": {"finished": "2026-01-02T03:04:05", "machines": [machine]},
        "rows": [{**row, "rates": [0.95, 0.05]}, {**row, "updates": None, "rates": None}],
        "formats": {"less": "+.1f", "rates": ".2f"},
    }
    index = Files("", {"reports/benchmarks/speed.json": speed})
    monkeypatch.setattr(revisions, "index", lambda: index)
    lines = refresh_blocks("<!-- generated: speed -->\n<!-- end -->").splitlines()
    assert lines[1:5] == [
        "| model | updates | F1 | less | rates |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| lstm | 1,000 | 0.500 (0.400–0.600) | −0.1 (−0.2 to +0.0) | 0.95, 0.05 |",
        "| lstm |  | 0.500 (0.400–0.600) | −0.1 (−0.2 to +0.0) |  |",
    ]
    assert "Made on a CPU (torch 2), finished on 2026-01-02." in lines


def test_the_curve_has_all_sizes_of_its_experiments():
    f1 = {"value": 0.5, "low": 0.4, "high": 0.6}
    members = {"curve-3000": "ab", "curve-30": "ac", "pretrained": "bd", "tweets-9": "a"}
    studies = {
        f"reports/studies/{study}.json": {"systems": {f"{study}-{n}": {"f1": f1} for n in names}}
        for study, names in members.items()
    }
    scores = generate._curve_scores("curve", index := Files("", studies))[1]
    expected = {"a": [30, 3000], "b": [1300, 3000], "c": [30]}  # and "d" is only in PRETRAINED
    assert {name: [*by_size] for name, by_size in scores.items()} == expected
    assert generate._curve_figure(index, "#000", "#eee").count("<circle") == 5


def test_the_section_on_own_data_works(cwd):
    """Runs `wxb new` on the JSON file, and a CSV file and recordings with headers of the README."""
    page = (ROOT / READMES[0]).read_text(encoding="utf-8").partition("\n## Your own data\n")[2]
    demo.write(cwd)
    shutil.copy(ROOT / "dvc.yaml", cwd)
    (header,) = re.findall(r"a header such as `([^`]+)`", page)
    mails = [f"From {name}.,{'praise' if name > 'L' else 'complaint'}" for name in NAMES]
    Path("mails.csv").write_text("\n".join([header, *mails]) + "\n")
    ((file, content),) = re.findall(
        r'^```json title="(\S+)"\n(.*?)^```', page, re.DOTALL | re.MULTILINE
    )
    record = json.loads(content)[0]
    letters = [{**record, "text": record["text"].replace("Ann", name)} for name in NAMES]
    Path(file).write_text(json.dumps(letters))
    (header,) = re.findall(r"`transcripts.csv` \(`([^`]+)`", page)
    Path("talks").mkdir()
    for index, name in enumerate(NAMES, 1):
        write(Path("talks") / f"{name}.wav", tone(hertz=100 * index))
    talks = [f"{name}.wav,Hello {name}" for name in NAMES]
    Path("talks/transcripts.csv").write_text("\n".join([header, *talks]) + "\n")
    for command in re.findall(r"^\$ wxb (new [^#\n]+)", page, re.MULTILINE):
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, (command, result.output)
    (block,) = re.findall(r"^```yaml\nbackbones:[^\n]*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    text = Path("params.yaml").read_text()
    Path("params.yaml").write_text(text.replace("\nbackbones:\n", f"\nbackbones:\n{block}", 1))
    (command,) = re.findall(r"`wxb (new experiment [^`]+)`", page)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    params = read_yaml(Path("params.yaml"))
    assert params["experiments"]["letters-hub"]["backbone"] == "bert-base"
    check(params)
    assert {"mails-tfidf", "letters-encoder"} <= params["experiments"].keys()
