"""Sections of speech pages: errors and recordings."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from wxb.core import paths
from wxb.reporting import figures, parts
from wxb.reporting.formatting import Table, rounded
from wxb.reporting.parts import Example, Fold, Section, Study, marked
from wxb.tasks.speech.metrics import EDITS, PredictionRow, alignment, clip_name, select_clips

COLOURS = dict(zip(("deletions", "insertions", "substitutions"), figures.ERRORS, strict=False))
SHOWN = 12  # confusions of one system
BINS = {"by_seconds": "CER by length (s)", "by_snr": "CER by signal-to-noise ratio (dB)"}
AUDIO = Markup(
    '<audio controls preload="none" src="data:audio/flac;base64,{}" aria-label="Recording"></audio>'
)


class Page(parts.Page):
    """Errors by kind, length and noise; recordings with their transcripts."""

    RULE = (
        "Errors are the fewest substitutions, deletions and insertions of characters (CER) or words"
        " (WER) that turn the reference into the transcript."
    )
    VALIDATION_NOTE = (
        "The curves show token accuracy on validation transcripts, each token predicted from the"
        " correct ones before it. The test CER differs: there, a model continues its own output."
    )

    def sections(self, study: Study) -> list[Section]:
        """Errors by kind, length, noise and character, then recordings with transcripts."""
        systems = study.systems
        edits = [[name, *(f"{system[e]:,}" for e in EDITS)] for name, system in systems.items()]
        by_kind = Table("Character errors by kind", ["experiment", *EDITS], edits)
        by_bin = [_bins(title, systems, key) for key, title in BINS.items()]
        confusions = []
        for name, system in systems.items():
            counts = system["confusions"][:SHOWN]
            rows = [[gold or "–", text or "–", f"{n:,}"] for gold, text, n in counts]
            table = Table("Confusions", ["reference", "transcript", "count"], rows)
            confusions.append(Fold(name, [table]))
        note = "At equal distances in the test set, not selected by result."
        return [
            Section("errors", "Errors", [by_kind, *by_bin, *confusions]),
            Section("recordings", "Recordings", [note, *clips(study)]),
        ]


def _bins(title: str, systems: Mapping[str, Any], key: str) -> Table:
    """CER of each system (rows) in each bin (columns, with its number of records)."""
    bounds = []
    for row in next(iter(systems.values()))[key]:
        start, end = ("" if row[name] is None else f"{row[name]:g}" for name in ("from", "to"))
        bounds.append(f"{start}–{end} ({row['records']:,})")
    rows = [[name, *(rounded(r["cer"]) for r in system[key])] for name, system in systems.items()]
    return Table(title, [title, *bounds], rows)


def clips(study: Study) -> Iterator[Example]:
    """Yield the first system's copied recordings, embedded, with the transcripts of all systems."""
    systems = list(study.systems)
    folder = paths.PREDICTIONS / study.comparison["study"] / systems[0]
    rows = {name: {row.id: row for row in study.predictions[name]} for name in systems}
    for row in select_clips(study.predictions[systems[0]]):
        sound = base64.b64encode((folder / clip_name(row)).read_bytes()).decode()
        lines = [("reference", row.reference)]
        lines += [(name, marked(pieces(rows[name][row.id]))) for name in systems]
        title = f"{row.id} {row.group or ''} {row.seconds:.2f} s"
        yield Example(title, lines, AUDIO.format(sound))


def pieces(row: PredictionRow) -> list[tuple[str, str, str]]:
    """The hypothesis, with deleted characters: text, colour and kind of edit of each piece."""
    return [
        (hypothesis or reference, COLOURS.get(kind, ""), kind)
        for kind, reference, hypothesis in alignment(row)
    ]
