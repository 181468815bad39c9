"""Adapters: convert the records of annotation tools and hubs to objects with plain fields.

Each adapter tests the keys of a record. The readers of tasks see only the converted records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from wxb.corpora.records import RecordError

# The roles of ShareGPT by the roles of OpenAI's messages.
ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant"}

LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{2,4})?")  # a code such as en or zh_TW


class Adapter(NamedTuple):
    """The tool whose records it converts, a test of records, and the conversion of one."""

    tool: str
    fits: Callable[[Mapping[str, Any]], bool]
    convert: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def adapt(content: Any) -> Any:
    """A record with the fields that readers expect; unchanged if it is of no known tool.

    Every adapter that fits is applied, in their order. Raises RecordError for a text with several
    classes.
    """
    if _is_training_tuple(content):
        content = {"text": content[0], **content[1]}
    if isinstance(content, Mapping):
        for adapter in ADAPTERS:
            if adapter.fits(content):
                content = adapter.convert(content)
    return content


def _is_training_tuple(content: Any) -> bool:
    """Whether a record is spaCy's `[text, {"entities": ..., "cats": ...}]`."""
    return (
        isinstance(content, list)
        and len(content) == 2
        and isinstance(content[0], str)
        and isinstance(content[1], Mapping)
    )


def _has(**types: type) -> Callable[[Mapping[str, Any]], bool]:
    """A test for the types of some fields."""
    return lambda record: all(isinstance(record.get(key), cls) for key, cls in types.items())


def _has_list(test: Callable[[Any], bool]) -> Callable[[Mapping[str, Any]], bool]:
    """A test for a field that holds a non-empty list of items that pass a test."""
    return lambda record: any(_all(value, test) for value in record.values())


def _each(
    test: Callable[[Any], bool], convert: Callable[[Any], Any]
) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Convert the items of each list whose items all pass a test."""
    return lambda record: {
        key: [convert(item) for item in value] if _all(value, test) else value
        for key, value in record.items()
    }


def _all(value: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(test, value))


def _class_names(record: Mapping[str, Any]) -> Sequence[str] | None:
    """The list of classes of a text, called `labels` by old versions of Doccano; None of others."""
    if "text" not in record or {"tokens", "words"} & record.keys():
        return None
    lists = [record.get(key) for key in ("label", "labels")]
    names = next((v for v in lists if _all(v, lambda name: isinstance(name, str))), None)
    return [] if names is None and record.get("labels") == [] else names


def _is_triple(mention: Any) -> bool:
    return (
        isinstance(mention, list | tuple)
        and len(mention) >= 3
        and all(type(offset) is int for offset in mention[:2])
        and isinstance(mention[2], str)
    )


def _has_labels(mention: Any) -> bool:
    return isinstance(mention, Mapping) and {"start", "end", "labels"} <= mention.keys()


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, Mapping) and {"from", "value"} <= turn.keys()


def _is_pair(value: Any) -> bool:
    """Whether a value has two texts by the codes of their languages."""
    return (
        isinstance(value, Mapping)
        and len(value) == 2
        and all(LANGUAGE.fullmatch(str(key)) for key in value)
        and all(isinstance(text, str) for text in value.values())
    )


def _label_studio(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a task with the spans and the class of an annotation, `ground_truth` if any.

    Both are None if nobody annotated it.
    """
    annotations = [a for a in task["annotations"] if not a.get("was_cancelled")]
    annotations.sort(key=lambda annotation: not annotation.get("ground_truth"))
    record = {**task["data"], "id": task.get("id"), "spans": None, "label": None}
    if annotations:
        values = [result.get("value", {}) for result in annotations[0].get("result") or []]
        record["spans"] = [_with_label(value) for value in values if _has_labels(value)]
        record["label"] = _only([c for value in values for c in value.get("choices", [])])
    return record


def _with_label(mention: Mapping[str, Any]) -> dict[str, Any]:
    return {**mention, "label": next(iter(mention["labels"]), None)}


def _label_studio_min(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A flat task; the export leaves the field of spans out if there is none.

    Cells of its CSV hold lists and objects as JSON.
    """
    record = {key: _parsed(value) for key, value in record.items()}
    mentions: Any = next((value for value in record.values() if _all(value, _has_labels)), [])
    choices = {k: _only(v["choices"]) for k, v in record.items() if _has(choices=list)(_dict(v))}
    return {**record, **choices, "spans": [_with_label(mention) for mention in mentions]}


def _parsed(value: Any) -> Any:
    """The list or object of a JSON text; other values as they are."""
    if isinstance(value, str) and value.startswith(("[{", "{")):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _only(classes: Sequence[str]) -> str | None:
    """The only one of some classes, None without any. Raises RecordError for several."""
    if len(classes) > 1:
        raise RecordError("several classes", f"found {', '.join(classes)}; expected one")
    return classes[0] if classes else None


def _with_best_category(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The category with the highest score as the label; None without categories."""
    cats = record["cats"]
    return {**record, "label": max(cats, key=cats.__getitem__, default=None)}


ADAPTERS = (
    Adapter("Label Studio", _has(data=Mapping, annotations=list), _label_studio),
    Adapter(
        "Label Studio JSON-MIN",
        lambda record: {"annotation_id", "annotator"} <= record.keys(),
        _label_studio_min,
    ),
    Adapter(
        "Prodigy",
        lambda record: "text" in record and record.get("answer") in ("reject", "ignore"),
        lambda record: {**record, "spans": None, "label": None, "accept": []},
    ),
    Adapter(
        "Prodigy choices",
        _has(options=list, accept=list),
        lambda record: {**record, "label": _only(record["accept"])},
    ),
    Adapter(
        "Doccano classes",
        lambda record: _class_names(record) is not None,
        lambda record: {**record, "label": _only(_class_names(record) or [])},
    ),
    Adapter(
        "Doccano spans",
        _has_list(_is_triple),
        _each(
            _is_triple, lambda triple: dict(zip(("start", "end", "label"), triple, strict=False))
        ),
    ),
    Adapter("spaCy categories", _has(cats=Mapping), _with_best_category),
    Adapter(
        "OPUS",
        lambda record: any(map(_is_pair, record.values())),
        lambda record: {
            **record,
            **{k: text for v in record.values() if _is_pair(v) for k, text in v.items()},
        },
    ),
    Adapter(
        "ShareGPT",
        _has_list(_is_turn),
        _each(
            _is_turn,
            lambda turn: {"role": ROLES.get(turn["from"], turn["from"]), "content": turn["value"]},
        ),
    ),
)
