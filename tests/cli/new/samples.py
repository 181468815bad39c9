"""Records and files of many formats, for tests of what `wxb new corpus` recognizes."""

import csv
import importlib.util
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ["Ann", "Bob", "Eve", "Joe", "Kim", "Max", "Sue", "Tom", "Ida", "Leo", "Uma", "Zoe"]
TEXTS = [f"Yesterday {name} moved to Rome." for name in NAMES]
SPANS = [[(10, 13, "PER"), (23, 27, "LOC")]] * len(NAMES)
NER = [*zip(TEXTS, SPANS, strict=True)]
TOKENS = [["Yesterday", name, "moved", "to", "Rome", "."] for name in NAMES]
TAGS = ["O", "B-PER", "O", "O", "B-LOC", "O"]
TAG_NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TAG_IDS = [TAG_NAMES.index(tag) for tag in TAGS]
TOKENIZED = [(" ".join(tokens), [(10, 13, "PER"), (23, 27, "LOC")]) for tokens in TOKENS]
CLASSES = ["good", "bad"] * 6
CLASSIFIED = [*zip(TEXTS, CLASSES, strict=True)]
RATED = [(text, "5" if name == "good" else "1") for text, name in CLASSIFIED]
CHINESE = [f"{name}昨天搬到罗马。" for name in NAMES]
PAIRS = [(text, (chinese,)) for text, chinese in zip(TEXTS, CHINESE, strict=True)]
QUESTIONS = [(f"Where is {name}?", f"{name} is in Rome.") for name in NAMES]
FEATURES = {
    "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
    "ner_tags": {"feature": {"names": TAG_NAMES, "_type": "ClassLabel"}, "_type": "List"},
    "label": {"names": ["bad", "good"], "_type": "ClassLabel"},
}


def as_json(rows):
    return json.dumps(rows, ensure_ascii=False)


def as_lines(rows):
    return "".join(f"{as_json(row)}\n" for row in rows)


def as_table(rows, delimiter=",", encoding="utf-8"):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode(encoding)


def label_studio(result, rows=CLASSIFIED):
    """Tasks of Label Studio's JSON; the last one has a cancelled annotation only."""
    done = [
        {"id": n, "data": {"text": text}, "annotations": [{"result": result(value)}]}
        for n, (text, value) in enumerate(rows, start=1)
    ]
    cancelled = {"was_cancelled": True, "result": result(rows[0][1])}
    return as_json([*done, {"id": 99, "data": {"text": "No one."}, "annotations": [cancelled]}])


def studio_span(start, end, name):
    value = {"start": start, "end": end, "text": TEXTS[0][start:end], "labels": [name]}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}


def studio_min(start, end, text, name):
    return {"start": start, "end": end, "text": text[start:end], "labels": [name]}


def triples(spans):
    return [list(span) for span in spans]


def of_prodigy(rows):
    """Records of Prodigy, of which the first is rejected and the second ignored."""
    answers = ["reject", "ignore", *["accept"] * len(rows)]
    return as_lines({**row, "answer": answer} for row, answer in zip(rows, answers, strict=False))


def unlabelled(rows, count=2):
    return [(text, None) for text, _ in rows[:count]] + rows[count:]


def arrow(rows, features=FEATURES):
    """An Arrow table with the metadata that `datasets` writes."""
    table = pa.Table.from_pylist(rows)
    used = {name: features[name] for name in table.column_names if name in features}
    metadata = {"huggingface": json.dumps({"info": {"features": used}})}
    return table.replace_schema_metadata(metadata)


def stream(rows):
    sink = io.BytesIO()
    table = arrow(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet(rows):
    sink = io.BytesIO()
    pq.write_table(arrow(rows), sink)
    return sink.getvalue()


def docbin():
    """Documents of spaCy; None without it."""
    if importlib.util.find_spec("spacy") is None:
        return None
    import spacy
    from spacy.tokens import DocBin

    nlp, docs = spacy.blank("en"), []
    for text, spans in NER:
        doc = nlp(text)
        doc.ents = [doc.char_span(start, end, label=name) for start, end, name in spans]
        docs.append(doc)
    return DocBin(docs=docs).to_bytes()


def folders(*roots):
    """A file for each text, in a folder for each class, below each root."""
    return {
        f"{root}{name}/{n}.txt": f"{text} {root}" for root in roots for n, (text, name) in
        enumerate(CLASSIFIED)
    }  # fmt: skip
