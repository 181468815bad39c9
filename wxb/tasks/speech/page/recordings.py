"""Test recordings that a page plays, with the transcripts of each system."""

from __future__ import annotations

import base64
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from wxb.core import paths
from wxb.reporting.charts.parts import Study
from wxb.tasks.speech.metrics import PredictionRow, alignment, clip_name, clip_rows
from wxb.tasks.speech.record.audio import FRAMES, HOP, log_mel, read

BANDS = 80
HEIGHT = 2  # pixels of a band


class Piece(NamedTuple):
    """Adjacent characters that are all correct, or all of one kind of edit."""

    text: str
    kind: str  # "", substitutions, deletions or insertions


class Clip(NamedTuple):
    """A recording, its spectrogram and its transcripts."""

    row: PredictionRow
    audio: str  # FLAC, in base64
    spectrogram: str  # PNG, in base64
    pieces: dict[str, list[Piece]]  # transcripts by system


def clips(study: Study) -> list[Clip]:
    """The recordings that the stage `evaluate` copied for the page."""
    systems = list(study.comparison["systems"])
    folder = paths.predictions(study.comparison["study"], systems[0])
    rows = {name: {row.id: row for row in study.predictions[name]} for name in systems}
    return [
        Clip(
            row,
            _base64((folder / clip_name(row)).read_bytes()),
            _base64(spectrogram(folder / clip_name(row))),
            {name: pieces(rows[name][row.id]) for name in systems},
        )
        for row in clip_rows(study.predictions[systems[0]])
    ]


def pieces(row: PredictionRow) -> list[Piece]:
    """The hypothesis with the deleted characters of the reference, split by kind of edit."""
    aligned = [(_edit(*pair), pair[1] or pair[0]) for pair in alignment(row)]
    return [
        Piece("".join(character for _, character in group), kind)
        for kind, group in groupby(aligned, key=itemgetter(0))
    ]


def _edit(reference: str, hypothesis: str) -> str:
    if reference == hypothesis:
        return ""
    if not reference:
        return "insertions"
    return "substitutions" if hypothesis else "deletions"


def spectrogram(path: Path) -> bytes:
    """A PNG of a recording's log-mel features, 10 ms per pixel, high frequencies on top."""
    samples = read(path)
    frames = len(samples) // HOP
    bands = log_mel(samples, BANDS, frames + FRAMES)[:frames].T[::-1]
    scaled = (bands - bands.min()) / max(float(np.ptp(bands)), 1e-6)
    pixels = np.repeat((255 * scaled).astype(np.uint8), HEIGHT, axis=0)
    file = BytesIO()
    Image.fromarray(pixels).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
