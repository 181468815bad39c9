"""A small file of every format that `wxb new corpus` recognizes, with its records."""

import csv
import importlib.util
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


class Case(NamedTuple):
    """A format, its files by path, the task, the records, and the path that is given."""

    name: str
    files: dict[str, Any]
    task: str
    records: list[tuple[str, Any]]
    path: str = "own"


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


CASES = [
    Case(
        "Doccano",
        {"own.jsonl": as_lines({"id": n, "text": t, "label": triples(s)} for n, (t, s) in
                               enumerate(NER))},
        "ner", NER, "own.jsonl",
    ),
    Case(
        "Doccano, classes",
        {"own.jsonl": as_lines({"text": t, "label": [name]} for t, name in CLASSIFIED)},
        "classification", CLASSIFIED, "own.jsonl",
    ),
    Case(
        "Prodigy",
        {"own.jsonl": of_prodigy([
            {"text": t, "spans": [{"start": a, "end": b, "label": c} for a, b, c in s]}
            for t, s in NER
        ])},
        "ner", unlabelled(NER), "own.jsonl",
    ),
    Case(
        "Prodigy, classes",
        {"own.jsonl": of_prodigy([{"text": t, "label": name} for t, name in CLASSIFIED])},
        "classification", unlabelled(CLASSIFIED), "own.jsonl",
    ),
    Case(
        "Prodigy, choices",
        {"own.jsonl": of_prodigy([
            {"text": t, "options": [{"id": "good"}, {"id": "bad"}], "accept": [name]}
            for t, name in CLASSIFIED
        ])},
        "classification", unlabelled(CLASSIFIED), "own.jsonl",
    ),
    Case(
        "spaCy tuples",
        {"own.json": as_json([[t, {"entities": triples(s)}] for t, s in NER])},
        "ner", NER, "own.json",
    ),
    Case(
        "spaCy tuples, wrapped",
        {"own.json": as_json({"classes": ["PER", "LOC"], "annotations": [
            [t, {"entities": triples(s)}] for t, s in NER
        ]})},
        "ner", NER, "own.json",
    ),
    Case(
        "spaCy tuples, categories",
        {"own.json": as_json([
            [t, {"cats": {"good": float(name == "good"), "bad": float(name == "bad")}}]
            for t, name in CLASSIFIED
        ])},
        "classification", CLASSIFIED, "own.json",
    ),
    Case("spaCy DocBin", {"own.spacy": docbin()}, "ner", NER, "own.spacy"),
    Case(
        "Label Studio JSON",
        {"own.json": label_studio(
            lambda _: [studio_span(23, 27, "LOC")], [(t, s[1:]) for t, s in NER]
        )},
        "ner", [*((t, s[1:]) for t, s in NER), ("No one.", None)], "own.json",
    ),
    Case(
        "Label Studio JSON, choices",
        {"own.json": label_studio(lambda name: [{"value": {"choices": [name]}}])},
        "classification", [*CLASSIFIED, ("No one.", None)], "own.json",
    ),
    Case(
        "Label Studio JSON-MIN",
        {"own.json": as_json([
            *({"id": n, "text": t, "label": [studio_min(a, b, t, c) for a, b, c in s],
               "annotator": 1, "annotation_id": n, "lead_time": 0.5} for n, (t, s) in
              enumerate(NER)),
            {"id": 99, "text": "No name.", "annotator": 1, "annotation_id": 99},
        ])},
        "ner", [*NER, ("No name.", [])], "own.json",
    ),
    Case(
        "Label Studio JSON-MIN, choices",
        {"own.json": as_json([
            {"id": n, "text": t, "sentiment": name, "annotator": 1, "annotation_id": n}
            for n, (t, name) in enumerate(CLASSIFIED)
        ])},
        "classification", CLASSIFIED, "own.json",
    ),
    Case(
        "Hugging Face, names of tags",
        {"own.jsonl": as_lines({"id": str(n), "tokens": t, "ner_tags": TAGS} for n, t in
                               enumerate(TOKENS))},
        "ner", TOKENIZED, "own.jsonl",
    ),
    Case(
        "Hugging Face, dataset_info.json",
        {
            "own/train.jsonl": as_lines({"tokens": t, "ner_tags": TAG_IDS} for t in TOKENS),
            "own/dataset_info.json": as_json({"features": FEATURES}),
        },
        "ner", TOKENIZED,
    ),
    Case(
        "Hugging Face, Parquet",
        {"own.parquet": parquet([{"tokens": t, "ner_tags": TAG_IDS} for t in TOKENS])},
        "ner", TOKENIZED, "own.parquet",
    ),
    Case(
        "Hugging Face, save_to_disk",
        {
            "own/dataset_dict.json": as_json({"splits": ["train"]}),
            "own/train/data-00000-of-00001.arrow": stream(
                [{"text": t, "label": int(name == "good")} for t, name in CLASSIFIED]
            ),
            "own/train/dataset_info.json": as_json({"features": FEATURES}),
            "own/train/state.json": as_json({"_split": "train"}),
        },
        "classification", CLASSIFIED,
    ),
    Case(
        "OPUS",
        {"own.jsonl": as_lines({"id": str(n), "translation": {"en": t, "zh": c}} for n, (t, (c,)) in
                               enumerate(PAIRS))},
        "translation", PAIRS, "own.jsonl",
    ),
    Case(
        "Moses",
        {
            "own/news.en": "\n".join(TEXTS) + "\n",
            "own/news.zh": "\n".join(CHINESE) + "\n",
            "own/README": "From the web.",
        },
        "translation", PAIRS,
    ),
    Case(
        "ShareGPT",
        {"own.json": as_json([
            {"id": f"c{n}", "conversations": [
                {"from": "human", "value": question}, {"from": "gpt", "value": answer}
            ]} for n, (question, answer) in enumerate(QUESTIONS)
        ])},
        "chat", QUESTIONS, "own.json",
    ),
    Case(
        "OpenAI messages",
        {"own.jsonl": as_lines(
            {"messages": [
                {"role": "user", "content": question}, {"role": "assistant", "content": answer}
            ]} for question, answer in QUESTIONS
        )},
        "chat", QUESTIONS, "own.jsonl",
    ),
    Case(
        "fastText",
        {"own.txt": "".join(f"__label__{name} {t}\n" for t, name in CLASSIFIED)},
        "classification", CLASSIFIED, "own.txt",
    ),
    Case(
        "CSV without a header",
        {"own.csv": as_table((n, name, t) for n, (t, name) in enumerate(CLASSIFIED))},
        "classification", CLASSIFIED, "own.csv",
    ),
    Case(
        "CSV without a header, several texts",
        {
            "own.csv": as_table(
                (name, f"{person} moved", f"{t} It was a long day.")
                for person, (t, name) in zip(NAMES, CLASSIFIED, strict=True)
            )
        },
        "classification",
        [(f"{t} It was a long day.", name) for t, name in CLASSIFIED],
        "own.csv",
    ),
    Case(
        "TSV without a header",
        {"own.tsv": "".join(f'{name}\t"{t}", so\n' for t, name in CLASSIFIED)},
        "classification", [(f'"{t}", so', name) for t, name in CLASSIFIED], "own.tsv",
    ),
    Case(
        "TSV without a header, pairs",
        {"own.tsv": as_table(((t, c) for t, (c,) in PAIRS), "\t")},
        "translation", PAIRS, "own.tsv",
    ),
    Case(
        "lines with tabs",
        {"own.txt": "".join(f"{name}\t{t}\n" for t, name in CLASSIFIED)},
        "classification", CLASSIFIED, "own.txt",
    ),
    Case(
        "ratings",
        {"own.json": as_lines(
            {"overall": float(rating), "reviewText": t, "reviewerID": f"R{n}"}
            for n, (t, rating) in enumerate(RATED)
        )},
        "classification", RATED, "own.json",
    ),
    Case(
        "a folder for each class",
        {f"own/{path}": text for path, text in folders("").items()},
        "classification", [(f"{t} ", name) for t, name in CLASSIFIED],
    ),
    Case(
        "aclImdb",
        {
            **{f"own/{path}": text for path, text in folders("train/", "test/").items()},
            **{f"own/train/unsup/{n}.txt": f"Who knows {name}?" for n, name in enumerate(NAMES)},
            "own/train/urls_pos.txt": "http://www.imdb.com/title/tt0000001\n" * 5,
            "own/README": "Reviews.",
        },
        "classification",
        [
            *((f"{t} {root}", name) for root in ("test/", "train/") for t, name in CLASSIFIED),
            *((f"Who knows {name}?", None) for name in NAMES),
        ],
    ),
    Case(
        "cp1252 with semicolons",
        {"own.csv": as_table(
            [("Text", "Klasse", "label"),
             *((f"Gestern zog {t}; für Müller sehr schön", "x", name) for t, name in CLASSIFIED)],
            ";", "cp1252",
        )},
        "classification",
        [(f"Gestern zog {t}; für Müller sehr schön", name) for t, name in CLASSIFIED],
        "own.csv",
    ),
    Case(
        "one JSON a document",
        {f"own/{n}.json": as_json({"text": t, "entities": triples(s)})
         for n, (t, s) in enumerate(NER)},
        "ner", NER,
    ),
    Case(
        "reviews with a word like a tag",
        {**{f"own/{path}": text for path, text in folders("").items()},
         "own/good/99.txt": "Of all B-movies, the best."},
        "classification",
        [*((f"{t} ", name) for t, name in CLASSIFIED), ("Of all B-movies, the best.", "good")],
    ),
]  # fmt: skip


def write(files):
    """Write files by path; skips the test if a file needs spaCy."""
    for name, content in files.items():
        if content is None:
            pytest.skip("spaCy is not installed: pip install -e '.[benchmarks]'")
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
