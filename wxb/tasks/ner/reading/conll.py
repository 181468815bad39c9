"""Read tokens with tags: column files, and records with a list of each, as on the hub.

Column files have one token and its tag per line, and a blank line between sentences; examples are
CoNLL-2003, WNUT, MSRA and Weibo. Tags may be BIO (IOB2), IOB1, BIOES, BILOU or BMEWO: the rules of
conlleval (Tjong Kim Sang and Buchholz 2000) cover all of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import regex

from wxb.core.errors import WxbError
from wxb.corpora import formats
from wxb.corpora.formats import Raw
from wxb.corpora.layout import TABLES, decode
from wxb.corpora.records import RecordError
from wxb.tasks.ner.params import Conll, Fields

DOCUMENT = "-DOCSTART-"
MAX_TOKENS = 200  # of a sentence that is the only one of its file
COMMENT = re.compile(r"#\s*[\w.]+\s*=")  # such as `# sent_id = 1`
RANGE = re.compile(r"(\d+)-\d+\t")  # of CoNLL-U: a contraction, before the lines of its words
BEGINNING = frozenset("BSUW")  # single tokens are S in BIOES, U in BILOU, W in BMEWO
ENDING = frozenset("ELSUW")
PREFIXES = BEGINNING | ENDING | frozenset("IM")
# A tag in the last column of CoNLL-U, such as `SpaceAfter=No|name=B-PER` of NorNE or Stanza's ner.
MISC = re.compile(rf"^(?:.*[| ])?(?:name|ner|NE)=(O(?![^|])|[{''.join(sorted(PREFIXES))}]-[^|]+).*")

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "ner", "labels", "label", "bio_tags")
# Scripts that are written without spaces between words.
UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")

NUMBERS = "tags without names"  # a reason of rejects
ADVICE = "give the folder with `dataset_info.json`, or use `save_to_disk` or Parquet, with names"

Lines = list[tuple[int, str]]  # (line number, content)


class Tag(NamedTuple):
    """The prefix and type of a tag such as B-NAME; both are empty for O."""

    prefix: str
    type: str


Sentence = tuple[Sequence[str], Sequence[Tag]]  # tokens and their tags
OUTSIDE = Tag("", "")
NESTED = re.compile(rf"[|/+,;&]([{''.join(sorted(PREFIXES))}]-|O$)")


def raw_records(file: Path, conll: Conll) -> Iterator[Raw]:
    """Yield the sentences or documents of a file, with the default names of fields.

    Sentences have the number of their document if the file marks several. What cannot be parsed
    is a record with a RecordError as its content. Reads the whole file first. Raises WxbError for a
    file that is empty or, unless it is a table, not UTF-8, or whose sentences are not separated.
    """
    lines, repaired = _lines(file, conll.sentence)
    units = [*_units(lines, conll.unit)]
    if conll.unit == "sentence" and len(units) == 1 and len(units[0][1][0]) > MAX_TOKENS:
        fault = f"{file.name}: found no blank line in {len(units[0][1][0]):,} lines"
        raise WxbError(f"{fault}; add one after each sentence, or set `conll.unit: document`")
    in_documents = conll.unit == "sentence" and any(document > 1 for document, _ in units)
    for document, sentences in units:
        content: Any
        try:
            content = to_record([_sentence(lines, conll) for lines in sentences], conll.join)
        except RecordError as error:
            content = error
        position = f"line {sentences[0][0][0]}"
        yield Raw(position, content, repaired, document if in_documents else None)


def _lines(file: Path, sentence: int | None) -> tuple[Lines, tuple[str, ...]]:
    """Numbered lines of a file, and its repairs. Of a table: its cells, joined by tabs.

    A blank line is before each sentence of a table. A broken row, which may begin one, is a line
    with too few columns. Raises WxbError if a table has no column `sentence`.
    """
    if sentence is None:
        return numbered_lines(decode(file)), ()
    raws = [*formats.raw_records(file)]
    width = max((len(raw.content) for raw in raws if isinstance(raw.content, Mapping)), default=0)
    if file.suffix.lower() not in TABLES or not 0 <= sentence < width:
        fault = f"{file.name}: found {width} columns; `conll.sentence` is {sentence}"
        raise WxbError(f"{fault}, of a table ({' or '.join(TABLES)}) with a header, from 0")
    lines: Lines = []
    previous: str | None = ""  # None after a broken row
    for raw in raws:
        is_row = isinstance(raw.content, Mapping)
        cells = raw.content.values() if is_row else [raw.content.detail, ""]
        row = [str(cell).replace("\t", " ") for cell in cells]
        number = int(raw.place.removeprefix("line "))
        if is_row and previous is not None and row[sentence] not in ("", previous):
            lines.append((number, ""))
        if not is_row or row[sentence]:
            previous = row[sentence] if is_row else None
        lines.append((number, "\t".join(row)))
    return lines, raws[0].repaired if raws else ()


def _units(numbered: Lines, unit: str) -> Iterator[tuple[int, list[Lines]]]:
    """Yield for each record the number of its document, 0 before any marker, and its sentences."""
    markers = [index for index, (_, line) in enumerate(numbered) if line.startswith(DOCUMENT)]
    starts = [0, *(index + 1 for index in markers)]
    for document, (start, stop) in enumerate(zip(starts, [*markers, None], strict=True)):
        groups = groupby(numbered[start:stop], key=lambda line: bool(line[1]))
        sentences = [[*lines] for is_sentence, lines in groups if is_sentence]
        for sentence in sentences if unit == "sentence" else ():
            yield document, [sentence]
        if sentences and unit == "document":
            yield document, sentences


def numbered_lines(text: str) -> Lines:
    """The numbers and right-stripped contents of lines, also blank ones, without comments.

    A comment is before a sentence, begins with #, and assigns a key or has another number of cells
    than most lines. Also skips the contractions of CoNLL-U.
    """
    # Not `splitlines`: tokens may contain other line separators of Unicode.
    lines = [line.rstrip("\r\t ") for line in text.split("\n")]
    numbered = [
        (number, line)
        for number, (line, after) in enumerate(pairwise([*lines, ""]), start=1)
        if not ((match := RANGE.match(line)) and after.startswith(f"{match[1]}\t"))
    ]
    if not any(line.startswith("#") for line in lines):
        return numbered
    width = Counter(len(cells(line)) for line in lines if line).most_common(1)[0][0]
    kept, is_start = [], True
    for number, line in numbered:
        is_comment = line.startswith("#") and (COMMENT.match(line) or len(cells(line)) != width)
        if is_start and is_comment:
            continue
        kept.append((number, line))
        is_start = not line or line.startswith(DOCUMENT)
    return kept


def _sentence(lines: Lines, conll: Conll) -> Sentence:
    """Tokens (first characters if `conll.characters`) and tags; RecordError for an invalid line."""
    tokens, tags = [], []
    for number, line in lines:
        columns = cells(line)
        width = len(columns)
        last = max(index if index >= 0 else ~index for index in (conll.token, conll.tag))
        if last >= width or conll.token % width == conll.tag % width:
            fault = f"{line!r} has {width}; expected token {conll.token} and tag {conll.tag}"
            raise RecordError("too few columns", f"line {number}: {fault}")
        token = columns[conll.token]
        tokens.append(token[:1] if conll.characters else token)
        tags.append(parse_tag(columns[conll.tag].strip(), f"line {number}: "))
    return tokens, tags


def cells(line: str) -> list[str]:
    """The cells of a line, by tabs, else by runs of spaces; if the last matches MISC, its tag."""
    # Not `split()`: tokens may contain other white space.
    *others, last = line.split("\t") if "\t" in line else re.split(" +", line.lstrip(" "))
    return [*others, MISC.sub(r"\1", last)]


def parse_tag(name: str, place: str = "") -> Tag:
    """The tag of a name. Raises RecordError, with the `place`, for an unknown or nested one."""
    prefix, _, type_ = name.partition("-")
    if name == "O":
        return OUTSIDE
    if NESTED.search(type_):
        detail = f"{place}{name!r} joins the tags of several layers; keep one of them"
        raise RecordError("nested tags", detail)
    if prefix not in PREFIXES or not type_:
        prefixes = ", ".join(f"{known}-" for known in sorted(PREFIXES))
        raise RecordError("unknown tag", f"{place}{name!r}; expected O, or a type after {prefixes}")
    return Tag(prefix, type_)


def to_record(sentences: Sequence[Sentence], join: str) -> dict[str, Any]:
    """`input`, the text with a line per sentence, and its `spans` of `start`, `end`, `type`."""
    texts, spans, begin = [], [], 0
    for tokens, tags in sentences:
        starts = [*accumulate((len(token) + len(join) for token in tokens), initial=begin)]
        for first, end, type_ in token_spans(tags):
            spans.append({"start": starts[first], "end": starts[end] - len(join), "type": type_})
        texts.append(join.join(tokens))
        begin += len(texts[-1]) + 1
    return {"input": "\n".join(texts), "spans": spans}


def token_spans(tags: Sequence[Tag]) -> list[tuple[int, int, str]]:
    """(first token, one past the last token, type) of every span, in any scheme of tags.

    A span begins by its prefix, or if no span of its type is open.
    """
    spans: list[tuple[int, int, str]] = []
    previous = OUTSIDE
    for index, tag in enumerate(tags):
        is_open = previous.type == tag.type and previous.prefix not in ENDING
        if tag != OUTSIDE and (tag.prefix in BEGINNING or not is_open):
            spans.append((index, index + 1, tag.type))
        elif tag != OUTSIDE:
            spans[-1] = spans[-1][0], index + 1, tag.type
        previous = tag
    return spans


def with_spans(content: Any, fields: Fields) -> Any:
    """The content of a raw record with the text of tokens and the spans of tags instead of both.

    `separator` joins the tokens. The tags are those of the field of spans, else of one in TAGS.
    Unchanged without tokens and tags, and if it has a text. Returns (not raises) a RecordError for
    tags that are numbers, not as in column files, or not as many as the tokens.
    """
    if not isinstance(content, Mapping) or fields.input in content:
        return content
    parsed = with_lists(content, (*TOKENS, fields.spans, *TAGS))
    kinds = {k: {*map(type, v)} for k, v in parsed.items() if isinstance(v, list)}
    name = next((name for name in TOKENS if kinds.get(name) == {str}), None)
    lists = [n for n in (fields.spans, *TAGS) if kinds.get(n) and kinds[n] <= {str, int}]
    if name is None or not lists:
        return content
    tokens = parsed[name]
    tag_field = next((field for field in lists if len(parsed[field]) == len(tokens)), None)
    if tag_field is None:
        detail = f"found {len(tokens)} {name} and {len(parsed[lists[0]])} {lists[0]}"
        return RecordError("unequal lists", detail)
    tags = parsed[tag_field]
    if any(isinstance(tag, int) for tag in tags):
        return RecordError(NUMBERS, f"found {tags[:5]}; expected their names: {ADVICE}")
    try:
        text, spans = to_record([(tokens, [*map(parse_tag, tags)])], separator(tokens)).values()
    except RecordError as error:
        return error
    others = {key: value for key, value in parsed.items() if key not in (name, tag_field)}
    return {**others, fields.input: text, fields.spans: spans}


def with_lists(content: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """The content with lists instead of texts of lists, as pandas and numpy write them to CSV."""
    for name in names:
        cell = content.get(name)
        if isinstance(cell, str) and cell.startswith("["):
            parsed = formats.with_parsed_cell({**content}, name)
            content = content if isinstance(parsed, RecordError) else parsed
    return content


def separator(tokens: Sequence[str]) -> str:
    """The text between tokens: a space, or "" if most words are of a script without spaces."""
    words = [token for token in tokens if token[:1].isalpha()]
    unspaced = sum(UNSPACED.match(word) is not None for word in words)
    return "" if 2 * unspaced > len(words) else " "
