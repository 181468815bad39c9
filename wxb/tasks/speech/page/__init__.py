"""The report page of speech: errors, confusions, recordings and the real-time factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from wxb.reporting.charts import figures, parts
from wxb.reporting.charts.parts import Part, Study
from wxb.tasks.speech.metrics import EDITS
from wxb.tasks.speech.page import recordings

REAL_TIME = (
    "Seconds of computation per second of audio, over all test sets. Reading audio and computing"
    " features count, loading the model does not. Below 1 is faster than real time."
)

COLOURS = {"substitutions": "#2f7ebc", "deletions": "#cf4f63", "insertions": "#9a63c4"}
SHOWN = 12  # confusions of one system
BINS = {"by_seconds": "Length of the recording (s)", "by_snr": "Signal-to-noise ratio (dB)"}


class Page(parts.Page):
    """Errors, confusions, recordings and the real-time factor."""

    RULE = (
        "Errors are the fewest substitutions, deletions and insertions of characters (CER) or words"
        " (WER) that turn the reference into the transcript."
    )
    VALIDATION_NOTE = (
        "The curves show token accuracy on validation transcripts, each token predicted from the"
        " correct ones before it. The test CER differs: there, a model continues its own output."
    )
    USABLE_SCORE = 0.3  # CER, above which nobody would read a transcript

    def example(self, row: Any) -> str:
        """The length of a recording, as a page plays no example before its sections."""
        return f"a recording of {row.seconds:.1f} s"

    def failures(self, system: Mapping[str, Any]) -> str:
        """The most frequent confusion, and the bin of signal-to-noise ratio with the worst CER."""
        sentences = []
        if system["confusions"]:
            reference, hypothesis, count = system["confusions"][0]
            error = _confusion(reference, hypothesis)
            sentences.append(f"Its commonest error is {error} ({count:,} times).")
        if len(system["by_snr"]) > 1:
            worst = max(system["by_snr"], key=lambda row: row["cer"])
            sentences.append(
                f"Its CER is highest at a signal-to-noise ratio (dB) of {_bounds(worst)}."
            )
        return " ".join(sentences)

    def parts(self, study: Study) -> list[Part]:
        """The parts: errors by kind, length and noise with confusions; recordings; speed."""
        systems = study.comparison["systems"]
        shared = {"systems": systems, "chips": study.chips, "colours": COLOURS}
        part: Callable[..., Part] = partial(Part.from_template, __package__, **shared)
        rows = {name: {edit: system[edit] for edit in EDITS} for name, system in systems.items()}
        factors = {name: f"{1 / rate:.3f}" for name, rate in study.rates("seconds").items()}
        title = "Real-time factor"
        return [
            part(
                "errors",
                "Errors",
                "noise",
                {"edits": figures.stacked(rows, COLOURS, x_title="characters")},
                bins={title: _table(systems, key) for key, title in BINS.items()},
                confusions={
                    name: [
                        (_confusion(*pair), count) for *pair, count in system["confusions"][:SHOWN]
                    ]
                    for name, system in systems.items()
                },
            ),
            part("recordings", "Recordings", "noise", clips=recordings.clips(study)),
            part("speed", title, "cost", heading=title, note=REAL_TIME, rates=factors),
        ]


def _table(systems: Mapping[str, Any], key: str) -> dict[str, list[Any]]:
    """CER by system (rows) and bin, with the number of records, which all systems share."""
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


def _confusion(reference: str, hypothesis: str) -> str:
    if not reference:
        return f"{hypothesis} inserted"
    return f"{hypothesis} for {reference}" if hypothesis else f"{reference} deleted"
