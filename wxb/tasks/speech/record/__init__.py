"""Recordings with what was said in them: their gold in Parquet."""

from __future__ import annotations

import pyarrow as pa

from wxb.corpora import labelling

# `rules` are those of the corpus by which transcripts are compared.
MEASURES = ("seconds", "trimmed", "loudness", "clipped", "snr")


class Labelling(labelling.Labelling):
    """What was said in a recording, by whom, and what was measured of it."""

    GOLD = pa.struct(
        [
            *((name, pa.string()) for name in ("text", "speaker", "rules")),
            *((name, pa.float64()) for name in MEASURES),
        ]
    )
