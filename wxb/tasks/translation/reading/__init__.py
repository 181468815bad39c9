"""Reads pairs of texts, and groups those that must stay in one split.

The pairs of one source become one record with several references. Records that share a reference
stay together, and so do those whose sources differ only in case, spaces or digits. References are
compared within a file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import regex
from networkx.utils import UnionFind

from wxb.core.errors import WxbError
from wxb.corpora import formats, reading
from wxb.corpora.formats import Raw
from wxb.corpora.layout import decode
from wxb.corpora.records import Record, RecordError, check_characters, required_text
from wxb.tasks.translation.params import Corpus


class Reading(reading.Reading):
    """How sources with their references are read."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The unusable pairs of a file, then one record per source with its references.

        A record has the place and the other fields of its first pair, and a repair for each other
        pair. Records that share a reference have the same `document`.
        """
        if corpus.parallel:
            rows = _parallel_lines(file, corpus.parallel)
        else:
            rows = formats.raw_records(file, None, corpus.columns, corpus.annotator)
        source, target = corpus.fields.input, corpus.fields.target
        records: dict[str, Raw] = {}
        for raw in rows:
            if not isinstance(raw.content, Mapping):  # the caller rejects it
                yield raw
                continue
            try:
                text, reference = check_pair(raw.content, corpus)
            except RecordError as error:
                yield raw._replace(content=error)
                continue
            if first := records.get(text):
                is_repeated = reference in first.content[target]
                repair = "repeated pair" if is_repeated else "another reference of its source"
                first.content[target].append(reference)
                records[text] = first._replace(repaired=(*first.repaired, repair))
            else:
                content = {**raw.content, source: text, target: [reference]}
                records[text] = raw._replace(content=content)
        documents = _document_numbers({text: raw.content[target] for text, raw in records.items()})
        for text, raw in records.items():
            yield raw._replace(document=documents[text])

    def gold_and_repairs(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[tuple[str, ...], tuple[()]]:
        """The references that `raw_records` collected, each once, in file order; no repairs."""
        return tuple(dict.fromkeys(raw[corpus.fields.target])), ()

    def statistics(self, records: Sequence[Record]) -> dict[str, Any]:
        """The counts of `references`, and of sources by their number (`sources_by_references`)."""
        sources = Counter(len(record.gold) for record in records)
        return {
            "references": sum(references * count for references, count in sources.items()),
            "sources_by_references": {str(count): sources[count] for count in sorted(sources)},
        }


def _parallel_lines(file: Path, languages: Sequence[str]) -> Iterator[Raw]:
    """The pairs of a file in the first language, unless both are blank; none for other files.

    `languages` are the suffixes of both. Raises WxbError if the partner is missing or not as long.
    """
    if file.suffix != f".{languages[0]}":
        return
    files = [file.with_suffix(f".{language}") for language in languages]
    for path in files:
        if not path.exists():
            raise WxbError(f"{path}: does not exist; expected the translations of {file.name}")
    sides = [decode(path).removesuffix("\n").split("\n") for path in files]
    counts = [len(lines) for lines in sides]
    if counts[0] != counts[1]:
        raise WxbError(
            f"{file}: found {counts[0]:,} lines, and {counts[1]:,} in {files[1].name}; expected"
            " a line for each translation: fetch both files again"
        )
    for number, lines in enumerate(zip(*sides, strict=True), start=1):
        if any(line.strip() for line in lines):
            texts = (line.rstrip("\r") for line in lines)
            yield Raw(f"line {number}", dict(zip(languages, texts, strict=True)))


def _document_numbers(references: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """A document number for each source, the same if a chain of shared references joins two."""
    components = UnionFind()
    for source, targets in references.items():
        components.union(("source", source), *(("target", target) for target in targets))
    documents: dict[Any, int] = {}
    roots = {source: components["source", source] for source in references}
    return {source: documents.setdefault(root, len(documents)) for source, root in roots.items()}


def check_pair(raw: Mapping[str, Any], corpus: Corpus) -> tuple[str, str]:
    """The stripped source and target of a record.

    Raises RecordError if one is missing, blank or has a NUL, if both are equal, and if their
    lengths or scripts do not fit `pairs` of the corpus.
    """
    source, target = (required_text(raw, f) for f in (corpus.fields.input, corpus.fields.target))
    source, target = source.strip(), target.strip()
    check_characters(source, target)
    if source == target:
        raise RecordError("same text", f"source and target are {source!r}")
    ratio = max(len(source), len(target)) / min(len(source), len(target))
    if ratio > corpus.pairs.length_ratio:
        detail = f"{len(source)} and {len(target)} characters: {ratio:.1f} to 1"
        raise RecordError("length ratio", detail)
    for text, script in zip((source, target), corpus.pairs.scripts or (), strict=False):
        if regex.search(r"\p{L}", text) and not regex.search(rf"\p{{Script={script}}}", text):
            raise RecordError("wrong script", f"no letter of {text!r} is {script}")
    return source, target
