"""Read and write the clean records of a corpus: a Parquet file per split."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.progress import track
from wxb.corpora.records import USUAL, Labelling, Record

TRAINING_SPLITS = ("train", "valid")  # training reads them; the others are test sets
# Records. A multiple of the rows that Parquet writes at once, so that files do not depend on it.
CHUNK = 10 * 1024

COLUMNS = dict.fromkeys(("id", "input", "language", "group"), pa.string())


def splits(folder: Path) -> list[str]:
    """The names of the splits in profile.json, in its order: train, valid, test, further ones."""
    return [*read_json(folder / paths.PROFILE)["splits"]]


def split_file(folder: Path, split: str) -> Path:
    """The Parquet file of a split of the corpus in `folder`."""
    return folder / (paths.TRAINING_DATA if split in TRAINING_SPLITS else "") / f"{split}.parquet"


def test_sets(folder: Path) -> list[str]:
    """The names of the test sets among `splits`, `test` first."""
    return [split for split in splits(folder) if split not in TRAINING_SPLITS]


def test_set_facts(folder: Path) -> dict[str, dict[str, Any]]:
    """What studies report of each test set in profile.json, by its name.

    `grouped_by` is the field of the groups, None if they have none. `nearness` is that of
    `profile.nearness`. `test` also has facts of the corpus: `records`, the number of labelled ones
    by split, and `warnings`, if any.
    """
    profile = read_json(folder / paths.PROFILE)
    facts = {
        name: {"grouped_by": profile["test_groups"][name], "nearness": profile["nearness"][name]}
        for name in test_sets(folder)
    }
    facts["test"]["records"] = {n: split["labelled"] for n, split in profile["splits"].items()}
    facts["test"] |= {"warnings": lines} if (lines := warnings(profile)) else {}
    return facts


def warnings(profile: Mapping[str, Any]) -> list[str]:
    """Warnings, a line each, about unusual rejects, unread fields and the split `test`.

    Those of `test` report that no answer can be checked, or under 95% of span ends at word edges.
    """
    raw, edges = profile["records"]["raw"], profile["splits"]["test"].get("at_word_edges", 1)
    rejects = [(reason, n) for reason, n in profile["rejects"].items() if reason not in USUAL]
    lines = [f"{n:,} of {raw:,} records rejected: {reason}" for reason, n in rejects]
    unread = ", ".join(f"{name!r} {n:,}" for name, n in profile["fields_not_read"].items())
    lines += [f"fields not read: {unread}"] if unread else []
    if not profile["splits"]["test"].get("formats", True):  # of answers
        lines.append("no answer can be checked, so chrF ranks the experiments")
    return lines + ([f"ends of spans at word edges: {edges:.0%}"] if edges < 0.95 else [])


def write(path: Path, records: Iterable[Record], labelling: Labelling) -> None:
    """Write the COLUMNS and gold of records to Parquet; creates the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema({**COLUMNS, "gold": labelling.stored})
    remaining, tables = iter(records), [schema.empty_table()]
    while chunk := [*islice(remaining, CHUNK)]:
        rows = [{name: getattr(record, name) for name in schema.names} for record in chunk]
        tables.append(pa.Table.from_pylist(rows, schema=schema))
    pq.write_table(pa.concat_tables(tables), path)


def read(path: Path, labelling: Labelling) -> Iterator[Record]:
    """Yield the records of a Parquet file, in order; the gold of unlabelled ones is None."""
    return (record for chunk in _chunks(path, labelling) for record in chunk)


def read_labelled(path: Path, labelling: Labelling) -> Iterator[Record]:
    """Yield the labelled records of a Parquet file, in order: those whose gold is not None."""
    return (record for record in read(path, labelling) if record.gold is not None)


def read_labelled_chunks(path: Path, labelling: Labelling, caption: str) -> Iterator[list[Record]]:
    """Yield a list of the labelled ones of each CHUNK records, even if empty; prints progress."""
    total = -(-pq.read_metadata(path).num_rows // CHUNK)
    for chunk in track(_chunks(path, labelling), caption, total, unit="chunk"):
        yield [record for record in chunk if record.gold is not None]


def _chunks(path: Path, labelling: Labelling) -> Iterator[list[Record]]:
    """The records of a Parquet file, CHUNK at a time."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(CHUNK):
            rows = batch.to_pylist()
            golds = labelling.parse([row["gold"] for row in rows])
            yield [Record(**{**r, "gold": g}) for r, g in zip(rows, golds, strict=True)]


def texts(path: Path, column_name: Literal["input", "gold"]) -> list[str]:
    """The inputs or the gold texts of all records of a Parquet file, in order.

    Gold texts are those of `text` if gold has fields. There may be none or several per record, so
    they are not aligned with records. Raises WxbError if gold is not text.
    """
    with pq.ParquetFile(path) as file:  # `pq.read_table` would import pandas, which takes a second
        column = file.read(columns=[column_name])[column_name].drop_null()
    if pa.types.is_struct(column.type) and column.type.get_field_index("text") >= 0:
        column = pc.struct_field(column, "text")
    if pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    if not pa.types.is_string(column.type):
        raise WxbError(
            f"{path}: found gold of type {column.type}; expected text: remove `gold` from"
            " `tokenizer.texts` of the backbone"
        )
    return column.to_pylist()
