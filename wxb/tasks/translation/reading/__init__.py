"""Reads pairs of texts, and groups those that must stay in one split.

The pairs of one source become one record with several references. Records that share a reference
stay together, and so do those whose sources differ only in case, spaces or digits. References are
compared within a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from networkx.utils import UnionFind

from wxb.corpora import formats, reading
from wxb.corpora.formats import Raw
from wxb.corpora.layout import decode
from wxb.corpora.records import Record, RecordError, check_encodable
from wxb.tasks.translation.params import Corpus
from wxb.tasks.translation.reading.pairs import check_pair

FURTHER = "another reference of its source"


class Reading(reading.Reading):
    """How sources with their references are read."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The unusable pairs of a file, then one record per source with its references.

        A record has the place and the other fields of its first pair; further pairs count as
        repairs. Records that share a reference have the same `document`.
        """
        rows = _tab_separated(file, corpus.columns) if corpus.columns else formats.raw_records(file)
        source, target = corpus.fields.input, corpus.fields.target
        records: dict[str, Raw] = {}
        for raw in rows:
            if isinstance(raw.content, RecordError):
                yield raw
                continue
            try:
                text, reference = check_pair(raw.content, corpus)
            except RecordError as error:
                yield raw._replace(content=error)
                continue
            first = records.get(text)
            if first is None:
                content = {**raw.content, source: text, target: [reference]}
                records[text] = raw._replace(content=content)
                continue
            first.content[target].append(reference)
            records[text] = first._replace(repaired=(*first.repaired, FURTHER))
        documents = _documents({text: raw.content[target] for text, raw in records.items()})
        for text, raw in records.items():
            yield raw._replace(document=documents[text])

    def gold(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """The references of a source without repetitions, in the order of the file."""
        references = tuple(dict.fromkeys(raw[corpus.fields.target]))
        check_encodable(*references)
        return references, ()

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """The count of references, and the count of sources by number of references."""
        sources = Counter(len(record.gold) for record in records)
        return {
            "references": sum(references * count for references, count in sources.items()),
            "sources_by_references": {str(count): sources[count] for count in sorted(sources)},
        }


def _tab_separated(file: Path, columns: Sequence[str]) -> Iterator[Raw]:
    """The lines of a file as records; a line with fewer cells than `columns` is a RecordError."""
    for line_number, line in enumerate(decode(file).split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        content: Any = dict(zip(columns, cells, strict=False))
        if len(cells) < len(columns):
            detail = f"found {len(cells)} cells, expected {len(columns)}"
            content = RecordError("broken line", detail)
        yield Raw(f"line {line_number}", content)


def _documents(references: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """A document number for each source, the same if a chain of shared references joins two."""
    components = UnionFind()
    for source, targets in references.items():
        components.union(("source", source), *(("target", target) for target in targets))
    documents: dict[Any, int] = {}
    roots = {source: components["source", source] for source in references}
    return {source: documents.setdefault(root, len(documents)) for source, root in roots.items()}
