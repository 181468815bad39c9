"""Texts as tokens, and gold spans laid on them: what both methods share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Columns, Encoded, joined, part, read_encoded
from wxb.corpora.text.windows import Windows, over
from wxb.tasks.ner.params import Encoding
from wxb.tasks.ner.record.alignment import account

# Targets of some records' windows, where each begins, and the status of every gold span.
Lay = Callable[[Encoded, Windows, Sequence[Record]], tuple[*Columns, NDArray[np.int8]]]


def windows(encoded: Encoded, tokenizer: Any, settings: Encoding) -> Windows:
    """The windows through which texts are read."""
    return over(encoded, tokenizer, max_length=settings.max_length, stride=settings.stride)


def aligned(
    path: Path, chunks: Iterable[Sequence[Record]], tokenizer: Any, settings: Encoding, lay: Lay
) -> tuple[*Columns, dict[str, int]]:
    """Targets of all records as of one chunk, where each begins, and what became of their gold."""
    encoded = read_encoded(path)
    parts, statuses, reached = [], [], 0
    for records in chunks:
        tokens = part(encoded, reached, reached + len(records))
        columns, splits, status = lay(tokens, windows(tokens, tokenizer, settings), records)
        parts.append((columns, splits))
        statuses.append(status)
        reached += len(records)
    return *joined(parts), account(np.concatenate(statuses))
