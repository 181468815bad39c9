"""Read, check and count conversations."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wxb.corpora import formats, reading
from wxb.corpora.formats import Raw
from wxb.corpora.reading import alphabetical_counts
from wxb.corpora.records import Record, RecordError, check_characters, required_field, required_text
from wxb.corpora.text.templates import Message, message
from wxb.tasks.chat.params import Corpus
from wxb.tasks.chat.record.checking import parse_format
from wxb.tasks.chat.record.conversation import deserialize, serialize, validate, with_answer


class Reading(reading.Reading):
    """Conversations that end with an answer."""

    TEST_GROUP = "kind"

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """Records with the answer apart from the messages before it, or with a RecordError."""
        for raw in formats.raw_records(file, corpus.fields.messages, None, corpus.annotator):
            content: Any = raw.content
            if isinstance(content, Mapping):  # the caller rejects others
                try:
                    content = _split_answer(content, corpus)
                except RecordError as error:
                    content = error
            yield raw._replace(content=content)

    def input_of(self, raw: Mapping[str, Any], corpus: Corpus) -> str:
        """The serialized messages or instruction without a final answer, else `text` or `input`."""
        fields = corpus.fields
        messages = raw.get(fields.messages)
        texts = [name for name in (fields.text, fields.input) if name and raw.get(name) is not None]
        if messages is None and raw.get(fields.instruction) is None and texts:
            return required_text(raw, texts[0])
        if messages is None:
            messages = _question_messages(raw, corpus)
        messages = validate(_with_system(messages, raw, corpus))
        return serialize(messages[:-1] if messages[-1]["role"] == "assistant" else messages)

    def gold_and_repairs(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[Any, tuple[str, ...]]:
        """`text`, `kind` and `format`, or None for pretraining; RecordError for unknown formats."""
        fields = corpus.fields
        answer = raw[fields.output]
        if answer is None:
            return None, ()
        values = (raw.get(name) if name else None for name in (fields.kind, fields.format))
        kind, format_ = (None if value in (None, "") else str(value) for value in values)
        if format_ is not None:
            parse_format(format_)
        check_characters(answer, kind or "")
        return {"text": answer, "kind": kind, "format": format_}, ()

    def wording(self, record: Record) -> str:
        """The input in lower case with single spaces; numbers count, unlike in other tasks."""
        return " ".join(record.input.casefold().split())

    def preview(self, record: Record) -> str:
        """Each `role: text` of messages and answer, joined by "; "; the input without answer."""
        if not record.gold:
            return record.input
        return "; ".join(f"{turn['role']}: {turn['content']}" for turn in with_answer(record))

    def leakage_text(self, record: Record) -> str:
        """The user's messages, normalized as wordings are; empty if the record is not labelled."""
        messages = deserialize(record.input) if record.gold else []
        questions = [m["content"] for m in messages if m["role"] == "user"]
        return " ".join(" ".join(questions).casefold().split())

    def statistics(self, records: Sequence[Record]) -> dict[str, Any]:
        """Counts by `kinds`, `formats`, length in `messages`; quantiles of answer `characters`."""
        golds = [record.gold for record in records]
        messages = Counter(len(deserialize(record.input)) + 1 for record in records)
        return {
            "kinds": alphabetical_counts(g["kind"] for g in golds if g["kind"] is not None),
            "formats": alphabetical_counts(g["format"] for g in golds if g["format"] is not None),
            "messages": {str(number): count for number, count in sorted(messages.items())},
            "characters": reading.length_quantiles([len(gold["text"]) for gold in golds]),
        }


def _split_answer(content: Mapping[str, Any], corpus: Corpus) -> dict[str, Any]:
    """A record with the messages before its last answer, which is in the output field.

    Without messages, they are its history, instruction and output. With a text for pretraining,
    messages, instruction and output are None. Raises RecordError without an answer, or for invalid
    or long messages.
    """
    fields = corpus.fields
    if fields.text and content.get(fields.text) is not None:
        return {**content, **dict.fromkeys([fields.messages, fields.instruction, fields.output])}
    messages = content.get(fields.messages)
    if messages is None:
        question, answer = _question_messages(content, corpus), content.get(fields.output)
        if answer is None or (isinstance(answer, str) and not answer.strip()):
            detail = f"{fields.output!r} is {answer!r}, expected text"
            raise RecordError("missing answer", detail)
        messages = [*question, message("assistant", answer)]
    *question, last = messages = validate(_with_system(messages, content, corpus))
    if last["role"] != "assistant":
        raise RecordError("missing answer", "the last message is not the assistant's")
    size = sum(len(message["content"]) for message in messages)
    if size > corpus.max_characters:
        raise RecordError("too long", f"{size} characters, at most {corpus.max_characters}")
    return {**content, fields.messages: question, fields.output: last["content"]}


def _question_messages(content: Any, corpus: Corpus) -> list[Message]:
    """Messages before the answer, without system: history, then instruction and input in one."""
    fields = corpus.fields
    material = None if fields.input == fields.instruction else content.get(fields.input)
    parts = [required_field(content, fields.instruction), material]
    lines = [part for part in parts if part is not None and part != ""]
    if not lines or not all(isinstance(line, str) for line in lines):
        raise RecordError("wrong type", f"{fields.instruction!r} is {parts[0]!r}, expected text")
    if isinstance(content.get(fields.history), str):  # a cell of CSV
        content = formats.with_parsed_cell({**content}, fields.history)
        if isinstance(content, RecordError):
            raise content
    history = (content.get(fields.history) if fields.history else None) or []
    if not isinstance(history, list) or not all(_is_pair(turn) for turn in history):
        detail = f"{fields.history!r} is {history!r:.80}, expected pairs of question and answer"
        raise RecordError("wrong type", detail)
    roles = ("user", "assistant")
    turns = [message(*turn) for pair in history for turn in zip(roles, pair, strict=True)]
    return [*turns, message("user", "\n".join(lines))]


def _with_system(messages: Any, content: Mapping[str, Any], corpus: Corpus) -> Any:
    """Add the system field's text as first message, unless one exists. Checks no message."""
    system = content.get(corpus.fields.system) if corpus.fields.system else None
    if not system or not isinstance(messages, list):
        return messages
    roles = [turn.get("role") for turn in messages if isinstance(turn, Mapping)]
    return messages if "system" in roles else [message("system", system), *messages]


def _is_pair(turn: Any) -> bool:
    is_list = isinstance(turn, list) and len(turn) == 2
    return is_list and all(isinstance(text, str) for text in turn)
