"""A small file of every format that `wxb new corpus` recognizes, with its records."""

import csv
import io
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ["Ann", "Bob", "Eve", "Joe", "Kim", "Max", "Sue", "Tom", "Ida", "Leo", "Uma", "Zoe"]
TEXTS = [f"Yesterday {name} moved to Rome." for name in NAMES]
NER = [(text, [(10, 13, "PER"), (23, 27, "LOC")]) for text in TEXTS]
TOKENS = [["Yesterday", name, "moved", "to", "Rome", "."] for name in NAMES]
TAGS = ["O", "B-PER", "O", "O", "B-LOC", "O"]
TAG_NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TAG_IDS = [TAG_NAMES.index(tag) for tag in TAGS]
TOKENIZED = [(" ".join(tokens), [(10, 13, "PER"), (23, 27, "LOC")]) for tokens in TOKENS]
CLASSIFIED = [*zip(TEXTS, ["good", "bad"] * 6, strict=True)]
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


def studio(result):
    """Tasks of Label Studio's JSON; the last one has a cancelled annotation only."""
    done = [
        {"id": n, "data": {"text": text}, "annotations": [{"result": [{"value": result(name)}]}]}
        for n, (text, name) in enumerate(CLASSIFIED, start=1)
    ]
    cancelled = {"was_cancelled": True, "result": []}
    return as_json([*done, {"id": 99, "data": {"text": "No one."}, "annotations": [cancelled]}])


def keyed(spans, text=None):
    """Spans as objects; with a text as those of Label Studio."""
    return [
        {"start": a, "end": b, **({"text": text[a:b], "labels": [c]} if text else {"label": c})}
        for a, b, c in spans
    ]


def prodigy(rows):
    """Records of Prodigy, of which the first is rejected and the second ignored."""
    answers = ["reject", "ignore", *["accept"] * len(rows)]
    return as_lines({**row, "answer": answer} for row, answer in zip(rows, answers, strict=False))


def unlabelled(rows):
    return [(text, None) for text, _ in rows[:2]] + rows[2:]


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


def folders(*roots):
    """A file for each text, in a folder for each class, below each root."""
    return {
        f"{root}{name}/{n}.txt": f"{text} {root}" for root in roots for n, (text, name) in
        enumerate(CLASSIFIED)
    }  # fmt: skip


class Case(NamedTuple):
    """A format, its task, its records, its files by path, and the path and flags that are given."""

    name: str
    task: str
    records: list[tuple[str, Any]]
    files: dict[str, Any]
    path: str = "own"
    flags: Mapping[str, str] = MappingProxyType({})


def file(name, task, records, path, content, **flags):
    """A case of one file."""
    return Case(name, task, records, {path: content}, path, flags)


NUMBERED = [*enumerate(NER)]
NO_ONE, NO_NAME = ("No one.", None), ("No name.", [])
CASES = [
    file("Doccano", "ner", NER, "own.jsonl",
         as_lines({"id": n, "text": t, "label": s} for n, (t, s) in NUMBERED)),
    file("Doccano, classes", "classification", [*CLASSIFIED, NO_ONE], "own.jsonl",
         as_lines({"text": t, "label": [c] if c else []} for t, c in [*CLASSIFIED, NO_ONE])),
    file("Doccano, old classes", "classification", [*CLASSIFIED, NO_ONE], "own.jsonl",
         as_lines({"text": t, "labels": [c] if c else []} for t, c in [*CLASSIFIED, NO_ONE])),
    file("Prodigy", "ner", unlabelled(NER), "own.jsonl",
         prodigy([{"text": t, "spans": keyed(s)} for t, s in NER])),
    file("Prodigy, classes", "classification", unlabelled(CLASSIFIED), "own.jsonl",
         prodigy([{"text": t, "label": c} for t, c in CLASSIFIED])),
    file("Prodigy, choices", "classification", unlabelled(CLASSIFIED), "own.jsonl",
         prodigy([{"text": t, "options": [{"id": "good"}, {"id": "bad"}], "accept": [c]}
                  for t, c in CLASSIFIED])),
    file("spaCy tuples", "ner", NER, "own.json",
         as_json([[t, {"entities": s}] for t, s in NER])),
    file("spaCy tuples, categories", "classification", CLASSIFIED, "own.json",
         as_json([[t, {"cats": {"good": float(c == "good"), "bad": float(c == "bad")}}]
                  for t, c in CLASSIFIED])),
    file("spaCy Doc.to_json", "ner", NER, "own.jsonl",
         as_lines({"text": t, "ents": keyed(s), "tokens": [{"id": 0}]} for t, s in NER)),
    file("Label Studio JSON", "ner", [*((t, s[1:]) for t, s in NER), NO_ONE], "own.json",
         studio(lambda _: {"start": 23, "end": 27, "text": "Rome", "labels": ["LOC"]})),
    file("Label Studio JSON, choices", "classification", [*CLASSIFIED, NO_ONE], "own.json",
         studio(lambda name: {"choices": [name]})),
    file("Label Studio JSON-MIN", "ner", [*NER, NO_NAME], "own.json",
         as_json([*({"id": n, "text": t, "label": keyed(s[:1], t), "other": keyed(s[1:], t),
                     "annotator": 1, "annotation_id": n} for n, (t, s) in NUMBERED),
                  {"id": 99, "text": "No name.", "annotator": 1, "annotation_id": 99}])),
    file("Label Studio JSON-MIN, choices", "classification", CLASSIFIED, "own.json",
         as_json([{"id": n, "text": t, "sentiment": c, "annotator": 1, "annotation_id": n}
                  for n, (t, c) in enumerate(CLASSIFIED)])),
    file("Label Studio CSV", "ner", [*NER, NO_NAME], "own.csv",
         as_table([("text", "id", "label", "annotator", "annotation_id"),
                   *((t, n, as_json(keyed(s, t)), 1, n) for n, (t, s) in NUMBERED),
                   ("No name.", 99, "", 1, 99)])),
    file("Hugging Face, names of tags", "ner", TOKENIZED, "own.jsonl",
         as_lines({"id": str(n), "tokens": t, "ner_tags": TAGS} for n, t in enumerate(TOKENS))),
    Case("columns with comments and a description", "ner", TOKENIZED,
         {"own/README.md": "Names of people.", "own/train.conll": "".join(
             f"# id = {n}\n# text = Ann is of type O\n"
             + "".join(f"{token}\t{tag}\n" for token, tag in zip(t, TAGS, strict=True)) + "\n"
             for n, t in enumerate(TOKENS))}),
    Case("Hugging Face, dataset_info.json", "ner", TOKENIZED,
         {"own/train.jsonl": as_lines({"tokens": t, "ner_tags": TAG_IDS} for t in TOKENS),
          "own/dataset_info.json": as_json({"features": FEATURES})}),
    file("Hugging Face, Parquet", "ner", TOKENIZED, "own.parquet",
         parquet([{"tokens": t, "ner_tags": TAG_IDS} for t in TOKENS])),
    Case("Hugging Face, save_to_disk", "classification", CLASSIFIED,
         {"own/dataset_dict.json": as_json({"splits": ["train"]}),
          "own/train/data-00000-of-00001.arrow": stream(
              [{"text": t, "label": int(c == "good")} for t, c in CLASSIFIED]),
          "own/train/dataset_info.json": as_json({"features": FEATURES}),
          "own/train/state.json": as_json({"_split": "train"})}),
    Case("Hugging Face, CSV with dataset_info.json", "classification", CLASSIFIED,
         {"own/train.csv": as_table([("text", "label"), *((t, int(c == "good"))
                                                          for t, c in CLASSIFIED)]),
          "own/dataset_info.json": as_json({"features": FEATURES})}),
    file("OPUS", "translation", PAIRS, "own.jsonl",
         as_lines({"translation": {"en": t, "zh": c}} for t, (c,) in PAIRS)),
    Case("Moses", "translation", PAIRS,
         {"own/news.en": "\n".join(TEXTS) + "\n", "own/news.zh": "\n".join(CHINESE) + "\n",
          "own/README": "From the web."}),
    file("ShareGPT", "chat", QUESTIONS, "own.json",
         as_json([{"id": f"c{n}", "conversations": [
             {"from": "human", "value": question}, {"from": "gpt", "value": answer}]}
             for n, (question, answer) in enumerate(QUESTIONS)])),
    file("OpenAI messages", "chat", QUESTIONS, "own.jsonl",
         as_lines({"messages": [{"role": "user", "content": question},
                                {"role": "assistant", "content": answer}]}
                  for question, answer in QUESTIONS)),
    file("fastText", "classification", CLASSIFIED, "own.txt",
         "".join(f"__label__{c} {t}\n" for t, c in CLASSIFIED)),
    file("CSV without a header", "classification", CLASSIFIED, "own.csv",
         as_table((n, c, t) for n, (t, c) in enumerate(CLASSIFIED)), columns="id,label,text"),
    file("TSV without a header", "translation", [(f'"{t}", so', c) for t, c in PAIRS], "own.tsv",
         "".join(f'"{t}", so\t{c}\n' for t, (c,) in PAIRS), columns="source,target"),
    file("Tatoeba", "translation", PAIRS, "own.txt",
         "".join(f"{t}\t{c}\tCC-BY 2.0 (France) #{n}\n" for n, (t, (c,)) in enumerate(PAIRS))),
    file("lines with tabs", "classification", CLASSIFIED, "own.txt",
         "".join(f"{c}\t{t}\n" for t, c in CLASSIFIED), columns="label,text"),
    file("ratings", "classification", RATED, "own.json",
         as_lines({"overall": float(rating), "reviewText": t} for t, rating in RATED)),
    Case("aclImdb", "classification",
         [*((f"{t} {root}", c) for root in ("test/", "train/") for t, c in CLASSIFIED),
          *((f"Who knows {name}?", None) for name in NAMES)],
         {**{f"own/{path}": text for path, text in folders("train/", "test/").items()},
          **{f"own/train/unsup/{n}.txt": f"Who knows {name}?" for n, name in enumerate(NAMES)},
          "own/train/urls_pos.txt": "http://www.imdb.com/title/tt0000001\n" * 5,
          "own/README": "Reviews."}),
    Case("a folder for each class, with a word like a tag", "classification",
         [*((f"{t} ", c) for t, c in CLASSIFIED), ("Of all B-movies, the best.", "good")],
         {**{f"own/{path}": text for path, text in folders("").items()},
          "own/good/99.txt": "Of all B-movies, the best."}),
    file("cp1252 with semicolons", "classification",
         [(f"{t} Für Müller sehr schön; ja", c) for t, c in CLASSIFIED], "own.csv",
         as_table([("Text", "Klasse"), *((f"{t} Für Müller sehr schön; ja", c)
                   for t, c in CLASSIFIED)], ";", "cp1252")),
    file("records by id", "classification", CLASSIFIED, "own.json",
         as_json({f"d{n}": {"text": t, "label": c} for n, (t, c) in enumerate(CLASSIFIED)})),
    Case("one JSON a document", "ner", NER,
         {f"own/{n}.json": as_json({"text": t, "entities": s}) for n, (t, s) in NUMBERED}),
]  # fmt: skip
