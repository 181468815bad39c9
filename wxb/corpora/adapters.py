"""Adapters: convert the records of annotation tools and hubs to objects with plain fields.

Each adapter tests the keys of a record, and returns it unchanged if it is of another tool. The
readers of tasks see only the converted records.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from wxb.corpora.records import RecordError

Content = Mapping[str, Any]

# The roles of ShareGPT by the roles of OpenAI's messages.
ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant"}

# Fields that adapters read, and those that are no fields of a file.
ANNOTATOR = ("annotator", "annotator_id", "_annotator_id", "_session_id", "worker_id", "rater_id")
CLASS = "_class"  # of a file or line
CONTROLS = "_controls"  # the names of Label Studio's controls that chose the class
READ = ("cats", "options", "accept", "answer", CLASS, CONTROLS, *ANNOTATOR)
MIN_KEYS = {"annotation_id", "annotator"}  # of Label Studio's JSON-MIN and CSV
ANNOTATORS, OTHER = "several annotators", "other annotator"  # reasons of rejects
LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{2,4})?")  # a code such as en or zh_TW


def adapt(content: Any, annotator: str | None = None) -> Any:
    """Convert a tool's record, or spaCy's pair, to plain fields; return any other unchanged.

    If `annotator` is given, annotations by others do not count. Raises RecordError for several
    classes, spans in several texts, an answer to a single span, and annotations that differ or are
    all by others. Errors such as TypeError mean that a record is not as its tool writes it.
    """
    match content:
        case [str(text), Mapping() as labels]:  # spaCy's `[text, {"entities": ..., "cats": ...}]`
            content = {"text": text, **labels}
    if isinstance(content, Mapping):
        if annotator and annotator_of(content) not in (None, annotator):
            raise RecordError(OTHER, f"found {annotator_of(content)}")
        content = _label_studio_min(_label_studio(content, annotator))
        for adapter in ADAPTERS:
            content = adapter(content)
    return content


def annotator_of(record: Content) -> str | None:
    """The annotator, as text, in the first field of ANNOTATOR that is set; None if none is."""
    return next((str(record[key]) for key in ANNOTATOR if record.get(key) is not None), None)


def _label_studio(record: Content, annotator: str | None) -> Content:
    """The `data` of a task with id, spans, class, controls and text areas; other records unchanged.

    Skips cancelled annotations, those by others than `annotator` if that is given, and, if one is
    `ground_truth`, those that are not. If none is left, spans and class are None. Raises
    RecordError if annotations differ, choose several classes, or are all by others.
    """
    data, annotations = record.get("data"), record.get("annotations")
    if not (isinstance(data, Mapping) and isinstance(annotations, list)):
        return record
    task = {**data, "id": record.get("id"), "spans": None, "label": None}
    annotations = [a for a in annotations if not a.get("was_cancelled")]
    names = {_annotator_id(annotation) for annotation in annotations}
    if annotator and names and annotator not in names:
        raise RecordError(OTHER, f"found {', '.join(sorted(names))}")
    annotations = [a for a in annotations if annotator in (None, _annotator_id(a))]
    results: dict[str, tuple[Any, Any, Any]] = {}
    for annotation in [a for a in annotations if a.get("ground_truth")] or annotations:
        name, result = _annotator_id(annotation), _label_studio_result(annotation)
        if results.setdefault(name, result) != result:
            raise RecordError(ANNOTATORS, f"two annotations of {name} differ; keep one")
    if not results:
        return task
    (mentions, classes, texts), *others = results.values()
    if any(result != (mentions, classes, texts) for result in others):
        raise RecordError(ANNOTATORS, f"found {', '.join(sorted(results))}; name one")
    controls = sorted({str(control) for control, _ in classes})
    label = _at_most_one([name for _, name in classes])
    return {**task, "spans": mentions, CONTROLS: controls, "label": label, **texts}


def _label_studio_result(annotation: Content) -> tuple[list[Content], list[Any], dict[str, str]]:
    """The spans, pairs of control and class, and text areas by name of an annotation.

    Skips the classes and text areas of single spans. Raises RecordError for spans of several texts,
    and for a span with several labels.
    """
    regions = annotation.get("result") or []
    marked = [region for region in regions if _is_labelled_span(region.get("value"))]
    mentions = [_with_label(region["value"]) for region in marked]
    texts = {str(region.get("to_name")) for region in marked}
    if len(texts) > 1:
        raise RecordError("several texts", f"spans of {', '.join(sorted(texts))}; keep one")
    others = [region for region in regions if "start" not in region.get("value", {})]
    classes = [
        (region.get("from_name"), name)
        for region in others
        for name in region.get("value", {}).get("choices", [])
    ]
    areas = [region for region in others if region.get("type") == "textarea"]
    return mentions, classes, {a["from_name"]: "\n".join(a["value"]["text"]) for a in areas}


def _annotator_id(annotation: Content) -> str:
    name = annotation.get("completed_by")
    return str(name.get("id") if isinstance(name, Mapping) else name)


def _label_studio_min(record: Content) -> Content:
    """Parse cells of JSON-MIN or CSV, collect `spans`, and replace choices by their only class."""
    if not record.keys() >= MIN_KEYS:
        return record
    record = {key: parse_json_cell(value) for key, value in record.items()}
    mentions = [m for v in record.values() if _is_list_of(v, _is_labelled_span) for m in v]
    choices = {
        key: _at_most_one(value["choices"])
        for key, value in record.items()
        if isinstance(value, Mapping) and isinstance(value.get("choices"), list)
    }
    return {**record, **choices, "spans": [_with_label(mention) for mention in mentions]}


def _prodigy(record: Content) -> Content:
    """Set the class to the chosen option; spans and class of rejected or ignored texts are None.

    An ignored `answer` becomes None. Raises RecordError for two options or an answer to one span.
    """
    if record.get("_is_binary") and record.get("spans"):
        raise RecordError("answer to one span", "list all of a text by `ner.silver-to-gold`")
    if "text" in record and record.get("answer") in ("reject", "ignore"):
        answer = "reject" if record["answer"] == "reject" else None  # a class by --gold answer
        record = {**record, "spans": None, "label": None, "accept": [], "answer": answer}
    if isinstance(record.get("options"), list) and isinstance(record.get("accept"), list):
        record = {**record, "label": _at_most_one(record["accept"])}
    return record


def _doccano(record: Content) -> Content:
    """Replace triples by objects of `start`, `end`, `label`; `label` is a text's only class."""
    lists = [record.get(key) for key in ("label", "labels")]
    names = next((v for v in lists if _is_list_of(v, lambda name: isinstance(name, str))), None)
    if names is None and record.get("labels") == []:
        names = []
    if names is not None and "text" in record and not {"tokens", "words"} & record.keys():
        record = {**record, "label": _at_most_one(names)}
    keys = {int: ("start", "end", "label"), str: ("label", "start", "end")}
    return _convert_items(
        record, _has_offsets_first, lambda t: dict(zip(keys[type(t[0])], t, strict=False))
    )


def _gliner(record: Content) -> Content:
    """Replace `tokenized_text` and its spans, whose ends are inclusive, by `tokens` and tags."""
    tokens, mentions = record.get("tokenized_text"), record.get("ner")
    if not (isinstance(tokens, list) and isinstance(mentions, list)):
        return record
    tags = ["O"] * len(tokens)
    for first, last, name in dict.fromkeys(map(tuple, mentions)):
        detail = f"{name} at tokens {first} to {last} of {len(tokens)}"
        if not 0 <= first <= last < len(tokens):
            raise RecordError("offsets out of range", detail)
        if {"O"} != {*tags[first : last + 1]}:
            raise RecordError("nested spans", detail)
        tags[first : last + 1] = ["B-" + name, *["I-" + name] * (last - first)]
    others = {key: value for key, value in record.items() if key not in ("tokenized_text", "ner")}
    return {**others, "tokens": tokens, "ner_tags": tags}


def _cluener(record: Content) -> Content:
    """Replace `{type: {mention: [[start, inclusive end]]}}` by objects."""
    types = record.get("label")
    if "text" not in record or not isinstance(types, Mapping):
        return record
    if not all(isinstance(by_mention, Mapping) for by_mention in types.values()):
        return record
    mentions = [
        {"start": start, "end": last + 1, "label": name, "text": mention}
        for name, by_mention in types.items()
        for mention, offsets in by_mention.items()
        for start, last in offsets
    ]
    return {**record, "label": mentions}


def _datasets_spans(record: Content) -> Content:
    """Convert the spans of `datasets`, objects of equally long lists, to lists of objects."""
    lists = {key: value for key, value in record.items() if _is_object_of_span_columns(value)}
    for key, value in lists.items():
        rows = zip(*value.values(), strict=True)
        lists[key] = [dict(zip(value, row, strict=True)) for row in rows]
    return {**record, **lists}


def _spacy_cats(record: Content) -> Content:
    """If there are `cats`, set `label` to the highest, or None if it is 0. RecordError for ties."""
    cats = record.get("cats")
    if not isinstance(cats, Mapping):
        return record
    best = max(cats.values(), default=0)
    return {**record, "label": _at_most_one([n for n, score in cats.items() if 0 < score == best])}


def _opus(record: Content) -> Content:
    """Replace `translation` by its texts as fields named after their language codes."""
    pair = record.get("translation")
    if not isinstance(pair, Mapping) or not pair:
        return record
    if not all(LANGUAGE.fullmatch(str(k)) and isinstance(text, str) for k, text in pair.items()):
        return record
    return {**{key: value for key, value in record.items() if key != "translation"}, **pair}


def _sharegpt(record: Content) -> Content:
    """Add the `role` and `content` of OpenAI's messages to the turns in any list of them."""
    return _convert_items(
        record,
        lambda t: isinstance(t, Mapping) and {"from", "value"} <= t.keys(),
        lambda t: {**t, "role": ROLES.get(t["from"], t["from"]), "content": t["value"]},
    )


def _datasets_audio_path(record: Content) -> Content:
    """Replace `audio` of `datasets` by its path, unless it holds the recording itself."""
    audio: Any = record.get("audio")
    has_path = isinstance(audio, Mapping) and audio.get("path") and not audio.get("bytes")
    return {**record, "audio": audio["path"]} if has_path else record


ADAPTERS = (
    _prodigy,
    _gliner,
    _cluener,
    _datasets_spans,
    _datasets_audio_path,
    _doccano,
    _spacy_cats,
    _opus,
    _sharegpt,
)


def _convert_items(
    record: Content, test: Callable[[Any], bool], convert: Callable[[Any], Any]
) -> Content:
    """The record with converted items of each list whose items all pass a test."""
    return {
        key: [convert(item) for item in value] if _is_list_of(value, test) else value
        for key, value in record.items()
    }


def _is_list_of(value: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(test, value))


def _has_offsets_first(mention: Any) -> bool:  # two integers and a text, first in Argilla
    types = [*map(type, mention[:3])] if isinstance(mention, list | tuple) else []
    return types in ([int, int, str], [str, int, int])


def _is_object_of_span_columns(value: Any) -> bool:  # equal lists, one with "start" in its key
    if not isinstance(value, Mapping) or not any("start" in str(key) for key in value):
        return False
    lengths = {len(each) if isinstance(each, list) else None for each in value.values()}
    return len(lengths) == 1 and None not in lengths


def _is_labelled_span(mention: Any) -> bool:
    return isinstance(mention, Mapping) and {"start", "end", "labels"} <= mention.keys()


def _with_label(mention: Content) -> Content:
    return {**mention, "label": _at_most_one(mention["labels"])}


def parse_json_cell(value: Any) -> Any:
    """Parse the JSON of an object or of a list that begins with one; return others unchanged."""
    if isinstance(value, str) and re.match(r"\s*(\[\s*)?\{", value):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _at_most_one(classes: Sequence[str]) -> str | None:
    """The only one of some classes, None without any. Raises RecordError for several."""
    if len(classes) > 1:
        raise RecordError("several classes", f"found {', '.join(classes)}; expected one")
    return classes[0] if classes else None
