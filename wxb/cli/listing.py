"""What wxb/project/inventory.py knows of a project, laid out for people at 80 columns and more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wxb.core import paths
from wxb.project.inventory import Facts, headlines
from wxb.reporting.charts.formatting import (
    amount,
    duration,
    listed,
    rounded,
    size,
    with_interval,
    words,
)
from wxb.reporting.terminal import grid, table

LACKS = {
    "pretrained": "no model",
    "measured": "no metrics",
    "trained": "no model",
    "scored": "not scored",
    "compared": "no table",
    "reported": "no page",
}
STYLES = {"stale": "yellow", "up to date": "green", "not made": "dim"}
KINDS = {
    "corpora": "Corpus",
    "backbones": "Backbone",
    "experiments": "Experiment",
    "studies": "Study",
    "lessons": "Lesson",
}
DESCRIBED = ("characters", "languages")  # of every text
NOTES = {
    "stale": "stale: something that it was made from has changed; `wxb show NAME` tells what.",
    "no model": "no model: the metric was made elsewhere, and came with the committed reports.",
}


def overview(there: Mapping[str, Mapping[str, Facts]], unknown: str) -> Iterator[RenderableType]:
    """The tables of `wxb list`, and what explains them."""
    for name, study in there["studies"].items():
        yield from _study(name, study, there["experiments"])
    yield _blocks(
        ["lesson", "metric (95% interval)", "state"],
        [
            (name, _is(facts), _headline(facts["metrics"]), state(facts))
            for name, facts in there["lessons"].items()
        ],
    )
    yield Text()
    yield _blocks(
        ["backbone", "on held-out texts", "state"],
        [
            (name, _is(facts), _learnt(facts["metrics"]), state(facts))
            for name, facts in there["backbones"].items()
        ],
    )
    yield Text()
    yield _blocks(
        ["corpus", "records by split", "state"],
        [
            (name, _is(facts), _records(facts["records"]), state(facts))
            for name, facts in there["corpora"].items()
        ],
    )
    yield Text()
    states = [state(facts) for section in there.values() for facts in section.values()]
    for word, note in NOTES.items():
        if any(word in told for told in states):
            yield Text(note)
    if unknown:
        yield Text(f"What is stale is not known now: {unknown}.")


def details(name: str, section: str, facts: Facts, unknown: str) -> Iterator[RenderableType]:
    """The parts of `wxb show` for one block; what there is nothing to tell of is left out."""
    title = Text(f"{KINDS[section]} {name}: {_is(facts)}\n", style="bold")
    users = f"\nused by {listed(facts['users'])}" if facts["users"] else ""
    told = state(facts) + (f" ({unknown})" if unknown else "") + users
    yield title.append(told, style="not bold")
    if facts["changes"]:
        yield grid(_where(facts["changes"]), title="Changed since it was made, by stage")
    if found := facts.get("metrics"):
        yield measured("Metrics", found)
    if best := facts["best"]:
        yield grid([_training(best)], title="Training")
    if facts["members"]:
        yield _members(facts["members"])
    if facts["cost"]:
        yield _costs(facts["cost"])
    if facts["profile"]:
        yield _profile(facts["profile"])
        if nearness := facts["profile"].get("nearness"):
            yield grid(_nearness(nearness), title="Labelled test records, by wording")
        yield from _rejects(facts["profile"])
    if facts["alignment"]:
        yield _splits("Alignment", facts["alignment"])
    if facts["files"]:
        files = [(path, size(length)) for path, length in facts["files"].items()]
        yield grid(files, title="Files", numbers=True)
    yield grid(_settings(facts["settings"], facts["defaults"]), title="Settings")
    yield grid(facts["commands"].items(), title="Commands")


GAP = 2  # spaces between columns


def scores(columns: Sequence[Sequence[str]], headlines: int, width: int) -> Table:
    """The columns that have room in `width`, the first `headlines` of them in any case.

    Names are whole. A score stands on one line with its interval if all headlines have room so.
    """

    def room(number: int, broken: bool) -> int:
        cells = columns[number][1:]
        parts = [part for cell in cells for part in (cell.split() if broken else [cell])]
        head = max(map(len, columns[number][0].split()))
        return max(head, *map(len, parts)) + GAP

    names = max(map(len, columns[0]))
    broken = names + sum(room(number, False) for number in range(1, headlines)) > width
    scores = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    scores.add_column(columns[0][0], no_wrap=True, min_width=names)
    left, shown = width - names, columns[:1]
    for number, column in enumerate(columns[1:], start=1):
        left -= room(number, broken)
        if left < 0 and number >= headlines:
            break
        scores.add_column(column[0], justify="right", width=room(number, broken) - GAP)
        shown = [*shown, column]
    for row in list(zip(*shown, strict=True))[1:]:
        scores.add_row(*row)
    return scores


def measured(title: str, found: Mapping[str, float]) -> RenderableType:
    """Metrics under a title, as `wxb table` prints those of a lesson."""
    return grid(_metrics(found), title=title)


def state(facts: Facts) -> str:
    """What is there of a block, and whether it is stale, in a few words."""
    if facts["running"]:
        return f"running: {', '.join(stage.partition('@')[0] for stage in facts['running'])}"
    made = {word: facts[word] for word in ("cleaned", *LACKS) if word in facts}
    if not any(made.values()):
        return "not made"
    lacking = [LACKS[word] for word, there in made.items() if not there]
    if not lacking:
        return {True: "stale", False: "up to date", None: "made"}[facts["stale"]]
    return ", ".join([*lacking, *(["stale"] if facts["stale"] else [])])


def _study(name: str, study: Facts, experiments: Mapping[str, Facts]) -> Iterator[RenderableType]:
    members = {member: experiments[member] for member in study["experiments"]}
    corpus = next(iter(members.values()))["corpus"]
    yield Text(f"Study {name} on {corpus}: {study['title']}", style="bold")
    yield Text(f"{paths.page(name)}: {state(study)}\n")
    yield _members(members)
    yield Text()


def _members(members: Mapping[str, Facts]) -> RenderableType:
    """The experiments of a study."""
    told = dict.fromkeys(key for facts in members.values() for key in headlines(facts["metrics"]))
    return _blocks(
        ["experiment", *(f"{words(key)} (95%)" for key in told or ["metric"]), "state"],
        [
            (
                member,
                _is(facts),
                *(_interval(facts["metrics"], key) for key in told or [""]),
                state(facts),
            )
            for member, facts in members.items()
        ],
    )


def _blocks(header: Sequence[str], rows: Iterable[Sequence[str]]) -> RenderableType:
    """A row for each block: its name, what it is (below the name), its metrics, and its state."""
    return table(
        header,
        (
            (
                Group(Text(name), Padding(Text(what, style="dim"), (0, 0, 0, 2))),
                *cells,
                Text(told, style=next((s for word, s in STYLES.items() if word in told), "")),
            )
            for name, what, *cells, told in rows
        ),
        whole=True,
    )


def _splits(title: str, rows: Mapping[str, Mapping[str, int]]) -> RenderableType:
    """Counts by split."""
    header = ["split", *map(words, next(iter(rows.values())))]
    counts = ((name, *(f"{n:,}" for n in row.values())) for name, row in rows.items())
    return table(header, counts, title=title, numbers=True)


def _is(facts: Facts) -> str:
    """What a block is, in one line."""
    if "title" in facts:
        return str(facts["title"])
    if "task" in facts:
        tuning = f", {facts['tuning']}" if facts["tuning"] else ""
        return f"{facts['task']} on {facts['backbone']}{tuning}"
    if "objective" not in facts:
        return str(facts["origin"])
    if facts["objective"] == "none":
        return f"{facts['origin']}, as it is"
    return f"{facts['origin']}, {facts['objective']}; {facts['corpus']}"


def _learnt(metrics: Mapping[str, float]) -> str:
    told = [f"perplexity {metrics['perplexity']:,.1f}"] if "perplexity" in metrics else []
    return ", ".join([*told, f"{amount(metrics['parameters'])} parameters"]) if metrics else "–"


def _records(records: Mapping[str, int]) -> str:
    """Those of each split, as profile.json counts them: what it read and rejected aside."""
    told = [f"{name} {n:,}" for name, n in records.items() if name not in ("raw", "rejected")]
    return ", ".join(told) or "–"


def _interval(metrics: Mapping[str, float], key: str) -> str:
    if not key or key not in metrics:
        return "–"
    return with_interval(
        {"value": metrics[key], "low": metrics[f"{key}_low"], "high": metrics[f"{key}_high"]}
    )


def _headline(metrics: Mapping[str, float]) -> str:
    """The metrics that come with an interval, by their names."""
    told = [f"{words(key)} {_interval(metrics, key)}" for key in headlines(metrics)]
    return ", ".join(told) or "–"


def _metrics(metrics: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    main = headlines(metrics)
    for key, value in metrics.items():
        if key in main:
            yield words(key), f"{_interval(metrics, key)}, 95% interval"
        elif "parameters" in key:
            yield words(key), amount(value)
        elif not any(key in (f"{each}_low", f"{each}_high") for each in main):
            yield words(key), f"{value:,}" if isinstance(value, int) else rounded(value)


def _where(changes: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    """The changes by stage, each at the first stage where it shows."""
    told: dict[str, list[str]] = {}
    seen = set()
    for change in changes:
        what, how = change["what"], change["how"]
        if (what, how) not in seen:
            line = what if how == "modified" else f"{what}: {how}"
            told.setdefault(change["stage"], []).append(line)
            seen.add((what, how))
    return [(stage, ", ".join(sorted(what))) for stage, what in told.items()]


def _training(best: Facts) -> tuple[str, str]:
    told = f"{rounded(best['value'])} at step {best['step']:,}"
    place = f"evaluation {best['evaluation']} of {best['evaluations']}"
    if "allowed" in best:  # of an experiment, evaluated once an epoch
        place = f"epoch {best['evaluation']} of {best['evaluations']}"
        if best["evaluations"] < (best["allowed"] or 0):
            place += f", stopped early ({best['allowed']} allowed)"
    return f"best {words(best['metric'])}", f"{told}, {place}"


def _costs(costs: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    """Time and memory of each stage, and the machines they ran on."""
    rows = []
    for stage, cost in costs.items():
        memory = size(cost["peak_memory_mib"] * 2**20)
        if "peak_gpu_memory_mib" in cost:
            memory += f" + {size(cost['peak_gpu_memory_mib'] * 2**20)} of GPU"
        finished = cost["finished"].replace("T", " ").replace("+00:00", " UTC")
        rows.append((stage.partition("@")[0], duration(cost["seconds"]), memory, finished))
    devices = dict.fromkeys(cost["device"] for cost in costs.values())
    title = f"Cost, on {', then '.join(devices)}"
    return table(["stage", "time", "peak memory", "finished"], rows, title=title, numbers=True)


def _profile(profile: Facts) -> RenderableType:
    listed = [f", {len(names)} {key}" for key, names in profile.items() if isinstance(names, list)]
    return _splits(
        f"Corpus, of {profile['records']['raw']:,} raw records{''.join(listed)}",
        {name: _split(split) for name, split in profile["splits"].items()},
    )


def _split(split: Facts) -> dict[str, int]:
    """What a split holds: records, and what a task counts in them by its labels."""
    counts = {
        key: sum(by_name.values())
        for key, by_name in split.items()
        if isinstance(by_name, Mapping) and key not in DESCRIBED
    }
    return {
        "labelled": split["labelled"],
        "unlabelled": split["unlabelled"],
        **counts,
        "groups": split["groups"],
        "median characters": split["characters"]["median"],
        "longest": split["characters"]["longest"],
    }


def _nearness(nearness: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, str]]:
    """How many texts of each test set say nearly what one of training says."""
    for name, shares in nearness.items():
        one, two = shares["within_one_word"], shares["within_two_words"]
        yield f"{name}:", f"{one:.1%} within one word of training, {two:.1%} within two"


def _rejects(profile: Facts) -> Iterator[RenderableType]:
    for title, key in (("Rejected records", "rejects"), ("Repaired", "repaired")):
        if counts := profile.get(key):
            rows = [(why, f"{count:,}") for why, count in counts.items()]
            yield grid(rows, title=title, numbers=True)


def _settings(settings: Facts, defaults: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each setting as params.yaml would state it; those that it leaves out are marked."""
    for key, value in settings.items():
        told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield key, f"{told} (default)" if key in defaults else told
