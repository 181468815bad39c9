"""Read records with a list of tokens and a list of their tags, as on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import regex

from wxb.corpora.formats import Raw
from wxb.corpora.records import RecordError
from wxb.tasks.ner.params import Fields
from wxb.tasks.ner.reading.conll import Sentence, parse_tag, to_record

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "ner", "labels", "label", "bio_tags")
# Scripts that are written without spaces between words.
UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")

NUMBERS = "tags without names"  # a reason of rejects
ADVICE = "give the folder with `dataset_info.json`, or use `save_to_disk` or Parquet, with names"


def with_spans(raw: Raw, fields: Fields) -> Raw:
    """The record with the text of its tokens, and the spans of their tags.

    The tags are those of the field of spans, else of one in TAGS. Unchanged without tokens and
    tags, and if it has a text. Its content is a RecordError if the tags are numbers, or not as in
    column files.
    """
    content = raw.content
    if not isinstance(content, Mapping) or fields.input in content:
        return raw
    name = next((name for name in TOKENS if _is_list(content.get(name), str)), "")
    known = _tag_fields(content, name)
    tag_field = next((field for field in (fields.spans, *TAGS) if field in known), None)
    if tag_field is None:
        return raw
    tokens, tags = content[name], content[tag_field]
    try:
        if any(isinstance(tag, int) for tag in tags):
            raise RecordError(NUMBERS, f"found {tags[:5]}; expected their names: {ADVICE}")
        text, spans = to_record([Sentence(tokens, [*map(parse_tag, tags)])], join(tokens)).values()
    except RecordError as error:
        return raw._replace(content=error)
    others = {key: value for key, value in content.items() if key not in (name, tag_field)}
    return raw._replace(content={**others, fields.input: text, fields.spans: spans})


def _tag_fields(content: Mapping[str, Any], tokens: str) -> list[str]:
    """The fields of a record with a name or number for each of its tokens."""
    size = len(content.get(tokens, ()))
    return [n for n, v in content.items() if _is_list(v, str | int) and len(v) == size]


def join(tokens: Sequence[str]) -> str:
    """The text between tokens: none if most words are of a script without spaces."""
    words = [token for token in tokens if token[:1].isalpha()]
    unspaced = sum(UNSPACED.match(word) is not None for word in words)
    return "" if 2 * unspaced > len(words) else " "


def _is_list(value: Any, cls: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, cls) for v in value)
