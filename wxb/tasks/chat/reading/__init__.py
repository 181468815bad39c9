"""How conversations are read, checked and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wxb.corpora import formats, reading
from wxb.corpora.formats import Raw
from wxb.corpora.records import Record, RecordError, encodable, required
from wxb.tasks.chat.params import Corpus
from wxb.tasks.chat.record.checking import of
from wxb.tasks.chat.record.conversation import (
    ConversationError,
    Message,
    checked,
    message,
    of_text,
    to_text,
)


class Reading(reading.Reading):
    """Conversations with the answer that ends them."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The records of a file, the conversation before the answer as their input."""
        for raw in formats.raw_records(file, corpus.fields.messages):
            if not isinstance(raw.content, Mapping):  # which is told by who reads it
                yield raw
                continue
            try:
                yield raw._replace(content=_parted(raw.content, corpus))
            except RecordError as why:
                yield raw._replace(content=why)
            except ConversationError as why:
                yield raw._replace(content=RecordError(why.reason, why.detail))

    def gold(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[Any, tuple[str, ...]]:
        """The answer, its kind of question and its format; None of a text for pretraining."""
        fields = corpus.fields
        answer = raw[fields.output]
        if answer is None:
            return None, ()
        kind, form = (raw.get(name) if name else None for name in (fields.kind, fields.format))
        kind, form = (None if value in (None, "") else str(value) for value in (kind, form))
        if form is not None:
            try:
                of(form)
            except ValueError as why:
                raise RecordError("unknown format", str(why)) from None
        encodable(answer, kind or "")
        return {"text": answer, "kind": kind, "format": form}, ()

    def wording(self, record: Record) -> str:
        """The text in lower case, one space apart; other numbers make another question."""
        return " ".join(record.input.casefold().split())

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """How many questions of each kind and format, how many turns, and how long answers are."""
        golds = [record.gold for record in records]
        lengths = [len(each["text"]) for each in golds] or [0]
        shares = (("median", 0.5), ("p95", 0.95), ("longest", 1.0))
        turns = Counter(len(of_text(record.input)) + 1 for record in records)
        return {
            "kinds": _counted(golds, "kind"),
            "formats": _counted(golds, "format"),
            "messages": {str(number): count for number, count in sorted(turns.items())},
            "characters": {
                name: int(np.quantile(lengths, share, method="nearest")) for name, share in shares
            },
        }


def _parted(content: Mapping[str, Any], corpus: Corpus) -> dict[str, Any]:
    """A record with its conversation in the field of the input, and its answer in the output's."""
    fields = corpus.fields
    if fields.text and content.get(fields.text) is not None:
        return {**content, fields.input: content[fields.text], fields.output: None}
    if content.get(fields.messages) is not None:
        messages = checked(content[fields.messages])
    else:
        messages = _instructed(content, corpus)
    if messages[-1]["role"] != "assistant":
        raise RecordError("missing answer", "the last message is not the assistant's")
    size = sum(len(each["content"]) for each in messages)
    if size > corpus.max_characters:
        raise RecordError("too long", f"{size} characters, at most {corpus.max_characters}")
    answer = messages[-1]["content"]
    if "\0" in answer:
        raise RecordError("NUL character", f"in the answer, at offset {answer.index(chr(0))}")
    return {**content, fields.input: to_text(messages[:-1]), fields.output: answer}


def _instructed(content: Mapping[str, Any], corpus: Corpus) -> list[Message]:
    """The messages of a record with an instruction; what it is about stands below it."""
    fields = corpus.fields
    asked = [required(content, fields.instruction), content.get(fields.input)]
    said = [part for part in asked if part is not None and part != ""]
    if not said or not all(isinstance(part, str) for part in said):
        raise RecordError("wrong type", f"{fields.instruction!r} is {asked[0]!r}, expected text")
    answer = content.get(fields.output)
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise RecordError("missing answer", f"{fields.output!r} is {answer!r}, expected text")
    system = content.get(fields.system) if fields.system else None
    before = [message("system", system)] if system else []
    return checked([*before, message("user", "\n".join(said)), message("assistant", answer)])


def _counted(golds: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    return dict(sorted(Counter(each[name] for each in golds if each[name] is not None).items()))
