from wxb.tasks.ner.metrics import PredictionRow
from wxb.tasks.ner.metrics.outcomes import Outcome
from wxb.tasks.ner.page.confusions import COUNT, EXAMPLES, MAX_MENTION, confusions
from wxb.tasks.ner.record.spans import Span

TEXT = "Ann Lee, 12 High Street, card 4000 1234 5678 9010"
ADDRESS = Span(9, 23, "ADDRESS")


def row(text, gold, predicted):
    return PredictionRow("id", text, tuple(gold), tuple(predicted), (0.9,) * len(predicted))


def test_an_address_that_swallows_a_name():
    rows = [
        row(TEXT, [Span(0, 7, "NAME")], [Span(0, 23, "ADDRESS")]),
        row(TEXT, [ADDRESS], [ADDRESS]),
    ]
    (confusion,) = confusions(rows)
    assert confusion[:4] == (Outcome.WRONG_BOTH, "NAME", "ADDRESS", 1)
    assert confusion.examples == [("Ann Lee", "Ann Lee, 12 High Street", f"{TEXT[:47]}…")]


def test_a_number_in_parts_is_one_wrong_boundary_and_the_rest_spurious():
    parts = [Span(start, start + 4, "CARD") for start in (30, 35, 40, 45)]
    spurious, boundary = confusions([row(TEXT, [Span(30, 49, "CARD")], parts)])
    assert spurious[:4] == (Outcome.SPURIOUS, None, "CARD", 3)
    assert [example.predicted for example in spurious.examples] == ["1234", "5678", "9010"]
    assert boundary[:4] == (Outcome.WRONG_BOUNDARY, "CARD", "CARD", 1)


def test_the_most_frequent_come_first_with_different_examples():
    rows = [
        row(f"{name} {n}", [Span(0, 3, f"T{n}")], [])
        for n in range(COUNT + 2)
        for name in ["Ann", "Ann", "Bob", "Eve", "Joe"][: n + 1]
    ]
    most = confusions(rows)
    assert len(most) == COUNT
    assert [c.total for c in most] == sorted((c.total for c in most), reverse=True)
    assert [example.gold for example in most[0].examples] == ["Ann", "Bob", "Eve"][:EXAMPLES]
    assert most[0].gold == "T10"  # of equals the first by name


def test_long_mentions_are_cut_off():
    text = "a" * 500
    ((*_, (example,)),) = confusions([row(text, [Span(0, 400, "X")], [])])
    assert len(example.gold) == MAX_MENTION
