"""The tables of a study: for terminals, Markdown and pages, and as rows of CSV."""

import csv
from collections.abc import Mapping
from io import StringIO
from statistics import stdev
from typing import Any

from wxb.core.errors import counted
from wxb.metrics import TEST, Metric
from wxb.reporting import formatting, pairs
from wxb.reporting.formatting import Cell, Table, amount, interval, p_value, rounded, signed

# Keys of a system in a comparison that are no scores: model size and amount of training.
SIZES = ("parameters", "trainable_parameters", "updates", "examples")
INTERVAL = "(95% interval)"


def csv_rows(comparison: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each test set and system: scores, intervals, shares, counts, errors and sizes."""
    rows = []
    for test_set, results in pairs.test_sets(comparison).items():
        counts = results["counts"]
        for name, system in results["systems"].items():
            row = {"experiment": name, "test_set": test_set}
            for score in pairs.metrics(results):
                row[score] = system[score]["value"]
                row[f"{score}_low"] = system[score]["low"]
                row[f"{score}_high"] = system[score]["high"]
            row |= {share: system.get(share) for share in results["shares"]}
            row |= {key: count for key, count in system.items() if key in counts}
            row |= {k: n for k, n in system.get("errors", {}).items() if k not in counts}
            row |= {size: comparison["systems"][name][size] for size in SIZES}
            rows.append(row)
    return rows


def as_csv(comparison: Mapping[str, Any]) -> str:
    """`csv_rows` as CSV."""
    rows, text = csv_rows(comparison), StringIO()
    keys = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(text, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def markdown(comparison: Mapping[str, Any], seconds: Mapping[str, float] | None = None) -> str:
    """Tables, notes and conclusion in Markdown; `seconds` adds times, which vary between runs."""
    signature = comparison["signature"]
    optional = [leads_table(comparison), shares_table(comparison)]
    return "\n".join(
        [
            f"**{comparison['title']}**\n",
            score_table(comparison).markdown(),
            *(f"{note}\n" for note in [reading_notes(comparison)] if note),
            f"{pairs.conclusion(comparison)}\n",
            *(f"{table.caption}:\n\n{table.markdown()}" for table in optional if table.rows),
            f"Training{' and its time' if seconds else ''}:\n",
            training_table(comparison, seconds).markdown(),
            "".join(f"{test_set_line(*item)}\n" for item in pairs.test_sets(comparison).items())
            + f"{signature[0].upper()}{signature[1:]}; intervals and p values:"
            f" {jackknife_text(comparison)}.\n",
        ]
    )


def reading_notes(comparison: Mapping[str, Any]) -> str:
    """Sentences on tiers that share a letter, on too few groups, and on a single seed."""
    sentences = []
    if comparison["pairs"]:
        sentences.append("Tiers that share a letter do not differ significantly in paired tests.")
        sentences.append(pairs.groups_warning(comparison))
    if len(comparison["seeds"]) == 1:
        sentences.append("One seed: the interval covers test records, not retraining.")
    return " ".join(filter(None, sentences))


def score_table(comparison: Mapping[str, Any], *, with_counts: bool = True) -> Table:
    """The scores in study order: tier, headline metric on each test set, other metrics, counts."""
    first = pairs.headline(comparison)
    others = [metric for metric in pairs.metrics(comparison).values() if metric != first]
    titles = {key: title for key, title in comparison["counts"].items() if with_counts}
    table = headline_table(comparison)
    header = [*table.header, *(metric.title for metric in others), *titles.values()]
    rows = []
    for row, system in zip(table.rows, comparison["systems"].values(), strict=True):
        scores = [
            Cell(rounded(system[m.key]["value"], m), note=interval(system[m.key], m))
            for m in others
        ]
        rows.append([*row, *scores, *(f"{system[key]:,}" for key in titles)])
    return Table(table.caption, header, rows)


def headline_table(comparison: Mapping[str, Any]) -> Table:
    """Tier and headline metric of each experiment on each test set, in study order."""
    names = comparison["systems"]
    several = len(comparison["seeds"])
    columns = {"experiment": [experiment_name(comparison, name) for name in names]}
    for test_set, results in pairs.test_sets(comparison).items():
        metric = pairs.headline(results)
        scores = [_headline_text(results["systems"][name], metric) for name in names]
        prefix, mean = f"{test_set}: ", ""
        if test_set == TEST:
            prefix, mean = "", f", mean ± SD of {several} seeds" if several > 1 else ""
        if letters := pairs.tiers(results):
            columns[f"{prefix}tier"] = [letters.get(name, "") for name in names]
        columns[f"{prefix}{metric.title}{mean} {INTERVAL}"] = scores
    rows = [*map(list, zip(*columns.values(), strict=True))]
    return Table("Scores of each experiment", [*columns], rows)


def leads_table(comparison: Mapping[str, Any]) -> Table:
    """The tests on `test` of leaders over others, or of the only pair; may have no rows."""
    metric, best = pairs.headline(comparison), pairs.leaders(comparison)
    leads, tests = pairs.tested_pairs(comparison), pairs.number_of_tests(comparison)
    if len(leads) > 1:
        leads = [pair for pair in leads if pair.a in best and pair.b not in best]
    rows = []
    for pair in leads:
        value, low, high = (signed(each, metric) for each in (pair.value, pair.low, pair.high))
        p_values = p_value(pair.p_value), p_value(pair.corrected)
        rows.append([pair.a, pair.b, f"{value} ({low} to {high})", *p_values, pair.conclusion])
    header = ["ahead", "behind", f"{metric.title} {INTERVAL}", "p", "corrected p", "difference"]
    return Table(f"Leads, p corrected for {counted(tests, 'pairs')} by Holm's method", header, rows)


def shares_table(comparison: Mapping[str, Any]) -> Table:
    """A row for each system: the shares that all have on a test set; no rows without any."""
    columns = [
        (f"{test_set}: {title}", key, results["systems"])
        for test_set, results in pairs.test_sets(comparison).items()
        for key, title in results["shares"].items()
        if all(key in system for system in results["systems"].values())
    ]
    rows = [
        [experiment_name(comparison, name), *(rounded(s[name][key]) for _, key, s in columns)]
        for name in comparison["systems"]
    ]
    header = ["experiment", *(title for title, _, _ in columns)]
    return Table("Further shares, without intervals", header, rows if columns else [])


def training_table(comparison: Mapping[str, Any], seconds: Mapping[str, float] | None) -> Table:
    """Parameters, updates and examples of trained experiments; speed and time if measured."""
    timed = ["examples a second", "training"] if seconds else []
    rows = []
    for name in pairs.trained_names(comparison):
        system = comparison["systems"][name]
        total, trainable = system["parameters"], system["trainable_parameters"]
        note = "" if trainable == total else f" ({amount(trainable)} trained)"
        row = [name, f"{amount(total)}{note}", f"{system['updates']:,}", f"{system['examples']:,}"]
        if seconds:
            time = seconds.get(name)
            speed = f"{system['examples'] / time:,.0f}" if time else "–"
            row += [speed, formatting.duration(time) if time else "–"]
        rows.append(row)
    return Table("Training", ["experiment", "parameters", "updates", "examples", *timed], rows)


def experiment_name(comparison: Mapping[str, Any], name: str) -> str:
    """The name of an experiment in a table, marked if it is a baseline."""
    return f"{name} (baseline)" if name in pairs.baseline_names(comparison) else name


def test_set_line(name: str, results: Mapping[str, Any]) -> str:
    """The records, groups and units of a test set, and how near its texts are to training."""
    field = f" by {results['grouped_by']}" if results.get("grouped_by") else ""
    is_grouped = results["groups"] < results["documents"]
    groups = f" in {counted(results['groups'], 'groups')}{field}" if is_grouped else ""
    unit = results["unit"]
    units = "" if unit == "records" else f", {counted(results['support'], unit)}"
    size = f"{counted(results['documents'], 'records')}{groups}{units}"
    one, two = (results["nearness"][key] for key in ("within_one_word", "within_two_words"))
    nearness = "no text to compare with training"
    if one is not None:
        nearness = f"{one:.1%} within one word of training, {two:.1%} within two"
    return f"{name}: {size}; {nearness}."


def jackknife_text(comparison: Mapping[str, Any]) -> str:
    """A phrase: groups or records, and named seeds, left out in turn; sets without intervals."""
    sets = pairs.test_sets(comparison)
    single = [name for name, s in sets.items() if s["groups"] == 1]
    none = f", none on {formatting.listed(single)}, whose records share one group"
    grouped = any(1 < s["groups"] < s["documents"] for s in sets.values())
    seeds = comparison["seeds"]
    variation = f", and seeds {formatting.listed([*map(str, seeds)])}" if len(seeds) > 1 else ""
    unit = "group" if grouped else "record"
    return f"jackknife, each {unit} left out in turn{variation}{none * bool(single)}"


def _headline_text(system: Mapping[str, Any], metric: Metric) -> str:
    """The headline metric with its interval; for several seeds also its standard deviation."""
    runs = system[f"{metric.key}_by_run"]
    spread = f" ± {rounded(stdev(runs), metric)}" if len(runs) > 1 else ""
    return formatting.with_interval(system[metric.key], metric, spread)
