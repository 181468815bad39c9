"""Examples, attention maps and sections of the page of a translation study."""

import numpy as np

from tests.reporting.conftest import study_of
from wxb.tasks.translation import metrics
from wxb.tasks.translation.metrics import PredictionRow
from wxb.tasks.translation.page import EXAMPLES as COUNT
from wxb.tasks.translation.page import Page, attention_maps, select_examples

REFERENCE = "the cat sat on the mat"
SOURCES = [f"source number {number:02}" for number in range(20)]


def rows(*translations, attention=None):
    return [
        PredictionRow(source, source, (REFERENCE,), text, attention=attention)
        for source, text in zip(SOURCES, translations, strict=True)
    ]


def test_examples_are_the_best_worst_and_most_different_without_repetition():
    good, bad = REFERENCE, "zz"
    first = rows(*[good] * 6, *[bad] * 6, *[good] * 8)
    second = rows(*[good] * 6, *[bad] * 6, *[bad] * 8)
    by_kind = select_examples({"first": first, "second": second})
    assert {kind: len(members) for kind, members in by_kind.items()} == {
        "best translations": COUNT,
        "worst translations": COUNT,
        "most different translations": COUNT,
    }
    best, worst, different = (
        {SOURCES.index(example.title) for example in members} for members in by_kind.values()
    )
    assert best < set(range(6))
    assert worst < set(range(6, 12))
    assert different < set(range(12, 20))
    example = by_kind["most different translations"][0]
    assert example.lines == [
        ("reference", REFERENCE),
        ("first", f"{good} (100)"),
        ("second", f"{bad} (0)"),
    ]


def test_longer_sentences_come_first_among_equals():
    judged = [
        PredictionRow(str(n), "x" * n, (REFERENCE,), REFERENCE)
        for n in (3, 9, 5, 7, 1, 2, 4, 6, 8, 10)
    ]
    best = select_examples({"only": judged})["best translations"]
    assert [len(example.title) for example in best] == [10, 9, 8, 7]


def test_an_attention_map_has_a_row_per_target_token_and_escapes_texts():
    weights = {
        "source": ["<b>", "a"],
        "target": ["x", "y", "end"],
        "weights": [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]],
    }
    plain = rows(*[REFERENCE] * 20)
    assert attention_maps(plain) == {}
    ((caption, chart),) = attention_maps([plain.pop(0)._replace(attention=weights), *plain]).items()
    assert caption == f"{SOURCES[0]} → {REFERENCE}"
    (heatmap,) = chart.data
    assert np.array(heatmap.z).shape == (3, 2)
    assert "&lt;b&gt;" in chart.to_json()


def test_the_sections_of_a_page():
    kinds, translations = Page().sections(study_of(metrics.Scorer(), {"a": rows(*["zz"] * 20)}))
    assert all(row[1] == "20" for row in kinds.blocks[2].rows)
    assert [block.summary for block in translations.blocks[1:]] == [
        *("best translations", "worst translations", "most different translations")
    ]
