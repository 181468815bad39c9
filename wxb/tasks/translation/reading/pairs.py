"""Checks whether two texts are a pair."""

from __future__ import annotations

from typing import Any

import regex

from wxb.corpora.records import RecordError, required_text
from wxb.tasks.translation.params import Corpus, Pairs


def check_pair(raw: Any, corpus: Corpus) -> tuple[str, str]:
    """The stripped source and target of a raw record.

    Raises RecordError if they cannot be translations of each other.
    """
    source, target = (_text(raw, name) for name in (corpus.fields.input, corpus.fields.target))
    if source == target:
        raise RecordError("same text", f"source and target are {source!r}")
    _check_lengths(source, target, corpus.pairs)
    for text, script in zip((source, target), corpus.pairs.scripts or (), strict=False):
        _check_script(text, script)
    return source, target


def _text(raw: Any, field: str) -> str:
    text = required_text(raw, field)
    if "\0" in text:
        raise RecordError("NUL character", f"{field!r} at offset {text.index(chr(0))}")
    return text.strip()


def _check_lengths(source: str, target: str, pairs: Pairs) -> None:
    ratio = max(len(source), len(target)) / min(len(source), len(target))
    if ratio > pairs.length_ratio:
        raise RecordError(
            "length ratio", f"{len(source)} and {len(target)} characters: {ratio:.1f} to 1"
        )


def _check_script(text: str, script: str) -> None:
    letters = regex.findall(r"\p{L}", text)
    if letters and not regex.search(rf"\p{{Script={script}}}", text):
        raise RecordError("wrong script", f"no letter of {text!r} is {script}")
