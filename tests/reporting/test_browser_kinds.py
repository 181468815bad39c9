"""Every kind of page in a browser: nothing is cut on a phone, a screen or paper."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from playwright.sync_api import expect

from tests.reporting.conftest import HOME, NEEDED, write_page
from wxb.core.params import check, read_yaml
from wxb.lessons import Lesson, Part, Table, assemble
from wxb.reporting.charts import figures
from wxb.reporting.index import write_index
from wxb.tasks.chat.metrics import PredictionRow as ChatRow
from wxb.tasks.classification.metrics import PredictionRow as ClassificationRow
from wxb.tasks.speech.metrics import PredictionRow as SpeechRow
from wxb.tasks.translation.metrics import PredictionRow as TranslationRow

WORDS = [f"##token{number}" for number in range(40)]
PARAMS = check(read_yaml(HOME / "params.yaml"))

pytestmark = NEEDED


def classes(right):
    """40 predictions of two classes, the first `right` of them correct."""
    rows = []
    for index in range(40):
        gold = "ab"[index % 2]
        predicted = gold if index < right else "ba"[index % 2]
        probabilities = {name: 0.9 if name == predicted else 0.1 for name in "ab"}
        rows.append(
            ClassificationRow(str(index), "some long text " * 9, gold, predicted, probabilities)
        )
    return rows


def translations(right):
    """40 translations, the first `right` of them correct; one with attention."""
    weights = np.eye(40).tolist()
    attention = {"source": WORDS, "target": WORDS, "weights": weights}
    reference = "the cat sat on the mat and slept until the dog came home"
    return [
        TranslationRow(
            str(index),
            f"source {index}",
            (reference,),
            reference if index < right else "cat",
            attention=attention if index == 0 else None,
        )
        for index in range(40)
    ]


def answers(right):
    """40 answers to questions of nine kinds, the first `right` of them correct."""
    question = "What is the longest word of all that were ever written down? " * 3
    return [
        ChatRow(
            str(index),
            question,
            "a word",
            "a word" if index < right else "another " * 30,
            f"kind-{index % 9}",
            "text",
            ended=True,
            replies={"few-shot": "a word", "instruction": "none"},
        )
        for index in range(40)
    ]


def transcripts(right):
    """40 transcripts of recordings of noise, the first `right` of them correct."""
    reference, noise = "這是一個很長的句子", np.random.default_rng(1)
    for index in range(40):
        soundfile.write(f"{index}.flac", 0.1 * noise.standard_normal(16_000), 16_000)
    return [
        SpeechRow(str(index), f"{index}.flac", reference, text, reference, text, 1.0, 10.0 + index)
        for index in range(40)
        for text in [reference if index < right else reference[:4] + "了"]
    ]


def speech_page():
    """The page of `speech`, with recordings in the working folder."""
    write_page("speech", [transcripts(30), transcripts(20)])


def lesson_page():
    """The page of a lesson with wide figures and tables."""
    heads = {
        f"Head {number}": figures.matrix(
            np.eye(40), WORDS, WORDS, names=("query", "key"), every=True
        )
        for number in range(4)
    }
    table = Table(["head", *WORDS[:12]], [["first", *[0.5] * 12]], [[0.5] * 12])
    part = Part("Layer 1", ["Told."], heads, ["one", "two"], {"Habits": table})
    page = assemble(PARAMS, "attention", Lesson({}, "It looks back.", ["40 tokens"], [part]))
    Path("reports/attention.html").write_text(page, encoding="utf-8")


def index_page():
    """The index page with a lesson."""
    lesson_page()
    write_index(PARAMS)


PAGES = {
    "reviews": partial(write_page, "reviews", [classes(30), classes(20)]),
    "news": partial(write_page, "news", [classes(30), classes(20)]),
    "chat": partial(write_page, "chat", [answers(30), answers(20)]),
    "speech": speech_page,
    "translation": partial(write_page, "translation", [translations(30), translations(20)]),
    "attention": lesson_page,
    "index": index_page,
}


@pytest.fixture(scope="module", params=PAGES)
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("reports").mkdir()
        PAGES[request.param]()
    return folder / "reports" / f"{request.param}.html"


@pytest.fixture(scope="module", params=[360, 1200])
def page(request, browser, written):
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    page = context.new_page()
    page.goto(written.as_uri())
    expect(page.locator(".figure:not(:has(.main-svg))")).to_have_count(0, timeout=30_000)
    yield page
    context.close()


def outside(page, width):
    """Elements that overflow the page, except tables and wide figures, which scroll."""
    return page.evaluate(
        """([inside, width]) => [...document.querySelectorAll(inside)].filter((element) => {
          const { left, right } = element.getBoundingClientRect();
          return left < -1 || right > width + 1;
        }).map((element) => element.outerHTML.slice(0, 200))""",
        # Plotly measures text in a hidden element.
        ["body *:not(.wide *, .unseen, #js-plotly-tester, #js-plotly-tester *)", width],
    )


def test_nothing_overflows_with_all_details_open(page):
    width = page.viewport_size["width"]
    phone = width < 640
    assert page.locator("details[open]").count() == 0 or not phone
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert outside(page, width) == []
    if not phone:  # a screen shows matrices and results whole
        assert page.locator(".wide:has(.figure, .results)").evaluate_all(
            "boxes => boxes.every((box) => box.scrollWidth <= box.clientWidth)"
        )


def test_every_label_of_a_matrix_is_shown(page, written):
    if written.stem not in ("attention", "translation"):
        pytest.skip("has no matrix")
    matrix = page.locator(".figure:has(.heatmaplayer .hm)").first
    for axis in ("xtick", "ytick"):
        assert matrix.locator(f".{axis} text").all_text_contents() == WORDS


def test_print_cuts_nothing(page):
    paper = 794 - 2 * 57  # pixels of A4 without its margins
    page.set_viewport_size({"width": paper, "height": 900})
    page.emulate_media(media="print")
    cut = page.evaluate(
        """(width) => [...document.querySelectorAll(".wide, .figure .main-svg")].filter((one) =>
          one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > width + 1
        ).map((one) => one.outerHTML.slice(0, 200))""",
        paper,
    )
    assert cut == []


def test_print_leaves_out_the_headings_of_closed_details(page):
    page.emulate_media(media="print")
    for is_open in (False, True):
        page.evaluate(
            "(open) => { for (const one of document.querySelectorAll('details')) one.open = open }",
            is_open,
        )
        every, shown = (page.locator(f".folded{state}").count() for state in ("", ":visible"))
        assert shown == (every if is_open else 0)
