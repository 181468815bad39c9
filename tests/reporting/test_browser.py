"""Every kind of page in a browser, wide and narrow, light and dark, and on paper."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as BrowserPage

from stages import report
from tests import demo
from tests.reporting.conftest import NEEDED, Tree, write_page
from wxb.lessons import Lesson, assemble, shares_table
from wxb.reporting import figures
from wxb.reporting.page import write_index
from wxb.reporting.parts import Charts, Section
from wxb.tasks.speech.metrics import PredictionRow as SpeechRow
from wxb.tasks.translation.metrics import PredictionRow as TranslationRow

MEMBERS = ["ner-encoder", "ner-decoder", "ner-decoder-bidirectional-with-a-long-name"]
RAN = "window.ran = true"
HOSTILE = f'</script><script>{RAN}</script>"><img src=x onerror="{RAN}">'
WORDS = [f"##token{number}" for number in range(40)]

pytestmark = [NEEDED, pytest.mark.slow]


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


def lesson_page():
    """The page of a lesson with wide figures and tables."""
    heads = {
        f"Head {number}": figures.matrix(np.eye(40), WORDS, WORDS, names=("query", "key"))
        for number in range(4)
    }
    table = shares_table("Habits", ["head", *WORDS[:12]], {"first": [0.5] * 12})
    part = Section("layer", "Layer 1", ["Text.", Charts(heads), table])
    params = demo.params()
    page = assemble(params, "attention", Lesson({}, "It looks back.", ["40 tokens"], [part]))
    Path("reports/attention.html").write_text(page, encoding="utf-8")


def ner_pages():
    """The page of a study with hostile texts, and the index."""
    spans = [(0, 3, f"T{HOSTILE}"), (4, 90, "B")]
    records = [(f"{HOSTILE}-{n}", f"Ann {HOSTILE} {'w' * 200}", spans) for n in range(40)]
    tree = Tree(MEMBERS, records, title=f"Which? {HOSTILE}")
    report.main(tree.params, "ner")
    write_index(tree.params)


PAGES = {
    "ner": ner_pages,
    "index": ner_pages,
    "speech": lambda: write_page("speech", [transcripts(30), transcripts(20)]),
    "translation": partial(write_page, "translation", [translations(30), translations(20)]),
    "attention": lesson_page,
}


class Look(NamedTuple):
    """A page in one window and scheme, with console messages and requested URLs."""

    page: BrowserPage
    name: str
    width: int
    messages: list[str]
    requests: list[str]


@pytest.fixture(scope="module", params=PAGES)
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("reports").mkdir()
        PAGES[request.param]()
    return folder / "reports" / f"{request.param}.html"


@pytest.fixture(
    scope="module",
    params=[(1280, "light"), (1280, "dark"), (360, "dark")],
    ids=lambda look: f"{look[0]}-{look[1]}",
)
def look(request, browser: Browser, written):
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, locale="en-GB"
    )
    messages: list[str] = []
    requests: list[str] = []
    context.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
    context.on("weberror", lambda error: messages.append(str(error.error)))
    context.on("request", lambda request: requests.append(request.url))
    page = context.new_page()
    page.goto(written.as_uri())
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    expect(page.locator(".figure:not(:has(.main-svg))")).to_have_count(0, timeout=30_000)
    yield Look(page, written.stem, width, messages, requests)
    context.close()


def test_pages_request_nothing_but_themselves_and_the_console_is_empty(look):
    others = [url for url in look.requests if not url.startswith(("data:", "blob:"))]
    assert others == [look.page.url]
    assert look.messages == []


def test_hostile_text_is_shown_and_does_not_run(look):
    assert look.page.evaluate("window.ran") is None
    if look.name in ("ner", "index"):
        assert look.page.locator("img").count() == 0
        assert HOSTILE in look.page.inner_text("body")


def test_a_click_on_a_header_sorts_the_rows_of_any_table(look):
    for table in look.page.locator("table:has(tbody tr + tr)").all():
        names = table.locator("tbody th")
        before = names.all_text_contents()
        header = table.locator("thead th").first
        for is_reversed in (True, False):
            header.click()
            names_now = names.all_inner_texts()
            assert sorted(names_now) == sorted(names.all_inner_texts())
            if not any(name[:1].isdigit() for name in names_now):
                assert names_now == sorted(names_now, reverse=is_reversed)
        assert sorted(names.all_text_contents()) == sorted(before)


def test_the_answer_the_chart_and_the_table_are_on_the_first_screen(look):
    bottom = "document.querySelector('table').getBoundingClientRect().bottom + scrollY"
    if look.width == 1280 and look.name in ("speech", "translation"):
        assert look.page.evaluate(bottom) < 900


def test_nothing_overflows_the_page(look):
    assert look.page.evaluate("document.documentElement.scrollWidth") <= look.width
    outside = look.page.evaluate(
        """(inside) => [...document.querySelectorAll(inside)].filter((element) => {
          const { left, right } = element.getBoundingClientRect();
          return left < -1 || right > innerWidth + 1;
        }).map((element) => element.outerHTML.slice(0, 200))""",
        # Tables and the navigation scroll in a box; plotly measures text in a hidden element.
        "body *:not(.wide *, nav *, .unseen, #js-plotly-tester, #js-plotly-tester *)",
    )
    assert outside == []


def test_every_figure_has_marks_and_a_label_and_fits(look):
    charts = look.page.evaluate(
        """() => [...document.querySelectorAll(".figure")].map((figure) => {
          const drawing = figure.querySelector(".main-svg").getBoundingClientRect();
          return {
            height: drawing.height,
            width: drawing.width,
            room: figure.getBoundingClientRect().width,
            marks: figure.querySelectorAll(".point, .js-line, .hm").length,
            label: figure.ariaLabel,
          };
        })"""
    )
    assert len(charts) == {"ner": 7, "index": 0, "attention": 4}.get(look.name, len(charts))
    for chart in charts:
        assert chart["height"] > 120
        assert 200 < chart["width"] <= chart["room"] + 1
        assert chart["marks"] > 0
        assert chart["label"]


def test_there_is_one_first_heading_and_every_table_has_a_caption_and_headers(look):
    headings = "[...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => heading.tagName)"
    levels = [int(h[1]) for h in look.page.evaluate(headings)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    tables = look.page.locator("table")
    assert tables.count() == look.page.locator("table > caption:not(:empty)").count() > 0
    assert look.page.locator("th:not([scope])").count() == 0


def test_print_is_white_and_charts_fit_the_paper(look):
    paper = 794 - 2 * 57  # pixels of A4 without its margins
    look.page.set_viewport_size({"width": paper, "height": 900})
    look.page.emulate_media(media="print")
    background, cut = look.page.evaluate(
        """(width) => [
          getComputedStyle(document.body).backgroundColor,
          [...document.querySelectorAll(".figure .main-svg")].filter((drawing) =>
            drawing.getBoundingClientRect().right > width + 1
            || !drawing.getAttribute("viewBox")
          ).map((drawing) => drawing.outerHTML.slice(0, 200)),
        ]""",
        paper,
    )
    look.page.emulate_media(media="null")
    look.page.set_viewport_size({"width": look.width, "height": 900})
    assert background == "rgb(255, 255, 255)"
    assert cut == []
