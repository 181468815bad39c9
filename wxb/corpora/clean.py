"""The clean records of a corpus: a Parquet file for each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wxb.corpora.records import Record
from wxb.files import read_json
from wxb.progress import tracked
from wxb.tasks.ner.spans import Span

SPLITS = ("train", "valid", "test")  # of every corpus
LOT = 10_000  # records

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "text": pa.string(),
        "language": pa.string(),
        "group": pa.string(),
        "spans": pa.list_(pa.struct({"start": pa.int32(), "end": pa.int32(), "type": pa.string()})),
    }
)


def splits(folder: Path) -> list[str]:
    """The names of the splits of a clean corpus: train, valid, test, and further test sets."""
    return [*read_json(folder / "profile.json")["splits"]]


def test_sets(folder: Path) -> list[str]:
    """The splits of a clean corpus that are tested on, `test` first."""
    return splits(folder)[SPLITS.index("test") :]


def write(path: Path, records: Iterable[Record]) -> None:
    """Write records to a Parquet file."""
    rows = [
        {
            "id": record.id,
            "text": record.text,
            "language": record.language,
            "group": record.group,
            "spans": None if record.spans is None else [span._asdict() for span in record.spans],
        }
        for record in records
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)


def read(path: Path) -> list[Record]:
    """The records of a Parquet file, in order."""
    return [_record(row) for row in pq.read_table(path).to_pylist()]


def _record(row: Mapping[str, Any]) -> Record:
    spans = None if row["spans"] is None else tuple(Span(**span) for span in row["spans"])
    return Record(**{**row, "spans": spans})


def labelled(path: Path) -> list[Record]:
    """Only the records with gold spans (perhaps none in a text)."""
    return [record for record in read(path) if record.spans is not None]


def lots(path: Path, label: str) -> Iterator[list[Record]]:
    """What `labelled` gives, a lot at a time, so that not all are in memory; shows progress."""
    batches = pq.ParquetFile(path).iter_batches(LOT)
    total = -(-pq.read_metadata(path).num_rows // LOT)
    for batch in tracked(batches, label, total, unit="lot"):
        yield [_record(row) for row in batch.to_pylist() if row["spans"] is not None]


def texts(path: Path, *, labelled: bool = False) -> list[str]:
    """All texts of a Parquet file in order, or those of labelled records alone."""
    columns = pq.read_table(path, columns=["text", "spans"] if labelled else ["text"])
    if labelled:
        columns = columns.filter(columns["spans"].is_valid())
    found: list[str] = columns["text"].to_pylist()
    return found
