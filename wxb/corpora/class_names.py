"""The names of classes and tags that a data set of the Hugging Face hub stores as numbers.

`datasets` writes its features into the schema of Parquet and Arrow files. Other files have them in
a file such as `dataset_info.json` in the same folder, or one above.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.corpora.layout import FEATURES

Names = Mapping[str, Sequence[str]]  # by field


def names_of(file: Path) -> Names:
    """The names for the records of a file, by field; empty without.

    Raises WxbError if a file of features is not JSON.
    """
    schema = _schema(file)
    metadata = (schema.metadata or {}).get(b"huggingface") if schema else None
    return _by_field(json.loads(metadata)) if metadata else _from_folder(file)


def _schema(file: Path) -> pa.Schema | None:
    """The schema of a Parquet or Arrow file; None for other and for damaged files."""
    try:
        match file.suffix.lower():
            case ".parquet":
                return pq.read_schema(file)
            case ".arrow":
                return open_arrow(file).schema
    except (OSError, ValueError, pa.ArrowException):
        pass  # the reader raises the error
    return None


def open_arrow(file: Path) -> pa.RecordBatchReader:
    """A reader of the batches of an Arrow file, in the format of streams or of files."""
    try:
        return pa.ipc.open_stream(pa.memory_map(str(file)))
    except pa.ArrowInvalid:
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
        return table.to_reader()


def _from_folder(file: Path) -> Names:
    for folder in (file.parent, file.parent.parent):
        for path in (folder / name for name in FEATURES):
            if path.is_file():
                try:
                    return _by_field(read_json(path))
                except ValueError as error:
                    raise WxbError(f"{path}: expected JSON with `features`; {error}") from None
    return {}


def decode(content: Any, names: Names) -> Any:
    """A record with names instead of numbers; -1, which means no class, becomes None."""
    if not names or not isinstance(content, Mapping):
        return content
    return {key: _decode(value, names.get(key, ())) for key, value in content.items()}


def _decode(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_decode(item, names) for item in value]
    if names and type(value) is int and -1 <= value < len(names):
        return None if value == -1 else names[value]
    return value


def _by_field(content: Any) -> Names:
    """The names of each field in the features of a data set, or of its first configuration."""
    while isinstance(content, Mapping) and content:
        features = content.get("features") or content
        by_field = {field: _find(feature) for field, feature in features.items()}
        if any(by_field.values()):
            return by_field
        content = content.get("info", next(iter(content.values())))
    return {}


def _find(feature: Any) -> Sequence[str]:
    """The names of a class, or of a list of classes; empty for other features."""
    while isinstance(feature, Mapping):
        feature = feature["names"] if "names" in feature else feature.get("feature")
    is_names = isinstance(feature, list) and all(isinstance(name, str) for name in feature)
    return feature if is_names else ()
