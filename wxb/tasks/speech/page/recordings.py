"""Test recordings that a page plays, with what each system wrote."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from wxb.core import paths
from wxb.reporting.charts.parts import Study
from wxb.tasks.speech.metrics import Judged, alignment, chosen, clip
from wxb.tasks.speech.record.audio import reading
from wxb.tasks.speech.record.audio.features import FRAMES, HOP, log_mel

BANDS = 80
HEIGHT = 2  # pixels of a band


class Piece(NamedTuple):
    """Characters of one kind: right, or of an edit."""

    text: str
    kind: str  # "", substitutions, deletions or insertions


class Clip(NamedTuple):
    """A recording, its spectrogram and what was made of it."""

    row: Judged
    audio: str  # FLAC, in base64
    spectrogram: str  # PNG, in base64
    written: dict[str, list[Piece]]  # by system


def clips(study: Study) -> list[Clip]:
    """The recordings that the stage evaluate kept for the page."""
    members = list(study.comparison["systems"])
    folder = paths.predictions(study.comparison["study"], members[0])
    rows = {name: {row.id: row for row in study.judged[name]} for name in members}
    return [
        Clip(
            row,
            _base64((folder / clip(row)).read_bytes()),
            _base64(spectrogram(folder / clip(row))),
            {name: pieces(rows[name][row.id]) for name in members},
        )
        for row in chosen(study.judged[members[0]])
    ]


def pieces(row: Judged) -> list[Piece]:
    """What a system wrote, beside what it left out, in stretches of one kind."""
    found: list[Piece] = []
    for said, written in alignment(row):
        kind = _kind(said, written)
        text = written or said
        if found and found[-1].kind == kind:
            found[-1] = Piece(found[-1].text + text, kind)
        else:
            found.append(Piece(text, kind))
    return found


def _kind(said: str, written: str) -> str:
    if said == written:
        return ""
    if not said:
        return "insertions"
    return "substitutions" if written else "deletions"


def spectrogram(path: Path) -> bytes:
    """A picture of what is heard as PNG: 10 ms a pixel from the left, high sounds on top."""
    samples = reading.read(path)
    heard = log_mel(samples, BANDS, len(samples) // HOP + FRAMES)[: len(samples) // HOP].T[::-1]
    scaled = (heard - heard.min()) / max(float(np.ptp(heard)), 1e-6)
    pixels = np.repeat((255 * scaled).astype(np.uint8), HEIGHT, axis=0)
    file = BytesIO()
    Image.fromarray(pixels).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
