"""Read records with a list of tokens and a list of their tags, as on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import regex

from wxb.corpora.formats import Raw
from wxb.corpora.records import RecordError
from wxb.tasks.ner.reading.conll import Sentence, parse_tag, to_record

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "ner", "labels", "label", "bio_tags")
# Scripts that are written without spaces between words.
UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")

NUMBERS = "tags without names"  # a reason of rejects
ADVICE = "give the folder with `dataset_info.json`, or use `save_to_disk` or Parquet, with names"


def with_spans(raw: Raw, text: str | None = None) -> Raw:
    """The record with the text of its tokens as `input`, and the spans of its tags as `spans`.

    Unchanged without tokens and tags, and if it has the field `text`. Its content is a RecordError
    if the tags are numbers, or not as in column files.
    """
    content = raw.content
    if not isinstance(content, Mapping) or text in content:
        return raw
    tokens = next((t for name in TOKENS if _is_list(t := content.get(name), str)), None)
    if tokens is None:
        return raw
    lists = [content[name] for name in TAGS if _is_list(content.get(name), str | int)]
    tags = next((tags for tags in lists if len(tags) == len(tokens)), None)
    if tags is None:
        return raw
    try:
        if any(isinstance(tag, int) for tag in tags):
            raise RecordError(NUMBERS, f"found {tags[:5]}; expected their names: {ADVICE}")
        sentence = Sentence(tokens, [parse_tag(tag) for tag in tags])
    except RecordError as error:
        return raw._replace(content=error)
    return raw._replace(content={**content, **to_record([sentence], join(tokens))})


def join(tokens: Sequence[str]) -> str:
    """The text between tokens: none if most words are of a script without spaces."""
    words = [token for token in tokens if token[:1].isalpha()]
    unspaced = sum(UNSPACED.match(word) is not None for word in words)
    return "" if 2 * unspaced > len(words) else " "


def _is_list(value: Any, cls: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, cls) for v in value)
