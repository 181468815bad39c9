"""The pages as a browser shows them, wide and narrow, light and dark."""

from itertools import pairwise
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from stages import report
from tests.reporting.conftest import NEEDED, Tree
from wxb.reporting.index import write_index

MEMBERS = ["ner-encoder", "ner-decoder", "ner-decoder-bidirectional-with-a-long-name"]
RAN = "window.ran = true"
HOSTILE = f'</script><script>{RAN}</script>"><img src=x onerror="{RAN}">'
LONG = "w" * 200

pytestmark = NEEDED


class Look(NamedTuple):
    """Both pages in one window and scheme, with console messages and requested URLs."""

    study: Page
    index: Page
    width: int
    messages: list[str]
    requests: list[str]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    records = [
        (f"{HOSTILE}-{number}", f"Ann {HOSTILE} {LONG}", [(0, 3, f"T{HOSTILE}"), (4, 90, "B")])
        for number in range(40)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tree = Tree(MEMBERS, records, title=f"Which? {HOSTILE}")
        report.main(tree.params, "ner")
        write_index(tree.params)
    return folder / "reports"


@pytest.fixture(
    scope="module",
    params=[(width, scheme) for width in (1280, 360) for scheme in ("light", "dark")],
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
    context.on("dialog", lambda dialog: messages.append(dialog.message))
    context.on("request", lambda request: requests.append(request.url))
    index, study = context.new_page(), context.new_page()  # the last is in front
    index.goto((written / "index.html").as_uri())
    study.goto((written / "ner.html").as_uri())
    expect(study.locator(".figure:not(:has(.main-svg))")).to_have_count(0, timeout=30_000)
    study.evaluate(
        "for (const details of document.querySelectorAll('details')) details.open = true"
    )
    yield Look(study, index, width, messages, requests)
    context.close()


def test_the_console_is_empty(look):
    assert look.messages == []


def test_a_click_on_a_header_sorts_the_rows(look):
    if look.width < 1000:
        return  # phones show no header
    header = look.study.locator("table.results thead th").nth(0)
    names = look.study.locator("table.results tbody th")
    before = names.all_inner_texts()
    for order in (True, False):
        header.click()
        assert names.all_inner_texts() == sorted(before, key=str.casefold, reverse=order)
    look.study.reload()
    expect(look.study.locator(".figure:not(:has(.main-svg))")).to_have_count(0, timeout=30_000)
    assert names.all_inner_texts() == before
    look.study.evaluate(
        "for (const details of document.querySelectorAll('details')) details.open = true"
    )


def test_times_are_sorted_by_seconds(look):
    if look.width < 1000:
        return
    cells = look.study.locator("table.results tbody td[data-label='wall time']")
    seconds = [7.0, 70.0, 8.5]
    cells.evaluate_all(
        "(cells, seconds) => cells.forEach((c, i) => (c.dataset.value = seconds[i]))", seconds
    )
    look.study.locator("table.results thead th", has_text="wall time").click()
    values = cells.evaluate_all("(cells) => cells.map((cell) => Number(cell.dataset.value))")
    assert values == sorted(seconds, reverse=True)
    look.study.locator("table.results thead th", has_text="wall time").click()


def test_a_field_filters_experiments_in_all_tables(look):
    names = look.study.locator("tbody th:has(.chip)")
    total = names.locator("visible=true").count()  # a phone hides a row
    field = look.study.get_by_role("searchbox", name="Filter experiments")
    field.fill("encoder")
    shown = names.locator("visible=true").all_inner_texts()
    assert 0 < len(shown) < total
    assert all("encoder" in name for name in shown)
    field.fill("")
    assert names.locator("visible=true").count() == total


def test_pages_request_nothing_but_themselves(look, written):
    own = {(written / name).as_uri() for name in ("ner.html", "index.html")}
    others = [url for url in look.requests if not url.startswith(("data:", "blob:"))]
    assert {*others} == own


def test_hostile_text_is_shown_and_does_not_run(look):
    for page in (look.study, look.index):
        assert page.evaluate("window.ran") is None
        assert page.locator("img").count() == 0
        assert HOSTILE in page.inner_text("body")
    assert look.study.title() == f"Which? {HOSTILE}"
    for section in ("#types", "#mistakes"):
        assert HOSTILE in look.study.inner_text(section)


def test_nothing_overflows_the_page(look):
    for page in (look.study, look.index):
        assert page.evaluate("document.documentElement.scrollWidth") <= look.width
        outside = page.evaluate(
            """(inside) => [...document.querySelectorAll(inside)].filter((element) => {
              const { left, right } = element.getBoundingClientRect();
              return left < -1 || right > innerWidth + 1;
            }).map((element) => element.outerHTML.slice(0, 200))""",
            # Tables scroll in a box; plotly measures text in a hidden element.
            "body *:not(.wide *, .unseen, #js-plotly-tester, #js-plotly-tester *)",
        )
        assert outside == []


def test_wide_tables_scroll_in_their_box(look):
    widths = look.study.evaluate(
        """() => [...document.querySelectorAll(".wide")].map((box) => {
          box.scrollLeft = 1e6;
          const [last, edge] = [box.querySelector("tr:last-child > :last-child"), box].map(
            (element) => element.getBoundingClientRect().right
          );
          return [box.scrollWidth, box.clientWidth, last - edge];
        })"""
    )
    assert look.width > 400 or any(whole > seen for whole, seen, _ in widths)
    assert all(beyond <= 1 for *_, beyond in widths)


def test_every_figure_fits_its_box(look):
    figures = look.study.evaluate(
        """() => [...document.querySelectorAll(".figure")].map((figure) => {
          const drawing = figure.querySelector(".main-svg").getBoundingClientRect();
          return {
            height: drawing.height,
            width: drawing.width,
            room: figure.getBoundingClientRect().width,
            marks: figure.querySelectorAll(".point, .js-line").length,
            label: figure.ariaLabel,
          };
        })"""
    )
    assert len(figures) == 10
    for figure in figures:
        assert figure["height"] > 150
        assert 200 < figure["width"] <= figure["room"] + 1
        assert figure["marks"] > 0
        assert figure["label"]


def test_figures_use_the_colours_of_the_scheme(look):
    fills, ink, quiet = look.study.evaluate(
        """() => [
          [...document.querySelectorAll(".figure text")].map((text) => getComputedStyle(text).fill),
          getComputedStyle(document.body).color,
          getComputedStyle(document.querySelector(".quiet")).color,
        ]"""
    )
    assert {*fills} == {ink, quiet}


@pytest.mark.parametrize(
    ("figure", "mark", "text"),
    [
        ("forest", ".scatterlayer .point", "F1 0."),
        ("errors", ".barlayer .point path", "wrong boundary"),
        ("loss-ner-encoder", ".scatterlayer .point", "step 10"),
    ],
)
def test_hovering_over_a_marker_shows_its_numbers(look, figure, mark, text):
    look.study.locator(f"#{figure}").scroll_into_view_if_needed()
    x, y = look.study.evaluate(
        """(marks) => {
          const boxes = [...document.querySelectorAll(marks)].map((e) => e.getBoundingClientRect());
          const { x, y, width, height } = boxes.sort((a, b) => b.width - a.width)[0];
          return [x + width / 2, y + height / 2];
        }""",
        f"#{figure} {mark}",
    )
    look.study.mouse.move(x, y)
    expect(look.study.locator(f"#{figure} .hovertext").first).to_contain_text(text)


def test_keyboard_focus_is_visible(look):
    for page in (look.study, look.index):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid 2px" in outline


def test_headings_skip_no_level(look):
    for page in (look.study, look.index):
        levels = [
            int(h[1])
            for h in page.evaluate(
                "[...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => heading.tagName)"
            )
        ]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_table_has_a_caption_and_column_headers(look):
    tables = look.study.locator("table")
    assert tables.count() == look.study.locator("table > caption:not(:empty)").count() > 0
    assert look.study.locator("th:not([scope])").count() == 0


def test_the_box_has_at_most_ten_lines_and_its_list_is_printed(look):
    if look.width < 1000:
        return
    page = look.study
    page.locator(".about details").evaluate("(details) => (details.open = false)")
    height, line = page.locator(".about dl").evaluate(
        "(box) => [box.clientHeight, parseFloat(getComputedStyle(box).lineHeight)]"
    )
    experiment = page.locator(".about li").first
    assert not experiment.is_visible()
    page.emulate_media(media="print")
    assert experiment.is_visible()
    page.emulate_media(media="null")
    page.locator(".about details").evaluate("(details) => (details.open = true)")
    assert height < 12 * line  # with the gaps


def test_print_is_white_and_figures_fit_the_paper(look):
    look.study.emulate_media(media="print")
    background, width, is_scaled = look.study.evaluate(
        """() => {
          document.querySelector("#forest").style.width = "250px";
          const drawing = document.querySelector("#forest .main-svg");
          const result = [getComputedStyle(document.body).backgroundColor, drawing.clientWidth];
          result.push(drawing.getAttribute("viewBox") === `0 0 ${drawing.getAttribute("width")} `
            + drawing.getAttribute("height"));
          document.querySelector("#forest").style.width = "";
          return result;
        }"""
    )
    look.study.emulate_media(media="null")
    assert background == "rgb(255, 255, 255)"
    assert width == 250
    assert is_scaled
