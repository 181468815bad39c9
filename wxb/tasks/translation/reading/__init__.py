"""Pairs of texts in raw files: which are pairs, and which belong together.

The pairs of one source make one record with several references. Records that share a reference, and
those whose sources differ in case, spaces or digits alone, are never in two splits; references are
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
from wxb.corpora.records import Record, RecordError, encodable
from wxb.tasks.translation.params import Corpus
from wxb.tasks.translation.reading.pairs import checked

FURTHER = "another reference of its source"


class Reading(reading.Reading):
    """Sources with their references."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """One record for each source of a file, with its references; first what is no pair.

        A record stands where its first pair does, has that one's other fields, and counts the other
        pairs among what was repaired. Records that share a reference are of one document.
        """
        rows = _tabbed(file, corpus.columns) if corpus.columns else formats.raw_records(file)
        source, target = corpus.fields.input, corpus.fields.target
        records: dict[str, Raw] = {}
        for raw in rows:
            if isinstance(raw.content, RecordError):
                yield raw
                continue
            try:
                text, reference = checked(raw.content, corpus)
            except RecordError as why:
                yield raw._replace(content=why)
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
        """The references of a source, each once, in the order of the file."""
        references = tuple(dict.fromkeys(raw[corpus.fields.target]))
        encodable(*references)
        return references, ()

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """How many references there are, and how many sources have so many of them."""
        counts = Counter(len(record.gold) for record in records)
        return {
            "references": sum(number * count for number, count in counts.items()),
            "sources_by_references": {str(number): counts[number] for number in sorted(counts)},
        }


def _tabbed(file: Path, columns: Sequence[str]) -> Iterator[Raw]:
    """The lines of a file as records; RecordError where one has fewer cells than `columns`."""
    for number, line in enumerate(decode(file).split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        content: Any = dict(zip(columns, cells, strict=False))
        if len(cells) < len(columns):
            detail = f"found {len(cells)} cells, expected {len(columns)}"
            content = RecordError("broken line", detail)
        yield Raw(f"line {number}", content)


def _documents(references: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """A number for each source: the same where a chain of shared references leads to another."""
    joined = UnionFind()
    for source, targets in references.items():
        joined.union(("source", source), *(("target", target) for target in targets))
    numbers: dict[Any, int] = {}
    roots = {source: joined["source", source] for source in references}
    return {source: numbers.setdefault(root, len(numbers)) for source, root in roots.items()}
