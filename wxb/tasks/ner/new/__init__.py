"""`wxb new corpus` for texts with typed spans: lists of spans, lists of tags, or columns."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, get_args

import regex

from wxb.corpora.formats import raw_records
from wxb.corpora.layout import decode
from wxb.corpora.records import RecordError
from wxb.tasks import recognition
from wxb.tasks.ner.params import Fields, Offsets
from wxb.tasks.ner.reading import conll, offset
from wxb.tasks.ner.reading.repair import count_word_edges, folded, to_characters
from wxb.tasks.recognition import Block, FieldNames, Files, FlagError, Flags, Row

# Known keys of spans, by the key of `fields` in params.yaml.
KEYS = {
    "start": ("start", "startposition", "startoffset", "begin", "beginoffset", "startchar", "from"),
    "end": ("end", "endposition", "endoffset", "stop", "endchar", "to"),
    "type": ("label", "type", "entitytype", "entity", "tag", "category", "class"),
    "value": ("value", "entityvalue", "text", "mention", "surface", "word", "string"),
}
FLAGS = {"start": "start", "end": "end", "type": "tag"}  # by the key of `fields`
SHARE = 0.99  # of lines or records whose tags are those of a known scheme
NUMBERED = regex.compile(r"\S\d+")  # a character and its place in a word, as in Weibo NER
SENTENCE = regex.compile(r"sent(?!iment)", regex.IGNORECASE)  # a column of CSV: `Sentence #`
TAG = regex.compile(rf"O|[{''.join(sorted(conll.PREFIXES))}]-.+")


def recognize(files: Files, field_names: FieldNames, flags: Flags) -> Block | None:
    """The block for records with spans or tags, or for column files; None for other files.

    Raises FlagError if spans, their keys or the column of tags are not known.
    """
    kinds = {file.suffix.lower() for file in files.members}
    if (not files.has_fields or kinds == {".tsv"}) and (content := _conll_block(files, flags)):
        return content
    content = _span_block(files, field_names, flags) or _tag_block(files, field_names, flags)
    return content or (_conll_block(files, flags) if kinds == {".csv"} else None)


def _span_block(files: Files, field_names: FieldNames, flags: Flags) -> Block | None:
    """The block of records with spans, or None; finds `offsets` unless flags set it or `repair`."""
    names = recognition.fields_of(files.rows)
    if {"text", "ents", "tokens"} <= {*names}:  # spaCy's tokens and sentences have offsets, too
        names = ["text", "ents"]
    spans = {name: _first_span(files, name) for name in names}
    keys = {name: _keys(span, flags) for name, span in spans.items() if span}
    gold = flags.get("gold")
    lists = [n for n in keys if (n == gold if gold else {"start", "end"} <= keys[n].keys())]
    lists = [n for n in lists if {*FLAGS} <= keys[n].keys()] or lists
    content = field_names.corpus_block(files.rows, {**flags, "gold": lists[0]}) if lists else None
    if content is None:
        return None
    name = recognition.only("gold", lists)
    if lacking := [f"--{flag}" for key, flag in FLAGS.items() if key not in keys[name]]:
        fault = f"found spans with the keys {', '.join(spans[name])} in {name!r}"
        raise FlagError(f"{' and '.join(lacking)}: {fault}; name theirs")
    content["fields"] |= {"spans": name, **keys[name]}
    if "offsets" in flags or "repair" in flags:
        return {**content, **({"offsets": flags["offsets"]} if "offsets" in flags else {})}
    return {**content, **_offset_unit(files, content["fields"])}


def _first_span(files: Files, name: str) -> Mapping[str, Any]:  # empty if it is no object
    lists = recognition.values(_rows_with_parsed_spans(files, name), name)
    spans = next((value for value in lists if isinstance(value, list)), [None])
    return spans[0] if isinstance(spans[0], Mapping) else {}


def _rows_with_parsed_spans(files: Files, name: str) -> Sequence[Row]:
    """The records; read again with `name` parsed if it has lists of objects or of lists as text."""
    cells = [cell for cell in recognition.values(files.rows, name) if cell != "[]"]
    if not cells or not isinstance(cells[0], str) or not cells[0].startswith(("[{", "[[", "[(")):
        return files.rows
    raws = (raw_records(file, name, None, files.annotator) for file in files.members)
    return [raw.content for raw in chain(*raws) if isinstance(raw.content, Mapping)]


def _keys(span: Mapping[str, Any], flags: Flags) -> dict[str, str]:
    """Keys of a span by key of `fields`: those of flags, else the only known name, if any."""
    keys = {key: flags[flag] for key, flag in FLAGS.items() if flag in flags}
    for key, known in KEYS.items():
        others = [name for name in span if name not in keys.values()]
        names = recognition.matching_fields(others, known)
        if len(names) == 1 and key not in keys:
            keys[key] = names[0]
    return keys


def _offset_unit(files: Files, fields: Mapping[str, str]) -> Block:
    """The key `offsets` if spans fit clearly better in another unit than characters, else {}.

    A span fits by its value, else if its ends are at edges of words. Skips records with invalid
    spans. Raises FlagError if too many spans do not fit in the best unit.
    """
    texts = []
    for row in _rows_with_parsed_spans(files, fields["spans"]):
        with suppress(RecordError, AttributeError, KeyError, TypeError):
            keys, spans = (fields["start"], fields["end"]), row[fields["spans"]]
            spans = [s for s in spans if offset(s, keys[0]) < offset(s, keys[1])]  # no empty ones
            starts, ends = ([offset(s, key) for s in spans] for key in keys)
            given = [span.get(fields.get("value", "")) for span in spans]
            texts.append((f"{row[fields['input']]}", [*zip(starts, ends, strict=True)], given))
    scores, wrong = {}, {}
    for unit in get_args(Offsets):
        spans = [
            (text, *ends, value)
            for text, offsets, given in texts
            for ends, value in zip(to_characters(text, offsets, unit), given, strict=True)
        ]
        fits = [_fit(*span) for span in spans]
        scores[unit] = sum(right - bad for right, bad in fits)
        wrong[unit] = [span for span, (_, bad) in zip(spans, fits, strict=True) if bad]
    usual, *_ = scores
    best = max(scores, key=scores.__getitem__)
    if scores[best] - scores[usual] <= 0.05 * len(spans):
        best = usual
    if len(wrong[best]) > 1 + 0.05 * len(spans):
        shown = "\n  ".join(
            f"{a}-{b}: {text[max(0, a - 9) : a]!r} [{text[a:b]!r}] {text[b : b + 9]!r}"
            + (f", value {value!r}" if value else "")
            for text, a, b, value in wrong[best][:3]
        )
        raise FlagError(
            f"--offsets: {len(wrong[best])} of {len(spans)} spans do not fit their texts, in any of"
            f" {', '.join(scores)}:\n  {shown}\nCorrect the offsets, or name what they count"
            + (", or find spans by their values with --repair" if "value" in fields else "")
        )
    return {} if best == usual else {"offsets": best}


def _fit(text: str, start: int, end: int, value: Any) -> tuple[int, int]:
    """How many ends of a span fit, by its value, or else at edges of words, and how many do not."""
    if value is None:
        mention = text[max(0, start) : max(0, end)]
        before, after = (len(mention) - len(strip(mention)) for strip in (str.lstrip, str.rstrip))
        return count_word_edges(text, start + before, end - after)
    return (2, 0) if folded(text[max(0, start) : max(0, end)]) == folded(value) else (0, 2)


def _tag_block(files: Files, field_names: FieldNames, flags: Flags) -> Block | None:
    """The block of records with tokens and tags, or None; FlagError for unknown or unclear tags."""
    rows = [conll.with_lists(row, row) for row in files.rows]
    rows = [row for row in rows if any(isinstance(row.get(name), list) for name in conll.TOKENS)]
    fields = [n for n in recognition.fields_of(rows) if n not in conll.TOKENS]
    lists = [name for name in fields if isinstance(rows[0].get(name), list)]
    known = [n for n in lists if n in conll.TAGS or n.endswith("ner_tags")] or lists
    known = [flags["gold"]] if "gold" in flags else known
    fits: dict[str, list[Any]] = {}
    for field in known:
        contents = [conll.with_spans(row, Fields(spans=field)) for row in rows]
        changed = [c for c, row in zip(contents, rows, strict=True) if c is not row]
        fits |= {field: changed} if changed else {}
    read = {f: [c for c in contents if isinstance(c, Mapping)] for f, contents in fits.items()}
    names = [field for field in fits if len(read[field]) >= SHARE * len(fits[field])]
    if not names:
        for field, contents in fits.items():
            error = next(content for content in contents if isinstance(content, RecordError))
            raise FlagError(f"--gold: {field!r}: {error.detail}")
        return None
    field = recognition.only("gold", names)
    texts = {*field_names.fields["input"]} - {Fields().input}
    rows = [{key: value for key, value in row.items() if key not in texts} for row in read[field]]
    content = field_names.corpus_block(rows, {**flags, "gold": field})
    if content and field not in conll.TAGS:
        content["fields"]["spans"] = field
    return content


def _conll_block(files: Files, flags: Flags) -> Block | None:
    """The keys `conll` and `split` of files with a token and its tag a line; None for others.

    The cells of the column of tags are tags in nearly all lines. CSV has a header that names the
    column of sentences. Raises FlagError for several columns of tags, unknown prefixes of types,
    and nested tags.
    """
    is_csv = files.members[0].suffix.lower() == ".csv"
    header = recognition.fields_of(files.rows) if is_csv else []
    sentences = [c for c, name in enumerate(header) if SENTENCE.match(name)]
    if sentences:
        rows = [[*map(str, row.values())] for row in files.rows]
    else:
        rows = [row for file in files.members if not is_csv for row in _conll_rows(file)]
    if not rows:
        return None
    cells = {c: Counter(column) for c, column in enumerate(zip_longest(*rows, fillvalue=""))}
    tags = [c for c, counts in cells.items() if _tag_count(counts) >= SHARE * len(rows)]
    if "tag" in flags:
        tag = _column_index("tag", flags, header, len(cells))
    elif len(tags) == 1:
        (tag,) = tags
    elif tags:
        shown = [f"{c} ({', '.join(x for x, _ in cells[c].most_common(4))})" for c in tags]
        raise FlagError(f"--tag: found {' and '.join(shown)}; choose one")
    else:
        if not sentences:
            _reject_unknown_tags(cells, len(rows))
        return None
    if nested := next(filter(conll.NESTED.search, cells.get(tag, ())), None):
        raise FlagError(f"--tag: {nested!r} joins the tags of several layers; keep one in the file")
    others = {c: counts for c, counts in cells.items() if c not in (*tags, *sentences)}
    token = (
        _column_index("input", flags, header, len(cells))
        if "input" in flags
        else _token_column(rows, others)
    )
    if token is None:
        return None
    tokens = [*cells[token].elements()]
    block = {"token": token, "tag": tag, "join": conll.separator(tokens)}
    if sum(map(bool, map(NUMBERED.fullmatch, tokens))) >= SHARE * len(tokens):
        block["characters"] = True
    if sentences:
        block["sentence"] = sentences[0]
        for name in recognition.matching_fields(header, recognition.GROUPS):
            column, number = header.index(name), sentences[0]
            if any(a[column] != b[column] and a[number] == b[number] for a, b in pairwise(rows)):
                fault = f"has the same value for sentences of two {name!r}; make its values unique"
                raise FlagError(f"{files.path}: {header[number]!r} {fault}")
    return {"conll": block, "split": {"by": None, **recognition.SHARES}}


def _tag_count(counts: Mapping[str, int]) -> int:
    return sum(count for cell, count in counts.items() if TAG.fullmatch(cell.strip()))


def _reject_unknown_tags(cells: Mapping[int, Counter[str]], size: int) -> None:
    """Raise FlagError for a column of `size` cells that has O often, but no known tags."""
    for column, counts in cells.items():
        if counts["O"] > 0.3 * size:
            odd = [cell for cell, _ in counts.most_common() if not TAG.fullmatch(cell.strip())]
            raise FlagError(
                f"--tag: column {column} has O {counts['O']:,} times, but also"
                f" {', '.join(map(repr, odd[:3]))}; expected types after one of"
                f" {', '.join(f'{prefix}-' for prefix in sorted(conll.PREFIXES))} (I- before"
                " each, if the file has none)"
            )


def _token_column(rows: Sequence[Sequence[str]], cells: Mapping[int, Counter[str]]) -> int | None:
    """The first column of neither numbers nor repeats, or None; FlagError if it may be lemmas."""
    # Columns before that of tokens may number them, or repeat the name of a sentence or document.
    columns = [c for c, counts in cells.items() if not all(map(str.isdigit, counts))]
    same = {c: sum(a[c : c + 1] == b[c : c + 1] for a, b in pairwise(rows)) for c in columns}
    columns = [column for column in columns if 2 * same[column] < len(rows)] or columns
    if not columns:
        return None
    token, *others = columns
    for column in others:  # words have more forms than lemmas, or capitals
        full = [row for row in rows if len(row) > column]
        pairs = [(row[token].casefold(), row[column].casefold()) for row in full]
        lemmas, words = ((len(cells[c]), sum(map(str.istitle, cells[c]))) for c in (token, column))
        if lemmas < words and 4 * sum(a == b for a, b in pairs) > len(rows):
            raise FlagError(f"--input: columns {token} and {column} both have words; choose one")
    return token


def _column_index(flag: str, flags: Flags, header: Sequence[str], count: int) -> int:
    if flags[flag] in header:
        return header.index(flags[flag])
    if not flags[flag].isdecimal() or int(flags[flag]) >= count:
        raise FlagError(f"--{flag}: found {flags[flag]!r}; expected a column, 0 to {count - 1}")
    return int(flags[flag])


def _conll_rows(file: Path) -> list[list[str]]:
    """The cells of each line that has several; skips comments, contractions, marks of documents."""
    lines = [line for _, line in conll.numbered_lines(decode(file)) if line]
    rows = [conll.cells(line) for line in lines if not line.startswith(conll.DOCUMENT)]
    return [row for row in rows if len(row) > 1]
