"""The gold of recordings: transcripts, speakers and measures, as a Parquet type."""

from __future__ import annotations

import pyarrow as pa

from wxb.corpora import records

MEASURES = ("seconds", "trimmed", "loudness", "clipped", "snr")


class Labelling(records.Labelling):
    """Transcript, speaker, normalization rules and measures of a recording.

    `rules` are the names in `normalization.RULES` that the corpus enables.
    """

    GOLD = pa.struct(
        [
            *((name, pa.string()) for name in ("text", "speaker", "rules")),
            *((name, pa.float64()) for name in MEASURES),
        ]
    )
