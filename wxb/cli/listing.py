"""Format the inventory of a project for terminals of 80 columns or more."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill, indent
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from wxb.core import paths
from wxb.project.inventory import Facts, headline_keys
from wxb.reporting import formatting
from wxb.reporting.terminal import table

MISSING = {
    "pretrained": "no model",
    "measured": "no metrics",
    "trained": "no model",
    "scored": "not scored",
    "compared": "no table",
    "reported": "no page",
}
STYLES = {"stale": "yellow", "up to date": "green", "not run": "dim"}
NOTES = {
    "stale": "stale: an input has changed since the last run; `wxb show NAME` lists the changes.",
    "no model": "no model: the metric is from reports/; the model that had it is not here.",
}


def overview(
    blocks: Mapping[str, Mapping[str, Facts]], why_unknown: str
) -> Iterator[RenderableType]:
    """Yield tables and notes of `wxb list`: experiments by study, lessons, backbones, corpora."""
    for name, study in blocks["studies"].items():
        members = {member: blocks["experiments"][member] for member in study["experiments"]}
        corpus = next(iter(members.values()))["corpus"]
        yield Text(f"Study {name} on {corpus}: {study['title']}", style="bold")
        yield Text(f"{paths.page(name)}: {state(study)}\n")
        yield _experiment_table(members)
        yield Text()
    for section, header, cell in (
        ("lessons", ["lesson", "metric (95% interval)", "state"], _headline_metrics),
        ("backbones", ["backbone", "on held-out texts", "state"], _perplexity_and_size),
        ("corpora", ["corpus", "labelled records by split", "state"], _labelled_records),
    ):
        if rows := [(name, facts, cell(facts)) for name, facts in blocks[section].items()]:
            yield _block_table(header, rows)
            yield Text()
    states = [state(facts) for section in blocks.values() for facts in section.values()]
    yield from (Text(note) for word, note in NOTES.items() if any(word in text for text in states))
    if why_unknown:
        cure = "`wxb doctor` repairs what a killed run left."
        yield Text(f"Staleness is unknown: {why_unknown}.\n{cure}")


def details(name: str, section: str, facts: Facts, why_unknown: str) -> Iterator[RenderableType]:
    """Yield the parts of `wxb show` for one block of a section, such as corpora; no empty ones."""
    title = Text(f"{name} ({section}): {_description(facts)}\n", style="bold")
    users = f"\nused by {formatting.listed(facts['users'])}" if facts["users"] else ""
    text = state(facts) + (f" ({why_unknown})" if why_unknown else "") + users
    yield title.append(text, style="not bold")
    first_stages: dict[str, str] = {}
    for change in facts["changes"]:
        suffix = "" if change["how"] == "modified" else f": {change['how']}"
        first_stages.setdefault(f"{change['what']}{suffix}", change["stage"])
    if first_stages:
        rows = [(stage, change) for change, stage in first_stages.items()]
        yield table((), rows, title="Changed since the last run, by the first stage that reads it")
    if metrics := facts.get("metrics"):
        yield metrics_table("Metrics", metrics)
    if facts["members"]:
        yield _experiment_table(facts["members"])
    if facts["profile"]:
        yield from _profile_tables(facts["profile"])
    if facts["alignment"]:
        yield _counts_table("Alignment", facts["alignment"])
    texts = {key: formatting.setting(value) for key, value in facts["settings"].items()}
    defaults = [(key, texts.pop(key)) for key in facts["defaults"]]
    yield table((), texts.items(), title="Settings")
    if defaults:
        yield table((), defaults, title="Defaults, which params.yaml does not set")


def _profile_tables(profile: Facts) -> Iterator[RenderableType]:
    """The counts of a clean corpus by split, its leakage, and its rejected and repaired records."""
    names = [f", {len(v)} {key}" for key, v in profile.items() if v and type(v) is list]
    title = f"Corpus, of {profile['records']['raw']:,} raw records{''.join(names)}"
    yield _counts_table(title, {k: _split_counts(s) for k, s in profile["splits"].items()})
    for key in ("nearness", "verbatim"):
        if shares := profile.get(key):
            yield _counts_table(f"{key.title()}: shares that training has", shares)
    for title, key in (("Rejected records", "rejects"), ("Repaired", "repaired")):
        if counts := profile.get(key):
            rows = [(reason, f"{count:,}") for reason, count in counts.items()]
            yield table((), rows, title=title, numeric=True)


def metrics_table(title: str, metrics: Mapping[str, float]) -> RenderableType:
    """A row for each metric: headline ones with intervals, numbers of parameters rounded."""
    rows = []
    main = headline_keys(metrics)
    for key, value in metrics.items():
        if key in main:
            rows.append((formatting.words(key), f"{_with_interval(metrics, key)}, 95% interval"))
        elif "parameters" in key:
            rows.append((formatting.words(key), formatting.amount(value)))
        elif not any(key in (f"{each}_low", f"{each}_high") for each in main):
            text = f"{value:,}" if isinstance(value, int) else formatting.rounded(value)
            rows.append((formatting.words(key), text))
    return table((), rows, title=title)


def state(facts: Facts) -> str:
    """`running: train`, `not run`, `no model, stale`, `stale`, `up to date`, else `exists`."""
    if facts["running"]:
        return f"running: {', '.join(stage.partition('@')[0] for stage in facts['running'])}"
    outputs = {key: facts[key] for key in ("cleaned", *MISSING) if key in facts}
    if not any(outputs.values()):
        return "not run"
    missing = [MISSING[key] for key, exists in outputs.items() if not exists]
    if not missing:
        return {True: "stale", False: "up to date", None: "exists"}[facts["stale"]]
    return ", ".join([*missing, *(["stale"] if facts["stale"] else [])])


def _experiment_table(members: Mapping[str, Facts]) -> RenderableType:  # headline metrics, state
    headlines = dict.fromkeys(key for m in members.values() for key in headline_keys(m["metrics"]))
    keys = [*headlines] or ["metric"]
    rows = [
        (name, facts, *(_with_interval(facts["metrics"], key) for key in keys))
        for name, facts in members.items()
    ]
    titles = [f"{formatting.words(key)} (95%)" for key in keys]
    return _block_table(["experiment", *titles, "state"], rows)


def _block_table(header: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> RenderableType:
    """A table from rows of name, facts and cells: columns of name and description, cells, state."""
    cells = []
    for name, facts, *others in rows:
        description = indent(fill(_description(facts), width=24), "  ")
        status = state(facts)
        style = next((style for word, style in STYLES.items() if word in status), "")
        title = Text.assemble(name, "\n", (description, "dim"))
        cells.append((title, *others, Text(status, style=style)))
    return table(header, cells)


def _counts_table(title: str, rows: Mapping[str, Mapping[str, float | None]]) -> RenderableType:
    """A row per split with the columns of the first, in the same order. None is shown as –."""
    header = ["split", *map(formatting.words, next(iter(rows.values())))]
    counts = (
        (name, *("–" if n is None else f"{n:,}" for n in row.values()))
        for name, row in rows.items()
    )
    return table(header, counts, title=title, numeric=True)


def _description(facts: Facts) -> str:
    """The title of a study or lesson, method and backbone of an experiment, or origin of others."""
    if "title" in facts:
        return str(facts["title"])
    if "task" in facts:
        tuning = f", {facts['tuning']}" if facts["tuning"] else ""
        return f"{facts['method']} on {facts['backbone']}{tuning}"
    if "objective" not in facts:
        return str(facts["origin"])
    if facts["objective"] == "none":
        return f"{facts['origin']}, not pretrained here"
    return f"{facts['origin']}, {facts['objective']}; {facts['corpus']}"


def _perplexity_and_size(backbone: Facts) -> str:  # "–" without metrics
    if not (metrics := backbone["metrics"]):
        return "–"
    perplexity = f"perplexity {metrics['perplexity']:,.1f}, " if "perplexity" in metrics else ""
    return f"{perplexity}{formatting.amount(metrics['parameters'])} parameters"


def _labelled_records(corpus: Facts) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in corpus["labelled"].items()) or "–"


def _with_interval(metrics: Mapping[str, float], key: str) -> str:  # "–" without the metric
    if key not in metrics:
        return "–"
    return formatting.with_interval(
        {"value": metrics[key], "low": metrics[f"{key}_low"], "high": metrics[f"{key}_high"]}
    )


def _headline_metrics(lesson: Facts) -> str:
    """The metrics that have an interval, with their names."""
    metrics = lesson["metrics"]
    texts = [f"{formatting.words(k)} {_with_interval(metrics, k)}" for k in headline_keys(metrics)]
    return ", ".join(texts) or "–"


def _split_counts(split: Facts) -> dict[str, int]:
    """Numbers of labelled and unlabelled records, gold items and groups; lengths of texts."""
    counts = {
        key: sum(by_name.values())
        for key, by_name in split.items()
        if isinstance(by_name, Mapping) and "median" not in by_name and key != "languages"
    }
    return {
        "labelled": split["labelled"],
        "unlabelled": split["unlabelled"],
        **counts,
        "groups": split["groups"],
        "median characters": split["characters"]["median"],
        "longest": split["characters"]["longest"],
    }
