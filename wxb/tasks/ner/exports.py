"""Records with their spans, written as other tools read them: CoNLL columns, JSONL, spaCy's DocBin.

CoNLL and spaCy need tokens. A token is a word (letters and digits with their marks) or any other
character with its marks. Scripts that put no spaces between words are cut by character: Chinese,
Japanese, Thai, Lao, Khmer, Burmese. Tokens are also cut at the edges of spans, gold and predicted,
so that both come back exactly. White space between tokens is all that CoNLL loses.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import regex

from wxb import paths
from wxb.errors import WxbError, choices
from wxb.files import publish
from wxb.params import Params

if TYPE_CHECKING:
    from wxb.tasks.ner.record.spans import Span

Format = Literal["conll", "jsonl", "spacy"]

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}"
_JOINERS = r"\u200C\u200D"  # they shape the letters and emoji on both sides
# \x1c-\x1f: white space to Python, though not to Unicode.
_TOKEN = regex.compile(
    rf"(?V1)[[\p{{L}}\p{{N}}]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}{_JOINERS}]--[{_UNSPACED}]]*"
    rf"|[^\s\x1C-\x1F][\p{{M}}{_JOINERS}]*"
)

# Allowed in JSON as they are, but many a reader takes them for the end of the line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class Exported(NamedTuple):
    """A record with its gold spans and, of an experiment, what it predicted and how surely."""

    id: str
    text: str
    language: str | None
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...] | None = None
    scores: tuple[float, ...] = ()

    @property
    def columns(self) -> list[tuple[Span, ...]]:
        """The gold spans and, where there are any, the predicted ones."""
        return [self.gold] if self.predicted is None else [self.gold, self.predicted]


def records(params: Params, name: str, split: str) -> list[Exported]:
    """The labelled records of a corpus's split, or the test records that an experiment judged.

    Raises WxbError for a name that is neither or both, for another split of an experiment, and
    where the stage that makes them has not run.
    """
    from wxb.corpora import clean  # with pyarrow: no other command should wait for it
    from wxb.metrics import evaluation
    from wxb.tasks.ner import metrics, record

    _check_name(params, name)
    if name in params.corpora:
        folder = paths.clean(name)
        _check_made(folder / paths.PROFILE, f"preprocess@{name}")
        if split not in (splits := clean.splits(folder)):
            raise WxbError(f"corpus {name} has no split {split!r}{choices(split, splits)}")
        path = folder / f"{split}.parquet"
        _check_made(path, f"preprocess@{name}")
        return [Exported(r.id, r.input, r.language, r.gold) for r in clean.labelled(path, record)]
    if split != "test":
        raise WxbError(
            f"{name} is an experiment, and experiments predict on the test records only;"
            f" found split {split!r}: export its corpus {params.experiments[name].corpus!r} instead"
        )
    folder = paths.predictions(params.experiments[name].study, name)
    _check_made(folder / evaluation.PREDICTIONS, f"evaluate@{name}")
    return [
        Exported(r.id, r.input, None, r.gold, r.predicted, r.scores)
        for r in evaluation.read(metrics, folder)
    ]


def format_of(output: Path | None, given: Format | None) -> Format:
    """The format that is given, or else that of the suffix; JSONL, which loses nothing, of neither.

    Raises WxbError for another suffix, and for a binary format without a file.
    """
    suffix = output.suffix.lower().removeprefix(".") if output else "jsonl"
    chosen = given or next((known for known in get_args(Format) if known == suffix), None)
    if chosen is None:
        raise WxbError(
            f"{output}: the suffix names no format; expected .conll, .jsonl or .spacy: rename it,"
            " or choose with --format"
        )
    if chosen == "spacy" and output is None:
        raise WxbError("format spacy is binary; name its file with --output, e.g. test.spacy")
    return chosen


def write(exported: Iterable[Exported], chosen: Format, output: Path | None) -> None:
    """Write records to a file, which appears whole or not at all, or to standard output.

    Raises WxbError for spans that the format cannot express, and where `output` is no plain file.
    """
    chunks = {"conll": conll, "jsonl": jsonl, "spacy": docbin}[chosen](exported)
    if output is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    target = output.resolve()  # of a link, the file that it points to
    if target.exists() and not target.is_file():
        raise WxbError(f"{output}: found a folder or device; expected a file to write or replace")
    try:
        with publish(target) as (draft,), draft.open("wb") as file:
            file.writelines(chunks)
    except OSError as error:
        raise WxbError(f"{output}: cannot be written ({error.strerror}); choose another") from None


def conll(exported: Iterable[Exported]) -> Iterator[bytes]:
    """Lines `token<TAB>tag` (IOB2) in UTF-8, with a blank line between records.

    Of an experiment two columns of tags: gold, then predicted, as conlleval expects them.
    """
    for number, record in enumerate(exported):
        _check_tags(record)
        tokens = cut(record.text, *record.columns)
        words = [record.text[start:end] for start, end in tokens]
        columns = [words, *(iob2(tokens, spans) for spans in record.columns)]
        lines = "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))
        # At the very start of a file it would be taken for the file's byte order mark.
        if number or lines.startswith("\ufeff"):
            yield b"\n"
        yield lines.encode()


def jsonl(exported: Iterable[Exported]) -> Iterator[bytes]:
    """One JSON object a line in UTF-8: `text`, `spans`, `meta`, as Prodigy lays out its tasks.

    Of an experiment `spans` are the predicted ones, each with its score, and `gold` the gold ones.
    """
    for record in exported:
        gold = _labelled(record.gold)
        line: dict[str, Any] = {"text": record.text, "spans": gold, "meta": _meta(record)}
        if record.predicted is not None:
            predicted = zip(_labelled(record.predicted), record.scores, strict=True)
            line["spans"] = [{**span, "score": score} for span, score in predicted]
            line["gold"] = gold
        yield (json.dumps(line, ensure_ascii=False).translate(_LINE_ENDS) + "\n").encode()


def docbin(exported: Iterable[Exported]) -> Iterator[bytes]:
    """A serialized DocBin whose documents have the very texts; id and language in `user_data`.

    Gold spans are `doc.ents`; of an experiment the predicted ones are, and the gold ones
    `doc.spans["gold"]`.
    """
    try:
        from spacy.tokens import Doc, DocBin
        from spacy.util import get_words_and_spaces
        from spacy.vocab import Vocab
    except ModuleNotFoundError as error:
        raise WxbError(
            f"{error}: format spacy needs spaCy; install it with"
            " `pip install --editable '.[benchmarks]'`"
        ) from None
    # Of no language: whoever reads the documents sees words as their own pipeline does.
    vocabulary, documents = Vocab(), DocBin(store_user_data=True)
    for record in exported:
        _check_tokens(record)
        tokens = cut(record.text, *record.columns)
        words = [record.text[start:end] for start, end in tokens]
        doc = Doc(vocabulary, *get_words_and_spaces(words, record.text))
        gold, *predicted = (
            [doc.char_span(span.start, span.end, span.type) for span in spans]
            for spans in record.columns
        )
        doc.ents = predicted[0] if predicted else gold
        if predicted:
            doc.spans["gold"] = gold
        doc.user_data = _meta(record)
        documents.add(doc)
    yield documents.to_bytes()


def cut(text: str, *columns: Sequence[Span]) -> list[tuple[int, int]]:
    """Offsets of the tokens of a text, cut at the edges of some spans, too."""
    edges = sorted({edge for spans in columns for span in spans for edge in span[:2]})
    tokens: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        inner = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        tokens += pairwise([start, *inner, end])
    return tokens


def iob2(tokens: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[str]:
    """The tags of tokens that were cut at the edges of the spans: O, B-AGE, I-AGE, ..."""
    tags = ["O"] * len(tokens)
    starts = [start for start, _ in tokens]
    for span in spans:
        first, end = bisect_left(starts, span.start), bisect_left(starts, span.end)
        tags[first:end] = [f"B-{span.type}", *[f"I-{span.type}"] * (end - first - 1)]
    return tags


def _check_name(params: Params, name: str) -> None:
    known = [*params.corpora, *params.experiments]
    if known.count(name) == 2:
        raise WxbError(f"params.yaml has a corpus and an experiment {name!r}; rename one of them")
    if name not in known:
        raise WxbError(f"params.yaml has no corpus or experiment {name!r}{choices(name, known)}")


def _check_made(path: Path, stage: str) -> None:
    if not path.exists():
        raise WxbError(f"{path}: not there yet; run `dvc repro {stage}` first")


def _check_tokens(record: Exported) -> None:
    """Raise WxbError for spans that tokens cannot express, whatever their cut."""
    for spans in map(sorted, record.columns):
        for left, right in pairwise(spans):
            if right.start < left.end:
                raise _cannot(record, f"spans {tuple(left)} and {tuple(right)} overlap")
        for span in spans:
            mention = record.text[span.start : span.end]
            if not mention or mention != mention.strip():
                raise _cannot(record, f"span {tuple(span)} is {mention!r}, with outer white space")


def _check_tags(record: Exported) -> None:
    """Raise WxbError for spans that columns of IOB2 tags cannot express."""
    _check_tokens(record)
    for type_ in sorted({span.type for spans in record.columns for span in spans}):
        if type_.split() != [type_]:
            raise _cannot(record, f"type {type_!r} holds white space, as `labels` could mend")


def _cannot(record: Exported, fault: str) -> WxbError:
    return WxbError(f"record {record.id!r}: {fault}; export it as jsonl, which takes any spans")


def _meta(record: Exported) -> dict[str, Any]:
    return {"id": record.id, "language": record.language}


def _labelled(spans: Iterable[Span]) -> list[dict[str, Any]]:
    return [{"start": span.start, "end": span.end, "label": span.type} for span in spans]
