"""The table of a study for people and for spreadsheets."""

from tests.reporting.conftest import BLEU, CER, comparison, with_baselines
from wxb.metrics import Metric
from wxb.reporting import tables

SEVEN = ["ner-encoder", *(f"ner-{name}" for name in "abcdef")]


def cells(table):
    """The cells of a table by name of the row, then by title."""
    return {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}


def test_markdown_of_two(tree):
    made = tree(SEVEN[:2]).comparison
    text = tables.markdown(made)
    assert "4 records, 7 spans; 25.0% within one word of training, 50.0% within two.\n" in text
    assert "intervals and p values: jackknife, each record left out in turn.\n" in text
    shown = [tables.score_table(made), tables.leads_table(made), tables.shares_table(made)]
    scores, leads, shares = (cells(table)["ner-a"] for table in shown)
    assert (scores["tier"], scores["F1 (95% interval)"]) == ("a", "0.462 (0.335–0.594)")
    assert (scores["correct"], scores["predicted"], scores["gold"]) == ("3", "6", "7")
    assert leads["F1 (95% interval)"] == "+0.462 (+0.329 to +0.594)"
    keys = ("p", "corrected p", "difference")
    assert [leads[key] for key in keys] == ["0.125", "0.125", "not significant"]
    assert shares["test: recall of seen mentions"] == "0.667"
    assert "| ner-a | 2.35 M (1.23 M trained) | 1,500 | 12,000 |" in text


def test_leads_are_those_of_the_leaders_over_the_others():
    table = tables.leads_table(comparison(dict(zip("abcd", (0.9, 0.895, 0.7, 0.5), strict=True))))
    assert [row[:2] for row in table.rows] == [["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"]]
    assert "|".join(table.rows[0][2:]) == "+0.200 (+0.190 to +0.210)|< 0.001|< 0.001|significant"
    (only,) = tables.leads_table(comparison({"a": 0.5, "b": 0.495})).rows
    assert only == ["a", "b", "+0.005 (-0.005 to +0.015)", "0.500", "0.500", "not significant"]
    (lower,) = tables.leads_table(comparison({"a": 0.5, "b": 0.25}, metric=CER)).rows
    assert lower[:3] == ["b", "a", "+0.250 (+0.240 to +0.260)"]
    assert tables.leads_table(comparison({"a": 0.5})).rows == []


def test_baselines_are_marked_and_in_no_tier():
    made = with_baselines({"a": 0.9, "b": 0.5}, {"copy": 0.4})
    rows = [row[:3] for row in tables.score_table(made).rows]
    assert [row[0] for row in rows] == ["a", "b", "copy (baseline)"]
    assert [row[1] for row in rows] == ["a", "b", ""]
    assert [row[0] for row in tables.training_table(made, None).rows] == ["a", "b"]


def test_groups_and_seeds_are_shown():
    content = comparison({"a": 0.5}) | {"unit": "spans", "groups": 3, "seeds": [4, 5]}
    content["grouped_by"] = "source"
    content["systems"]["a"]["f1_by_run"] = [0.4, 0.6]
    text = tables.markdown(content)
    assert "| a | 0.500 ± 0.141 (0.490–0.510) |" in text
    assert "F1, mean ± SD of 2 seeds (95% interval)" in text
    assert "test: 20 records in 3 groups by source, 20 spans; 25.0% within one word" in text
    assert "each group left out in turn, and seeds 4 and 5" in text


def test_the_csv_has_a_row_an_experiment(tree):
    reports = tree(SEVEN)
    table = tables.csv_rows(reports.comparison)
    assert [row["experiment"] for row in table] == SEVEN
    keys = reports.comparison["metrics"]
    scores = [f"{key}{end}" for key in keys for end in ("", "_low", "_high")]
    errors = ["wrong_type", "wrong_boundary", "wrong_both", "missed", "spurious"]
    assert [*table[0]][2 : 2 + len(scores)] == scores
    for row, system in zip(table, reports.comparison["systems"].values(), strict=True):
        for score in keys:
            values = (row[f"{score}_low"], row[score], row[f"{score}_high"])
            assert values == tuple(system[score][part] for part in ("low", "value", "high"))
        numbers = (*reports.comparison["counts"], *reports.comparison["shares"])
        assert [row[key] for key in numbers] == [system[key] for key in numbers]
        assert [row[key] for key in errors] == [system["errors"][key] for key in errors]
        assert (row["parameters"], row["trainable_parameters"]) == (2_345_678, 1_234_567)


def test_counts_of_the_csv_are_those_of_the_scores():
    """Not of the errors, one of whose keys is `correct`, too: they are those of the first seed."""
    content = comparison({"a": 0.8, "b": 0.5})
    system = content["systems"]["a"]
    system["correct"], system["errors"] = 7.0, {"correct": 9, "missed": 1}
    row, _ = tables.csv_rows(content | {"counts": {"correct": "correct"}})
    assert (row["correct"], row["missed"]) == (7.0, 1)


def test_tables_show_metrics_with_their_titles_and_decimals():
    content = comparison({"a": 30.26, "b": 28.0}, noise=1.0, metric=BLEU)
    chrf = Metric("chrf", "chrF", high=100.0, decimals=2)
    content |= {"counts": {"words": "words"}, "shares": {"rare": "rare words"}}
    content["metrics"] |= {"chrf": chrf._asdict()}
    for system in content["systems"].values():
        system |= {"chrf": {"value": 51.5, "low": 50.0, "high": 53.0}, "words": 1234, "rare": 0.5}
    text = tables.markdown(content)
    assert "| experiment | tier | BLEU (95% interval) | chrF | words |\n" in text
    assert "| a | a | 30.3 (29.3–31.3) | 51.50 | 1,234 |\n" in text
    assert "| experiment | test: rare words |\n" in text
    assert "\ntest: 20 records; 25.0% within one word" in text  # no units, as these are records
    assert "\nMade-up BLEU; intervals and p values: jackknife, each record" in text
    (row, _) = tables.csv_rows(content)
    assert (row["bleu"], row["chrf_low"], row["words"], row["rare"]) == (30.26, 50.0, 1234, 0.5)
