"""A small file of every format that `wxb new corpus` recognizes, with its records."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.cli.new.samples import (
    CHINESE,
    CLASSIFIED,
    FEATURES,
    NAMES,
    NER,
    PAIRS,
    QUESTIONS,
    RATED,
    TAG_IDS,
    TAGS,
    TEXTS,
    TOKENIZED,
    TOKENS,
    as_json,
    as_lines,
    as_table,
    docbin,
    folders,
    label_studio,
    of_prodigy,
    parquet,
    stream,
    studio_min,
    studio_span,
    triples,
    unlabelled,
)


class Case(NamedTuple):
    """A format, its files by path, the task, the records, and the path and flags that are given."""

    name: str
    files: dict[str, Any]
    task: str
    records: list[tuple[str, Any]]
    path: str = "own"
    flags: Mapping[str, str] = MappingProxyType({})


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
        "Doccano, classes before version 1.0",
        {"own.jsonl": as_lines(
            [*({"text": t, "labels": [name]} for t, name in CLASSIFIED),
             {"text": "No one.", "labels": []}]
        )},
        "classification", [*CLASSIFIED, ("No one.", None)], "own.jsonl",
    ),
    Case(
        "Doccano, texts without a class",
        {"own.jsonl": as_lines(
            [*({"data": t, "label": name} for t, name in CLASSIFIED),
             {"data": "No one.", "label": []}]
        )},
        "classification", [*CLASSIFIED, ("No one.", None)], "own.jsonl",
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
        "Label Studio CSV",
        {"own.csv": as_table([
            ("text", "id", "label", "annotator", "annotation_id"),
            *((t, n, as_json([studio_min(a, b, t, c) for a, b, c in s]), 1, n)
              for n, (t, s) in enumerate(NER)),
            ("No name.", 99, "", 1, 99),
        ])},
        "ner", [*NER, ("No name.", [])], "own.csv",
    ),
    Case(
        "Hugging Face, names of tags",
        {"own.jsonl": as_lines({"id": str(n), "tokens": t, "ner_tags": TAGS} for n, t in
                               enumerate(TOKENS))},
        "ner", TOKENIZED, "own.jsonl",
    ),
    Case(
        "Hugging Face, tokens with their text",
        {"own.jsonl": as_lines({"text": " ".join(t), "tokens": t, "labels": TAGS} for t in TOKENS)},
        "ner", TOKENIZED, "own.jsonl",
    ),
    Case(
        "columns with comments and a description",
        {
            "own/train.conll": "".join(
                f"# id = {n}\n# text = Ann is of type O\n#\tO\n"
                + "".join(f"{token}\t{tag}\n" for token, tag in zip(t, TAGS, strict=True)) + "\n"
                for n, t in enumerate(TOKENS)
            ),
            "own/README.md": "Names of people.",
        },
        "ner", [(f"# {t}", [(a + 2, b + 2, c) for a, b, c in s]) for t, s in TOKENIZED],
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
        "classification", CLASSIFIED, "own.csv", {"columns": "id,label,text"},
    ),
    Case(
        "TSV without a header",
        {"own.tsv": "".join(f'{name}\t"{t}", so\n' for t, name in CLASSIFIED)},
        "classification", [(f'"{t}", so', name) for t, name in CLASSIFIED], "own.tsv",
        {"columns": "label,text"},
    ),
    Case(
        "TSV without a header, pairs",
        {"own.tsv": as_table(((t, c) for t, (c,) in PAIRS), "\t")},
        "translation", PAIRS, "own.tsv", {"columns": "source,target"},
    ),
    Case(
        "Tatoeba",
        {"own.txt": "".join(f"{t}\t{c}\tCC-BY 2.0 (France) #{n}\n" for n, (t, (c,)) in
                            enumerate(PAIRS))},
        "translation", PAIRS, "own.txt",
    ),
    Case(
        "lines with tabs",
        {"own.txt": "".join(f"{name}\t{t}\n" for t, name in CLASSIFIED)},
        "classification", CLASSIFIED, "own.txt", {"columns": "label,text"},
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
            [("Text", "Klasse", "Datum"),
             *((f"Gestern zog {t}; für Müller sehr schön", name, "x") for t, name in CLASSIFIED)],
            ";", "cp1252",
        )},
        "classification",
        [(f"Gestern zog {t}; für Müller sehr schön", name) for t, name in CLASSIFIED],
        "own.csv",
    ),
    Case(
        "cp1252 with German names",
        {"own.csv": as_table(
            [("Text", "Kategorie"), *((f"{t} Schön für Müller – 5 €", n) for t, n in CLASSIFIED)],
            ";", "cp1252",
        )},
        "classification",
        [(f"{t} Schön für Müller – 5 €", name) for t, name in CLASSIFIED],
        "own.csv",
    ),
    Case(
        "records by id",
        {"own.json": as_json({f"d{n}": {"text": t, "label": c} for n, (t, c) in
                              enumerate(CLASSIFIED)})},
        "classification", CLASSIFIED, "own.json",
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
