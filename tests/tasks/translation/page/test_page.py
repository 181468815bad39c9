"""Examples, attention maps and failures on the page of a translation study."""

import numpy as np

from wxb.tasks.translation import metrics, page
from wxb.tasks.translation.metrics import PredictionRow
from wxb.tasks.translation.page.examples import COUNT, examples

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
    by_kind = examples({"first": first, "second": second})
    assert {kind: len(members) for kind, members in by_kind.items()} == {
        "best translations": COUNT,
        "worst translations": COUNT,
        "most different translations": COUNT,
    }
    best, worst, different = (
        {SOURCES.index(example.row.input) for example in members} for members in by_kind.values()
    )
    assert best < set(range(6))
    assert worst < set(range(6, 12))
    assert different < set(range(12, 20))
    example = by_kind["most different translations"][0]
    (text, score), (other, zero) = example.translations.values()
    assert (text, round(score), other, round(zero)) == (good, 100, bad, 0)


def test_longer_sentences_come_first_among_equals():
    judged = [
        PredictionRow(str(n), "x" * n, (REFERENCE,), REFERENCE)
        for n in (3, 9, 5, 7, 1, 2, 4, 6, 8, 10)
    ]
    best = examples({"only": judged})["best translations"]
    assert [len(example.row.input) for example in best] == [10, 9, 8, 7]


def test_an_attention_map_has_a_row_per_target_token_and_escapes_texts():
    attention = {
        "source": ["<b>", "a"],
        "target": ["x", "y", "end"],
        "weights": [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]],
    }
    judged = rows(*[REFERENCE] * 20)
    shown = [judged[0]._replace(attention=attention), *judged[1:]]
    assert page._attention_maps({"with": shown, "without": judged}) == {
        "with": {"attention-0-0": shown[0]}
    }
    figure = page._chart(shown[0])
    (heatmap,) = figure.data
    assert np.array(heatmap.z).shape == (3, 2)
    assert "&lt;b&gt;" in figure.to_json()


def test_failures_name_the_worst_kinds_with_enough_sentences():
    judged = [
        PredictionRow(str(n), "w " * (n % 12 + 1), (REFERENCE,), REFERENCE if n % 12 < 6 else "zz")
        for n in range(400)
    ]
    system = metrics.Scorer().details(judged)
    assert "11 to 20 words (BLEU 0.0" in page.Page().failures(system)
    assert page.Page().failures({"by_kind": {}}) == ""
