"""What the page tells: examples by how good and how different they are, maps, weak kinds."""

import numpy as np

from wxb.tasks.translation import metrics, page
from wxb.tasks.translation.metrics import Judged
from wxb.tasks.translation.page.examples import NUMBER, examples

REFERENCE = "the cat sat on the mat"
SOURCES = [f"source number {number:02}" for number in range(20)]


def rows(*translations, attention=None):
    return [
        Judged(source, source, (REFERENCE,), text, attention=attention)
        for source, text in zip(SOURCES, translations, strict=True)
    ]


def test_examples_are_the_best_the_worst_and_the_most_different_each_once():
    good, bad = REFERENCE, "zz"
    first = rows(*[good] * 6, *[bad] * 6, *[good] * 8)
    second = rows(*[good] * 6, *[bad] * 6, *[bad] * 8)
    found = examples({"first": first, "second": second})
    assert {kind: len(members) for kind, members in found.items()} == {
        "translated best": NUMBER,
        "translated worst": NUMBER,
        "most different": NUMBER,
    }
    places = {
        kind: {SOURCES.index(example.row.input) for example in members}
        for kind, members in found.items()
    }
    assert places["translated best"] < set(range(6))
    assert places["translated worst"] < set(range(6, 12))
    assert places["most different"] < set(range(12, 20))
    (text, score), (other, none) = found["most different"][0].translations.values()
    assert (text, round(score), other, round(none)) == (good, 100, bad, 0)


def test_longer_sentences_come_first_among_equals():
    judged = [
        Judged(str(n), "x" * n, (REFERENCE,), REFERENCE) for n in (3, 9, 5, 7, 1, 2, 4, 6, 8, 10)
    ]
    best = examples({"only": judged})["translated best"]
    assert [len(example.row.input) for example in best] == [10, 9, 8, 7]


def test_a_map_has_a_row_for_each_token_written_and_escapes_what_texts_hold():
    attention = {
        "source": ["<b>", "a"],
        "target": ["x", "y", "end"],
        "weights": [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]],
    }
    judged = rows(*[REFERENCE] * 20)
    shown = [judged[0]._replace(attention=attention), *judged[1:]]
    found = dict(page._maps({"with": shown, "without": judged}))
    assert [*found] == ["with"]
    ((place, (figure, row)),) = found["with"].items()
    assert (place, row) == ("attention-0-0", shown[0])
    (heatmap,) = figure.data
    assert np.array(heatmap.z).shape == (3, 2)
    assert "&lt;b&gt;" in figure.to_json()


def test_the_kinds_that_fail_are_named_where_there_are_enough():
    judged = [
        Judged(str(n), "w " * (n % 12 + 1), (REFERENCE,), REFERENCE if n % 12 < 6 else "zz")
        for n in range(400)
    ]
    system = metrics.Scorer().details(judged)
    told = page.Page().failures(system)
    assert "11 to 20 words (BLEU 0.0" in told
    assert page.Page().failures({"by_kind": {}}) == ""
