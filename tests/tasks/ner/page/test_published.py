import pytest

from wxb.tasks.ner.page import published


def test_every_system_has_twenty_types():
    rows = published.by_type()
    assert [*rows] == [system.name for system in published.SYSTEMS]
    assert {len(types) for types in rows.values()} == {20}


@pytest.mark.parametrize("system", published.SYSTEMS, ids=lambda system: system.name)
def test_overall_f1_is_the_micro_average_of_the_rows(system):
    rows = [row for row in published.by_type()[system.name].values() if row.precision]
    gold = sum(row.support for row in published.by_type()[system.name].values())
    correct = sum(row.recall * row.support for row in rows)
    predicted = sum(row.recall * row.support / row.precision for row in rows)
    assert 2 * correct / (gold + predicted) == pytest.approx(system.f1, abs=1e-3)


def test_published_supports_on_the_page():
    rows = published.by_type()
    for kind, first, second in (("SEX", 43, 24), ("TITLE", 140, 135)):
        assert rows["decoder-bio"][kind].support == first
        assert rows["encoder-bio"][kind].support == second
