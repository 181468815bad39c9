"""What pages of studies tell of recordings: errors, confusions, clips to listen to, speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.parts import Part, Study
from wxb.reporting.charts.rendering import render
from wxb.tasks.speech.metrics import EDITS
from wxb.tasks.speech.page import recordings

REAL_TIME = (
    "Seconds that recognising took over seconds of recordings, all test sets together, reading and"
    " hearing included and loading apart: below 1 is faster than it was spoken."
)

COLOURS = {"substitutions": "#2f7ebc", "deletions": "#cf4f63", "insertions": "#9a63c4"}
SHOWN = 12  # confusions of one system
BINS = {"by_seconds": "Length of the recording (s)", "by_snr": "Speech over noise (dB)"}


class Page(parts.Page):
    """Errors, confusions, clips and the real-time factor."""

    RULE = (
        "An error is a character (a word) that is substituted, left out or put in, by the shortest"
        " way from what was said to what was written."
    )
    WATCHED = (
        "A model is watched by the share of tokens of validation transcripts that it finds"
        " likeliest, each after the right ones before it. That is not the CER of the test, where it"
        " reads its own."
    )
    USABLE = 0.3  # CER, above which nobody would read a transcript

    def failures(self, system: Mapping[str, Any]) -> str:
        """The commonest confusion, and the kind of recording that is read worst."""
        told = []
        if system["confusions"]:
            said, written, count = system["confusions"][0]
            told.append(f"Its commonest error is {_confused(said, written)} ({count:,} times).")
        worst = max(system["by_snr"], key=lambda row: row["cer"])
        if len(system["by_snr"]) > 1:
            told.append(f"It reads recordings with {_bounds(worst)} dB over noise worst.")
        return " ".join(told)

    def parts(self, study: Study) -> list[Part]:
        """Errors by kind, by length and by noise, confusions, clips, and the time that it takes."""
        systems = study.comparison["systems"]
        shown = {"systems": systems, "chips": figures.chips(systems), "colours": COLOURS}
        rows = {name: {edit: system[edit] for edit in EDITS} for name, system in systems.items()}
        charts = {"edits": figures.stacked(rows, COLOURS, title="characters")}
        errors = render(
            __package__,
            "errors.html",
            charts,
            **shown,
            bins={title: _table(systems, key) for key, title in BINS.items()},
            confusions={name: _commonest(system) for name, system in systems.items()},
        )
        heard = render(__package__, "recordings.html", **shown, clips=recordings.clips(study))
        factors = {name: f"{1 / rate:.3f}" for name, rate in study.rates("seconds").items()}
        shown |= {"heading": "Real-time factor", "told": REAL_TIME, "rates": factors}
        speed = render(__package__, "speed.html", **shown)
        return [
            Part("errors", "Errors", "noise", errors, charts),
            Part("recordings", "Recordings", "noise", heard, {}),
            Part("speed", "Real-time factor", "cost", speed, {}),
        ]


def _table(systems: Mapping[str, Any], key: str) -> dict[str, list[Any]]:
    """CER by system, in the bins of the first one: all judged the same recordings."""
    first = next(iter(systems.values()))[key]
    return {
        "bins": [_bounds(row) for row in first],
        "records": [row["records"] for row in first],
        "rows": [[row["cer"] for row in system[key]] for system in systems.values()],
    }


def _bounds(row: Mapping[str, Any]) -> str:
    low, high = row["from"], row["to"]
    if low is None:
        return f"below {high:g}"
    return f"{low:g} or more" if high is None else f"{low:g} to {high:g}"


def _commonest(system: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(_confused(s, w), count) for s, w, count in system["confusions"][:SHOWN]]


def _confused(said: str, written: str) -> str:
    if not said:
        return f"{written} put in"
    return f"{written} for {said}" if written else f"{said} left out"
