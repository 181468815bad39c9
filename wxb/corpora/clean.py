"""Clean records: duplicates removed, divided into splits, described, kept as Parquet."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wxb.corpora.records import Record, Reject
from wxb.errors import WxbError
from wxb.files import read_json
from wxb.progress import tracked
from wxb.spans import Span

SPLITS = ("train", "valid", "test")
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


def without_duplicates(
    records: Iterable[Record], held_out: Iterable[Record] = ()
) -> tuple[list[Record], list[Reject]]:
    """Keep one record of each text, so that none can stand in two splits: the first labelled one.

    Unlabelled copies of a labelled text go, wherever they stand; so does every copy of a text that
    is held out.
    """
    held = {record.text: record for record in held_out}
    kept: dict[str, Record] = {}
    rejects = []
    for record in records:
        other = held.get(record.text) or kept.get(record.text)
        if other is None:
            kept[record.text] = record
            continue
        if record.text not in held and other.spans is None and record.spans is not None:
            kept[record.text] = record
            record, other = other, record
        rejects.append(Reject(record.id, "duplicate text", f"same text as {other.id}", record.id))
    return list(kept.values()), rejects


def limited(records: list[Record], limit: int | None) -> tuple[list[Record], list[Reject]]:
    """The first so many records, and the others as rejects."""
    surplus = records[limit:] if limit else []
    return records[:limit], [Reject(r.id, "over max_records", "", r.id) for r in surplus]


def given(
    records: Iterable[Record], limit: int | None = None
) -> tuple[dict[str, list[Record]], list[Reject]]:
    """Put records into the splits they were published in, and keep those apart.

    The test split stays whole, with the duplicates in it, as published scores have it. Validation
    loses what repeats a text of the test split or its own, training what repeats any text, and
    what is over the limit.

    Raises WxbError when a split would be left without labelled records.
    """
    members: dict[str | None, list[Record]] = {name: [] for name in SPLITS}
    for record in records:
        members[record.split].append(record)
    test = members["test"]
    valid, of_valid = without_duplicates(members["valid"], test)
    train, of_train = without_duplicates(members["train"], [*test, *valid])
    train, surplus = limited(train, limit)
    splits = {"train": train, "valid": valid, "test": test}
    _check_labelled(splits, "its files were read")
    return splits, [*of_valid, *of_train, *surplus]


def split(
    records: Sequence[Record], *, test: float, valid: float, seed: int
) -> dict[str, list[Record]]:
    """Divide records by their `group`, so that no group stands in two splits.

    Groups are shuffled by a hash of seed and name, so neither the order of the file nor other
    records move them; then they fill test and valid up to those shares of all records, as nearly
    as whole groups allow.

    Raises WxbError when a split would be left without labelled records.
    """
    sizes = Counter(record.group for record in records)
    order = sorted(sizes, key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).digest())
    quotas = {"test": test * len(records), "valid": valid * len(records)}
    where: dict[str, str] = {}
    for name, quota in quotas.items():
        filled = 0.0
        for group in order:
            # Rounds to the nearest: a group goes in if at least half of it fits.
            if group not in where and filled + sizes[group] / 2 <= quota:
                where[group] = name
                filled += sizes[group]
    splits: dict[str, list[Record]] = {name: [] for name in SPLITS}
    for record in records:
        splits[where.get(record.group, "train")].append(record)
    _check_labelled(splits, f"{len(records)} records in {len(sizes)} groups were divided")
    return splits


def _check_labelled(splits: Mapping[str, Sequence[Record]], how: str) -> None:
    for name, members in splits.items():
        if not any(record.spans is not None for record in members):
            raise WxbError(
                f"the {name} split has no labelled record: {how};"
                " change `split` of the corpus or bring more"
            )


def profile(splits: Mapping[str, Sequence[Record]], rejects: Sequence[Reject]) -> dict[str, Any]:
    """Counts that describe the clean corpus, and account for every raw record."""
    everything = [record for members in splits.values() for record in members]
    return {
        "records": {
            "raw": len(everything) + len(rejects),
            "rejected": len(rejects),
            **{name: len(members) for name, members in splits.items()},
        },
        "rejects": _counted(reject.reason for reject in rejects),
        "mended": _counted(what for record in everything for what in record.mended),
        "types": sorted({span.type for record in splits["train"] for span in record.spans or ()}),
        "splits": {name: _describe(members) for name, members in splits.items()},
    }


def _describe(records: Sequence[Record]) -> dict[str, Any]:
    labelled = [record for record in records if record.spans is not None]
    lengths = np.array([len(record.text) for record in records])
    return {
        "labelled": len(labelled),
        "unlabelled": len(records) - len(labelled),
        "without_spans": sum(not record.spans for record in labelled),
        "groups": len({record.group for record in records}),
        "characters": {
            name: int(np.quantile(lengths, share, method="nearest"))
            for name, share in (("median", 0.5), ("p95", 0.95), ("longest", 1.0))
        },
        "languages": _counted(record.language or "unknown" for record in records),
        "spans": _counted(span.type for record in labelled for span in record.spans or ()),
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


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
