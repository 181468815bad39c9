"""Situations that people reported: records are read right, or refused with the reason."""

import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.cli.new.formats import NAMES, as_lines
from tests.repository import write_files
from wxb import tasks
from wxb.cli.new.corpus import new_corpus, read_records, summary_table
from wxb.core.errors import WxbError
from wxb.core.params.tasks import corpus_class

COUNT = len(NAMES)
pytestmark = pytest.mark.usefixtures("cwd")


class Case(NamedTuple):
    """Files, flags, and what is right: the last record as shown, or a pattern of the refusal.

    `block` are keys of the block, `reasons` all rejects and repairs with their counts.
    """

    name: str
    files: dict[str, Any]
    right: str
    block: Mapping[str, Any] = MappingProxyType({})
    reasons: Mapping[str, int] = MappingProxyType({})
    flags: Mapping[str, str] = MappingProxyType({})
    is_refused: bool = False


def refused(name, files, right, **flags):
    return Case(name, files, right, flags=flags, is_refused=True)


def spans(make, unit=lambda text: len(text), last=0):
    """Records of a text and the span of a name in it, whose offsets are lengths in a unit."""
    rows = [(make(name), name) for name in NAMES]
    return as_lines(
        {"text": text, "spans": [{"start": (n := unit(text[: text.index(name)])),
                                  "end": n + unit(name) + last, "label": "NAME"}]}
        for text, name in rows)  # fmt: skip


def columns(*rows, header=""):
    """Sentences of a column file; # is a name."""
    return header + "".join("\n".join(rows).replace("#", name) + "\n\n" for name in NAMES)


def sound(hertz, *channels, seconds=0.5):
    """A WAV of a tone; `channels` are its gains."""
    file, time = io.BytesIO(), np.arange(int(16_000 * seconds)) / 16_000
    tone = 0.3 * np.sin(2 * np.pi * hertz * time * (1 + time)) * (time > 0.1)
    soundfile.write(file, np.stack([gain * tone for gain in channels or (1,)], 1), 16_000,
                    format="WAV")  # fmt: skip
    return file.getvalue()


def studio(*results):
    """Tasks of Label Studio with the labels of several annotators: the end of each span."""
    return json.dumps([
        {"id": n, "data": {"text": f"{name} Lee left."}, "annotations": [
            {"completed_by": author, "result": [] if not end else [
                {"value": {"start": 0, "end": end, "labels": ["NAME"]}}]}
            for author, end in enumerate(results, start=1)]}
        for n, name in enumerate(NAMES)])  # fmt: skip


def classes(delimiter, *rows, header="text,label"):
    lines = [f"{name} left.{delimiter}{'ab'[n % 2]}" for n, name in enumerate(NAMES)]
    return "\n".join([header.replace(",", delimiter), *lines[:-3], *rows, *lines[-3:]]) + "\n"


def table(*paths):
    return "path,sentence\n" + "".join(f"{path},{n} one\n" for n, path in enumerate(paths))


LAST = NAMES[-1]
PEOPLE = [{"text": f"{name} left.", "label": "a"} for name in NAMES]
SPLIT = [{**row, "Split": ("train", "test")[n % 2]} for n, row in enumerate(PEOPLE)]
MANIFEST = [{"audio_filepath": "call.wav", "offset": n / 2, "duration": 0.5, "text": name}
            for n, name in enumerate(NAMES)]  # fmt: skip
CALL = {"own/call.wav": sound(300, seconds=COUNT / 2)}
LJ = {f"own/wavs/{name}.wav": sound(200 + 9 * n) for n, name in enumerate(NAMES)}
WAVS = {f"own/wav/{s}/{n}.wav": sound(200 + 50 * s, seconds=0.5 + s / 10 + n / 50)
        for s in (1, 2) for n in range(3)}  # fmt: skip
QUESTION = {"instruction": "And when?", "input": "", "output": "At six.", "system": "Guide."}
CASES = [
    Case("Doccano counts CRLF as one", {"own.jsonl": spans(
        lambda x: f"Hi\r\n\r\n{x} left.\r\n", lambda x: len(x.replace("\r\n", "\n")))},
        f"Hi\r\n\r\n[{LAST}](NAME) left.\r\n", {"offsets": "crlf-as-one"}),
    Case("UTF-16", {"own.jsonl": spans(lambda x: f"😀 So 😀 {x} left.",
                                       lambda x: len(x.encode("utf-16-le")) // 2)},
         f"😀 So 😀 [{LAST}](NAME) left.", {"offsets": "utf-16"}),
    Case("bytes, in Chinese", {"own.jsonl": spans(lambda x: f"昨天，{x}搬到罗马。",
                                                  lambda x: len(x.encode()))},
         f"昨天，[{LAST}](NAME)搬到罗马。", {"offsets": "utf-8"}),
    Case("the end is included", {"own.jsonl": spans(lambda x: f"So {x} left.", last=-1)},
         f"So [{LAST}](NAME) left.", {"offsets": "end-included"}),
    refused("no unit fits", {"own.jsonl": spans(lambda x: f"So {x} left.", lambda x: len(x) + 2)},
         r"(?s)--offsets: 12 of 12 .*\n  .*\n  .*\n  .*Correct"),
    Case("no unit fits, named", {"own.jsonl": spans(lambda x: f"So {x} left.", last=1)},
         f"So [{LAST}](NAME) left.", {"offsets": "characters"}, {}, {"offsets": "characters"}),
    refused("no values", {"own.jsonl": spans(lambda x: x)}, "fields.value", repair=""),
    refused("Prodigy, one class", {"own.jsonl": as_lines(
        {"text": x, "label": "A", "answer": ("accept", "reject")[n % 2]}
        for n, x in enumerate(NAMES))}, "--gold: texts reject the only class, A; name"),
    Case("Prodigy, answers as classes", {"own.jsonl": as_lines(
        {"text": x, "label": "A", "answer": ("accept", "ignore", "reject")[n % 3]}
        for n, x in enumerate(NAMES))}, f"{LAST} -> reject", {}, {}, {"gold": "answer"}),
    refused("a second header", {"own.tsv": classes("\t")}, "leave --columns", columns="text,label"),
    refused("no header", {"own.tsv": classes("\t")}, "columns is for", columns="prompt,reply"),
    refused("a line less", {"own/a.en": "Yes.\nNo.", "own/a.zh": "是。"}, "^own/a.en: found"),
    refused("one cell more", {"own.csv": "a,b\n" + "x,y,\n" * COUNT}, "to the header"),
    Case("a value with other white space", {"own.json": json.dumps([
        {"text": f"{x}  Lee left.", "spans": [
            {"start": 0, "end": len(x) + 5, "label": "NAME", "value": f"{x} Lee"}]}
        for x in NAMES])}, f"[{LAST}  Lee](NAME) left.", {}, {"value spelt otherwise": COUNT}),
    Case("offsets as text, in a list under a name", {"own.json": json.dumps({"data": [
        {"text": f"{x} left.", "ents": [{"start": "0", "end": str(len(x)), "type": "NAME"}]}
        for x in NAMES]})}, f"[{LAST}](NAME) left."),
    refused("two layers of tags", {"own.tsv": columns(
        "1\t#\tB-A\tO", "2\tB\tO\tB-C")}, r"--tag: found 2 \(B-A, O\) and 3 \(O, B-C\)"),
    refused("a column of texts", {"own.txt": "\n".join(NAMES)}, "file to .jsonl", tag="1"),
    *(refused(f"a column beyond the last as {flag}", {"own.conll": columns("# B-A", "left O")},
              f"--{flag}: found '7'; expected a column, 0 to 1", **{flag: "7"})
      for flag in ("input", "tag")),
    Case("two layers, one named", {"own.tsv": columns("#\tB-A\tO", "B\tO\tB-C")},
         f"{LAST} [B](C)", {}, {}, {"tag": "2"}),
    Case("one -DOCSTART-", {"own.conll": columns("# -X- _ B-A", "left -X- _ O",
                                                 header="-DOCSTART- -X- O\n")},
         f"[{LAST}](A) left"),
    refused("no blank lines", {"own.conll": 30 * columns("# B-A", "left O").replace("\n\n", "\n")},
        "^own.conll: found no blank line in 720 lines"),
    refused("lemmas first", {"own.conll": columns("be is O", "be was O", "# # B-A")},
        "--input: columns 0 and 1 both have words"),
    refused("lemmas in lower case first", {"own.conll": columns("so So O", "he He O", "# # B-A")},
        "--input: columns 0 and 1 both have words"),
    Case("a token of white space", {"own.conll": columns("# B-A", "\t O", "left O")},
         f"[{LAST}](A)  left"),
    Case("ragged lines", {"own.conll": columns("# B-A 0.5", "left O")}, f"[{LAST}](A) left",
         {"conll": {"token": 0, "tag": 1, "join": " "}}),
    Case("an odd tag", {"own.conll": 9 * columns("# B-A", "left O") + "Al X-Y\n\n"},
         f"[{LAST}](A) left", {}, {"unknown tag": 1}),
    *(refused(f"tags such as {tag}", {"own.txt": columns(f"# {tag}", "left O", ". O")},
              f"--tag: column 1 has O 24 times, but also '{tag}'")
      for tag in ("PERSON", "B", "PER-B", "B_PER", "b-per")),
    *(Case(f"tags such as {tag}", {"own.txt": columns("Al B-A", f"# {tag}", "left O")},
           f"[Al {LAST}](A) left") for tag in ("I-A", "L-A", "E-A")),
    *(refused(f"nested tags, {mark}", {
        "own.txt": columns("the B-A", f"# I-A{mark}B-C", "left O")}, "joins the tags of several")
      for mark in "|/+,"),
    refused("tags in cells", {"own.csv": "sentence,tag\n" + "".join(
        f"{x} left,\"['B-A', 'O']\"\n" for x in NAMES)},
        "found the fields.*\n(?s:.*)such values, convert the file"),
    *(Case(f"lists in cells, joined by {mark!r}", {"own.csv": "tokens,tags\n" + "".join(
        f"\"['{x}'{mark}'it\\'s'{mark}'up']\",\"['B-A'{mark}'O'{mark}'O']\"\n" for x in NAMES)},
           f"[{LAST}](A) it's up") for mark in (", ", "\n ")),
    Case("lists of numpy in the column of spans", {"own.csv": "tokens,spans\n" + "".join(
        f"\"['{x}' 'C:\\d']\",\"['B-A' 'O']\"\n" for x in NAMES) + "['\\x'],['O']\n"},
        f"[{LAST}](A) C:\\d", {}, {"missing field": 1}),
    Case("a broken row of tokens", {"own.csv": "sentence,word,tag\n" + "".join(
        f"{n},{x},B-A\n{n},left,O\n" for n, x in enumerate(NAMES)) + "77,A\n77,B,B-A\n"},
        f"[{NAMES[-2]}](A) left", {}, {"too few columns": 1}),  # with the sentence before
    refused("sentences that each document numbers", {"own.csv": "doc,sentence,word,tag\n" + "".join(
        f"{x},1,{x},B-A\n{x},1,left,O\n" for x in NAMES)}, "'sentence' has the same value"),
    Case("a token a row, columns named", {"own.csv": "sentence,lemma,Word,Tag\n" + "".join(
        f"{n},{x},{x},B-A\n{n},leave,left,O\n" for n, x in enumerate(NAMES))},
        f"[{LAST}](A) left", {}, {}, {"input": "Word", "tag": "Tag"}),
    Case("classes called O", {"own.csv": "sentence,label\n" + "".join(
        f"{x} left.,{'OA'[n % 2]}\n" for n, x in enumerate(NAMES))}, f"{LAST} left. -> A"),
    Case("a token a row", {"own.csv": "Sentence #,Word,POS,Tag\n" + "".join(
        f'S{n},{x},NP,B-A\n,left,V,O\n,",",C,O\n' for n, x in enumerate(NAMES))},
        f"[{LAST}](A) left ,", {"conll": {"token": 1, "tag": 3, "join": " ", "sentence": 0}}),
    Case("GLiNER", {"own.json": json.dumps([{"tokenized_text": ["Al", x, "left"], "ner": [
        [0, 1, "a b"]]} for x in NAMES] + [{"tokenized_text": ["Al"], "ner": [
        [0, 0, "A"], [0, 0, "B"]]}, {"tokenized_text": ["Al"], "ner": [[1, 1, "A"]]}])},
        f"[Al {LAST}](a b) left", {}, {"nested spans": 1, "offsets out of range": 1}),
    Case("CLUENER", {"own.jsonl": as_lines({"text": f"{x} left.", "label": {"A": {x: [
        [0, len(x) - 1]]}}} for x in NAMES)}, f"[{LAST}](A) left."),
    Case("named keys beside a sentence", {"own.csv": "sentence,spans\n" + "".join(
        f"{x} left.,\"[{{'start': 0, 'end': {len(x)}, 'kind': 'A'}}]\"\n" for x in NAMES)},
        f"[{LAST}](A) left.", {}, {}, {"tag": "kind"}),
    refused("two speakers", {"own/a.csv": "path,sentence,speaker,client_id\n" + "".join(
        f"wavs/{x}.wav,{x},{n % 4},{n % 3}\n" for n, x in enumerate(NAMES)), **LJ},
        "--speaker: found 'speaker' and 'client_id'"),
    refused("two lists of messages", {"own.jsonl": as_lines({key: [
        {"role": "user", "content": x}, {"role": "assistant", "content": "So."}]
        for key in ("messages", "conversation")} for x in NAMES)}, "--input: found 'messages' and"),
    Case("a comma ends the first line of a text", {"own.csv": classes(",", "odd,", '"So,\nso",b')},
         f"{LAST} left. -> b"),
    Case("history in CSV", {"own.csv": "instruction,output,history\n" + "".join(
        f'{x}?,so {x},"[[""a"", ""b""]]"\n' for x in NAMES)},
        f"user: a; assistant: b; user: {LAST}?; assistant: so {LAST}"),
    refused("two lists of tags", {"own.jsonl": as_lines({
        "tokens": [x, "left"], "ner_tags": ["B-A", "O"], "nested_ner_tags": ["O", "B-B"]}
        for x in NAMES)}, "--gold: found 'ner_tags' and 'nested_ner_tags'"),
    refused("Few-NERD", {"own.jsonl": as_lines({"tokens": [x, "left"], "ner_tags": ["person", "O"]}
                                            for x in NAMES)}, "'ner_tags'.* 'person'"),
    refused("brat", {"own/a.txt": "Ann left.", "own/a.ann": "T1\tPER 0 3\tAnn"}, r"anntoconll\.py"),
    refused("WebAnno", {"own/a.tsv": "#FORMAT=WebAnno TSV 3.3\n\n1-1\t0-3\tAnn\t_\n"},
         "WebAnno TSV; export"),
    refused("two annotators", {"own.json": studio(3, 7)}, "--annotator: found 1, 2"),
    refused("an empty annotation", {"own.json": studio(0, 7)}, "--annotator: found 1, 2"),
    *(Case(f"two annotators, {name} named", {"own.json": studio(3, 7)}, f"[{LAST[:3]}{right}",
           {"annotator": name}, {}, {"annotator": name})
      for name, right in {"1": f"](NAME){LAST[3:]} Lee left.", "2": " Lee](NAME) left."}.items()),
    refused("two by one", {"own.json": studio(3, 7).replace('by": 2', 'by": 1')}, "keep one"),
    *(refused(f"labels by {key}", {"own.jsonl": as_lines(
        {"text": f"{x} left.", "label": name, key: name} for x in NAMES for name in "ab")},
        "--annotator: found a, b") for key in ("annotator", "_session_id", "worker_id")),
    refused("labels by neither", {"own.json": studio(3, 7)}, "--annotator: found 1, 2",
            annotator="3"),
    refused("labels by nobody named", {"own.jsonl": as_lines(
        {"text": f"{x} left.", "label": "a", "worker_id": x[0]} for x in NAMES[:9])},
        f"--annotator: found {NAMES[0][0]}", annotator="3"),
    refused("groups of published splits", {f"own/{name}.json": json.dumps(PEOPLE)
        for name in ("train", "valid", "test")}, "own cannot be split by 'id'", group="id"),
    refused("groups of a column file", {"own.conll": columns("#\tB-NAME", "left\tO")},
        "--group: own.conll cannot be split by 'author'", group="author"),
    refused("groups of pairs", {"own.csv": "source,target\n" + "".join(
        f"{x} left.,{x} ging\n" for x in NAMES)}, "own.csv cannot be split", group="x"),
    refused("only long texts", {"own.json": json.dumps(
        [{"text": f"{x} {'y ' * 10**5}", "label": "a"} for x in NAMES])}, "max_characters"),
    refused("only long recordings", {"own/text.csv": table("a.wav", "b.wav"), **{
        f"own/{x}.wav": sound(200 + 50 * ord(x), seconds=40) for x in "ab"}}, "audio.max_seconds"),
    Case("labels by one of two", {"own.jsonl": as_lines(
        {"text": f"{x} left.", "label": name, "worker_id": name} for x in NAMES for name in "ab")},
        f"{LAST} left. -> b", {"annotator": "b"}, {"other annotator": COUNT}, {"annotator": "b"}),
    Case("long texts", {"own.json": json.dumps([*PEOPLE, {"text": "x " * 10**5, "label": "a"}])},
         f"{LAST} left. -> a", {}, {"too long": 1}),
    Case("nested and repeated spans", {"own.json": json.dumps([
        {"text": "Ann Lee", "spans": [{"start": 0, "end": 7, "label": "A"},
                                      {"start": a, "end": 7, "label": "A"}]} for a in (4, 0, 0)])},
         "[Ann Lee](A)", {}, {"nested spans": 1, "repeated span": 2}),
    Case("a quotation mark opens a text", {"own.tsv": classes("\t", '"Odd.\tb')},
         f"{LAST} left. -> b"),
    Case("marks in two texts", {"own.tsv": classes("\t", '"Odd.\tb', "x\ta", 'y"\tb', "z\ta")},
         f"{LAST} left. -> b"),
    Case("a mark that closes later", {
        "own.csv": classes(",", '"Odd,a', "x,a", "y,a", "z,a", 'O",a')},
        f"{LAST} left. -> b", {}, {"broken CSV": 1}),
    Case("a mark that closes in the next row", {
        "own.csv": classes(",", '"Odd,a', 'O",b')}, f"{LAST} left. -> b", {}, {"broken CSV": 1}),
    Case("cells of two lines, tabs", {"own.tsv": classes("\t", '"Odd\nand even"\ta')},
         f"{LAST} left. -> b"),
    refused("inches", {"own.csv": classes(",", 'A 27" screen,a', '"Great" screen,a')},
         "line 12 is not CSV"),
    Case("sep=;", {"own.csv": classes(";", header="sep=;\ntext;label")}, f"{LAST} left. -> b"),
    refused("a delimiter behind rows", {"own.csv": classes(",").replace(".,", ".,,")},
         "broken CSV: found 3 cells, expected 2"),
    Case("surplus cells without a header", {
        "own.csv": classes(",", "Ann, too, left.,a", header="")},
        f"{LAST} left. -> b", {}, {"broken CSV": 1}, {"columns": "text,label"}),
    Case("Tatoeba's export", {"own.tsv": "".join(f'{n}\t"{x}\t{n}\tso {x}\n' for n, x in
                                                 enumerate(NAMES))},
         f"\"{LAST} -> ('so {LAST}',)", {}, {}, {"columns": "id,source,id2,target"}),
    Case("segments of a recording", {"own/m.json": as_lines(MANIFEST), **CALL},
         f"m.json:line {COUNT} -> 0.5 s, {LAST}",
         {"split": {"by": "audio_filepath", "test": 0.2, "valid": 0.1}}),
    Case("LJSpeech", {"own/metadata.csv": "".join(f'{x}|A, "b, {x}\n' for x in NAMES), **LJ},
         f'{LAST} -> 0.5 s, A, "b, {LAST}', {"columns": ["id", "sentence"]}),
    Case("GPT-SoVITS", {"own/a.list": "".join(f"{x}.wav|A|EN|So {x}\n" for x in NAMES), **LJ,
        "own/notes.txt": "So."}, f"a.list:line {COUNT} -> 0.5 s, So {LAST}",
        {"manifest": "a.list"}, {}, {"columns": "path,speaker,language,sentence"}),
    Case("paths in objects", {"own/a.jsonl": as_lines(
        {"audio": {"path": f"wavs/{x}.wav"}, "sentence": x} for x in NAMES), **LJ},
        f"a.jsonl:line {COUNT} -> 0.5 s, {LAST}"),
    Case("LJSpeech, whose first texts are equal", {"own/metadata.csv": "".join(
        f"{x}|{x} left.|{x} left.\n" for x in NAMES), **LJ}, f"{LAST} -> 0.5 s, {LAST} left.",
        {"columns": ["id", "original", "sentence"]}),
    refused("bars with speakers", {"own/metadata.csv": "".join(
        f"{x}.wav|A {x}|{'ab'[n % 2]}\n" for n, x in enumerate(NAMES)), **LJ}, "--columns: found"),
    refused("segments by other names", {"own/m.json": as_lines(
        {"audio": "call.wav", "ms": int(1000 * x["offset"]), "text": x["text"]} for x in MANIFEST),
        **CALL}, "--start and --end: 12 rows name 1 recordings; .* 'ms'; save any channels"),
    Case("named seconds", {"own/m.json": as_lines(
        {"audio": "call.wav", "from": x["offset"], "to": x["offset"] + 0.5, "text": x["text"]}
        for x in MANIFEST), **CALL}, f"m.json:line {COUNT} -> 0.5 s, {LAST}",
        {}, {}, {"start": "from", "end": "to"}),
    Case("Label Studio's transcripts", {"own/x.json": json.dumps([
        {"data": {"audio": f"/data/upload/1/{x}.wav"}, "annotations": [{"result": [
            {"type": "textarea", "from_name": "transcription", "value": {"text": [x]}}]}]}
        for x in NAMES]), **LJ}, f"x.json:record {COUNT} -> 0.5 s, {LAST}"),
    refused("Label Studio's segments", {"own/x.json": json.dumps([
        {"data": {"audio": f"{x}.wav"}, "annotations": [{"result": [
            {"type": "textarea", "from_name": "transcription", "value": {
                "start": n, "end": n + 1, "text": [x]}} for n in range(2)]}]}
        for x in NAMES]), **LJ}, "found recordings, and the fields"),
    Case("aclImdb, with its other files", {"own/imdb.vocab": "the", "own/train/x.feat": "9 0:9",
        "own/train/urls_pos.txt": "x", **{f"own/train/{label}/{n}_9.txt": f"{label} {x} left."
            for label in ("neg", "pos") for n, x in enumerate(NAMES)}},
        f"pos {NAMES[9]} left. -> pos"),
    Case("20 Newsgroups, in Latin-1", {f"own/{label}/{n}": f"{label} {x} est parti à Orléans. Ça!"
        .encode("latin-1") for label in ("sci.med", "alt.a") for n, x in enumerate(NAMES)},
        f"sci.med {NAMES[9]} est parti à Orléans. Ça! -> sci.med", {},
        {"read as cp1252": 2 * COUNT}),
    *(refused(code, {"own.csv": b"text,label\n" + "".join(
        f"{text} {x},{'ab'[n % 2]}\n" for n, x in enumerate(NAMES)).encode(code)}, "expected UTF-8")
      for code, text in (("euc_jp", "これは東京で見たとても良い映画です"),
                         ("cp949", "서울에서 본 영화"),
                         ("cp1250", "Nagyon jó minőségű termék"), ("cp1250", "Zelo priporočam"),
                         ("cp1254", "Öğle yemeği şahane"), ("mac_roman", "Schön, größer"))),
    refused("splits below", {f"own/all/{x}/0.json": json.dumps(PEOPLE) for x in ("train", "other")},
        "splits train, and beside them all/other/0.json"),
    refused("a training file beside another", {f"own/device_{x}_contest.json":
        json.dumps(PEOPLE) for x in ("a", "train")}, "beside them device_a_contest.json"),
    Case("classes of texts in years", {f"own/{c}/{y}/{n}.txt": f"{c} {y} {x}." for c in "ab"
        for y in (8, 9) for n, x in enumerate(NAMES[:3])}, f"b 9 {NAMES[2]}. -> 9"),
    Case("a text named as a split", {f"own/{c}/{x}.txt": f"{c} {x} left." for c in "ab"
        for x in ("test", *NAMES)}, "b test left. -> b"),
    refused("a class named as a split", {f"own/{c}/{n}.txt": f"{c} {x}."
        for c in ("sales", "training") for n, x in enumerate(NAMES)},
        "training/ is named as a split"),
    Case("Enron's summaries", {**{f"own/e/{c}/{n}.txt": f"{c} {x}." for c in ("ham", "spam")
        for n, x in enumerate(NAMES)}, "own/e/Summary.txt": "x"}, f"spam {NAMES[9]}. -> spam"),
    refused("rows of tokens", {"own.csv": "text,label\n" + "".join(
        f"{x},B-PER\nleft,O\n" for x in NAMES)}, "found the fields"),
    refused("numbers and words", {"own.csv": "No,English\n" + "".join(
        f"{n},{x} left\n" for n, x in enumerate(NAMES))}, "found the fields"),
    Case("ids that repeat", {"own.json": json.dumps([{"key": "hotel", **row} for row in PEOPLE])},
        f"{LAST} left. -> a"),
    Case("Weibo's numbered characters, with ids", {"own.conll": "".join(
        f"s{x}\t昨0\tO\ns{x}\t天1\tO\ns{x}\t王0\tB-PER\ns{x}\t明1\tI-PER\ns{x}\t走0\tO\n\n"
        for x in NAMES)}, "昨天[王明](PER)走"),
    Case("a region with two labels", {"own.json": json.dumps([
        {"id": n, "data": {"text": f"{x} left."}, "annotations": [{"result": [{"value": {
            "start": 0, "end": len(x), "labels": [*"AB"[: 1 + (n == 0)]]}}]}]}
        for n, x in enumerate(NAMES)])}, f"[{LAST}](A) left.", {}, {"several classes": 1}),
    refused("missing authors of pandas", {"own.json": json.dumps([
        {**row, "author": row["text"] if n else float("nan")} for n, row in enumerate(PEOPLE)])},
        "--group: 'author' is blank in 1 of"),
    Case("truth values", {"own.json": json.dumps([
        {"text": f"{x} left.", "label": x != LAST} for x in NAMES])}, f"{LAST} left. -> false"),
    refused("a mark of test records", {"own.json": json.dumps(
        [{**row, "is_test": n % 2 == 0} for n, row in enumerate(PEOPLE)])}, "'is_test' has"),
    refused("published splits in a field", {"own.json": json.dumps(SPLIT)}, "'Split' has .* test"),
    Case("a field of splits, left", {"own.json": json.dumps(SPLIT)}, f"{LAST} left. -> a",
         {}, {}, {"group": "-"}),
    refused("LibriSpeech", {f"own/{x}/{x}.{suffix}": content for x in "ab" for suffix, content in (
        ("trans.txt", f"{x} ONE\n"), ("wav", sound(300)))}, r"(?s)'a ONE'.*transcripts\.csv"),
    refused("FunASR", {"own/a.jsonl": as_lines({"source": f"/x/{x}.wav", "target": x}
        for x in NAMES), **LJ}, "fits speech and translation; choose"),
    refused("Common Voice", {**WAVS, **{f"own/{name}.tsv": f"path\tsentence\nwav/1/{n}.wav\tone\n"
        for n, name in enumerate(("train", "dev", "test", "invalidated", "other"))}},
        "splits valid and test and train, and beside them invalidated.tsv, other.tsv; expected"),
    refused("Common Voice's durations", {"own/clip_durations.tsv": "clip\tduration[ms]\na.wav\t9\n",
        **{f"own/{name}.tsv": "path\tsentence\na.wav\tone\n" for name in ("train", "test")},
        "own/a.wav": sound(300)}, "and beside them clip_durations.tsv"),
    refused("a test file beside another", {f"own/{x}.json": json.dumps(PEOPLE)
        for x in ("mails", "test")}, "splits test, and beside them mails.json"),
    refused("no test files", {f"own/{x}.json": json.dumps(PEOPLE) for x in ("train", "valid")},
        "splits train and valid; expected train, test and"),
    refused("no training files", {f"own/{x}.json": json.dumps(PEOPLE) for x in ("test", "valid")},
        "splits test and valid; expected train, test and"),
    Case("OPUS, with a third file", {"own/N.en": "".join(f"So {x}.\n" for x in NAMES), "own/N.ids":
        "x\n", "own/N.zh_CN": "".join(f"{x}来了。\n" for x in NAMES)},
        f"So {LAST}. -> ('{LAST}来了。',)"),
    Case("languages by their suffixes", {"own/N.sw": "".join(f"{x}!\n" for x in NAMES),
        "own/N.xx": "".join(f"{x}.\n" for x in NAMES)}, f"{LAST}. -> ('{LAST}!',)", {}, {},
        {"input": "xx", "gold": "sw"}),
    Case("spaCy's tokens and sentences", {"own.json": json.dumps([{"text": f"{x} left.", "ents": [
        {"start": 0, "end": len(x), "label": "NAME"}], "sents": [{"start": 0, "end": 9}],
        "tokens": [{"id": 0, "start": 0, "end": len(x), "tag": "NNP"}]} for x in NAMES])},
        f"[{LAST}](NAME) left."),
    Case("bars without a header", {"own.txt": "".join(f"{'ab'[n % 2]}|{x}, left.\n"
        for n, x in enumerate(NAMES))}, f"{LAST}, left. -> b", {}, {}, {"columns": "label,text"}),
    Case("messages in cells", {"own.csv": "messages\n" + "".join('"' + json.dumps(
        [{"role": "user", "content": x}, {"role": "assistant", "content": "Yes."}]
        ).replace('"', '""') + '"\n' for x in NAMES)}, f"user: {LAST}; assistant: Yes."),
    Case("chosen messages of pairs", {"own.jsonl": as_lines({key: [
        {"role": "user", "content": x}, {"role": "assistant", "content": key}]
        for key in ("chosen", "rejected")} for x in NAMES)},
        f"user: {LAST}; assistant: chosen", {}, {}, {"task": "chat", "input": "chosen"}),
    Case("ShareGPT in cells of pandas", {"own.csv": "conversations\n" + "".join(
        f"\"{[{'from': 'human', 'value': x}, {'from': 'gpt', 'value': 'Yes.'}]}\"\n"
        for x in NAMES)}, f"user: {LAST}; assistant: Yes."),
    refused("a number for each text", {"own.csv": "text,score\n" + "".join(
        f"Take {n}.,{n / 7}\n" for n in range(24))}, "found 24 different classes in 24 records"),
    refused("a row per span", {"own.csv": "text,start,end,label\n" + "".join(
        f"{x} left.,{n},{n + 3},NAME\n" for x in NAMES for n in (0, 4))}, "found a row per span"),
    *(refused(name, {name: "PK"}, cure) for name, cure in (
        ("own.xlsx", "save each sheet as CSV"), ("own.jsonl.gz", "unpack it"),
        ("own.spacy", "doc.to_json"), ("own.a1", "anntoconll"))),
    Case("the same names of files", {"own/l.csv": table(
        *(f"/home/x/wav/{s}/{n}.wav" for s in (2, 1) for n in range(3))), **WAVS},
        "l.csv:line 7 -> 0.6 s, 5 one"),
    Case("a name of several files", {"own/l.csv": table("wav/1/1.wav", "0.wav"), **WAVS},
         "l.csv:line 2 -> 0.6 s, 0 one", {}, {"ambiguous path": 1}),
    Case("a file that is lacking", {"own/l.csv": table("wav/1/0.wav", "wav/3/0.wav"),
                                    "own/wav/1/0.wav": sound(300)},
         "l.csv:line 2 -> 0.5 s, 0 one", {}, {"ambiguous path": 1}),
    Case("opposite phases, other spellings", {
        "own/l.csv": table("A\\B.WAV", "c.wav", "x" * 999), "own/a/b.wav": sound(300, 1, -0.98),
        "own/c.wav": sound(400, 1, -1)}, "l.csv:line 3 -> 0.5 s, 1 one", {}, {"not readable": 1}),
    Case("history and system", {"own.json": json.dumps(
        [QUESTION | {"history": [[f"Where is {x}?", "There."]]} for x in NAMES])},
        f"system: Guide.; user: Where is {LAST}?; assistant: There.; user: And when?; "
        "assistant: At six."),
    Case("a system beside turns", {"own.json": json.dumps([
        {"conversations": [{"from": "human", "value": x}, {"from": "gpt", "value": "Yes."}],
         "system": "Guide.", "tools": "[]"} for x in NAMES])},
        f"system: Guide.; user: {LAST}; assistant: Yes."),
    Case("input and output", {"own.jsonl": as_lines(
        {"input": x, "output": "Yes."} for x in NAMES)}, f"user: {LAST}; assistant: Yes.",
        {}, {}, {"task": "chat", "input": "input", "gold": "output"}),
    Case("a call of a tool, a thought", {"own.jsonl": as_lines({"messages": [
        {"role": "user", "content": x}, {"role": "assistant", "content": "Yes.",
         "tool_calls": [1] * (n == 0), "thinking": n == 1, "reasoning": {}}]}
        for n, x in enumerate(NAMES))}, f"user: {LAST}; assistant: Yes.",
        {}, {"not for training": 2}),
    Case("an `id` that repeats", {"own.json": json.dumps([{"id": 1, **row} for row in PEOPLE])},
        f"{LAST} left. -> a", {"fields": {"input": "text", "label": "label", "id": None}}),
    Case("lists in cells, the first empty", {"own.csv": "text,spans\nNo one.,[]\n" + "".join(
        f"{x} left.,\"[[0, {len(x)}, 'NAME']]\"\n" for x in NAMES)}, f"[{LAST}](NAME) left."),
    Case("spans with the next blank", {"own.jsonl": as_lines({"text": f"{x} left.", "spans": [
        {"start": 0, "end": len(x) + 1, "label": "NAME"}]} for x in NAMES)},
        f"[{LAST}](NAME) left."),
    refused("tokens without tags", {"own.jsonl": as_lines(
        {"tokens": [x, "left"], "ner_tags": ["B-PER"]} for x in NAMES)}, "2 tokens and 1 ner_tags"),
    Case("Argilla's spans", {"own.jsonl": as_lines({"text": f"{x} left.", "tokens": [x, "left."],
        "annotation": [["NAME", 0, len(x)]]} for x in NAMES)}, f"[{LAST}](NAME) left."),
    refused("only tokens", {"own.jsonl": as_lines({"tokens": [x]} for x in NAMES)}, "the fields"),
    refused("a field that is misspelt", {"own.json": json.dumps(PEOPLE)},
        "has no field 'labell'; did you mean 'label'", gold="labell"),
    refused("a damaged character", {"own.csv": b"text,label\n" + "".join(
        f"你好 {x},a\n" for x in NAMES).encode() + b"\xe4\xbd,a\n"}, "iconv -f UTF-8 -c"),
    Case("a weight of 0 among turns", {"own.jsonl": as_lines({"conversations": [
        {"from": "human", "value": x}, {"from": "gpt", "value": "Yes.", key: n}]}
        for n, (x, key) in enumerate(zip(NAMES, ("weight", "train", *NAMES), strict=False)))},
        f"user: {LAST}; assistant: Yes.", {}, {"not for training": 1}),
    Case("a class with a joiner", {"own.json": json.dumps(
        [{"text": f"{x} left.", "label": "👩\u200d💻"} for x in NAMES])},
        f"{LAST} left. -> 👩\u200d💻"),
    Case("decomposed names of files", {"own/l.csv": table("é0.wav", "é1.wav"),
         "own/e\u03010.wav": sound(300), "own/e\u03011.wav": sound(400)},
         "l.csv:line 3 -> 0.5 s, 1 one"),
    Case("a table of cp1252", {"own/l.csv": "path;sentence\n0.wav;für\n1.wav;hören\n".encode(
        "cp1252"), "own/0.wav": sound(300), "own/1.wav": sound(400)},
        "l.csv:line 3 -> 0.5 s, hören", {}, {"read as cp1252": 2}),
    refused("recordings without a table", {"own/0.wav": sound(300)}, "add a table transcripts.csv"),
    refused("splits in the paths of recordings", {
        "own/metadata.csv": "file_name,text\n" + "".join(
            f"{'train' if n else 'test'}/{n}.wav,word {x}\n" for n, x in enumerate(NAMES)),
        **{f"own/{'train' if n else 'test'}/{n}.wav": sound(200 + 9 * n)
           for n, _ in enumerate(NAMES)}}, "--group: paths begin with the splits test, train"),
    refused("a translation memory", {"own.tmx": "<tmx/>"}, "found translation units; save pairs"),
    Case("contractions in CoNLL-U", {"own.conllu": columns(
        "1-2\tzum\t_", "1\tzu\tO", "2\tdem\tO", "3\t#\tB-A", header="# text = zum\n")},
        f"zu dem [{LAST}](A)", {"conll": {"token": 1, "tag": 2, "join": " "}}),
    Case("tags in CoNLL-U", {"own.conllu": columns(
        "1\tname=Ole\tname=O", "2\t#\tA=No|ner=B-X|B=1")}, f"name=Ole [{LAST}](X)"),
    refused("two lists of pairs", {"own.json": json.dumps({k: [[x, {"entities": []}] for x in NAMES]
        for k in "ab"})}, "found the fields\n  'a': "),
    Case("columns of pandas", {"own.json": json.dumps({
        key: {n: row[key] for n, row in enumerate(PEOPLE)} for key in ("text", "label")})},
        f"{LAST} left. -> a"),
    Case("NER Annotator's classes and pairs", {"own.json": json.dumps({"classes": ["A"],
        "annotations": [None, *([x, {"entities": [[0, len(x), "A"]]}] for x in NAMES)]})},
        f"[{LAST}](A)", {}, {"not a record": 1}),
    Case("two empty spans before spaces", {"own.jsonl": as_lines(
        {"text": f"{x} left .", "spans": [{"start": a, "end": len(x), "label": "NAME"}
         for a in (0, len(x))[: 1 + (n < 2)]]} for n, x in enumerate(NAMES))},
        f"[{LAST}](NAME) left .", {}, {"reversed offsets": 2}),
    refused("two controls of choices", {"own.json": json.dumps([
        {"id": n, "data": {"text": f"{x} left."}, "annotations": [{"result": [
            {"from_name": ("spam", "mood")[n % 2], "value": {"choices": ["abc"[n % 3]]}}]}]}
        for n, x in enumerate(NAMES)])},
        "--gold: the choices mood and spam have classes; export JSON-MIN"),
    Case("spans as an object of lists", {"own.jsonl": as_lines({"text": f"{x} left.", "entities": {
        "start": [0], "end": [len(x)], "label": ["NAME"]}} for x in NAMES)},
        f"[{LAST}](NAME) left."),
    Case("features in a list", {"own/a.jsonl": as_lines({"tokens": [x, "left"], "ner_tags": [1, 0]}
        for x in NAMES), "own/dataset_info.json": json.dumps({"features": {"ner_tags": [
            {"names": ["O", "B-NAME"], "_type": "ClassLabel"}]}})}, f"[{LAST}](NAME) left"),
    refused("features beside the folder", {"own/a.jsonl": as_lines({"tokens": [x, "left"],
        "ner_tags": [1, 0]} for x in NAMES), "dataset_info.json": json.dumps({"features": {
            "ner_tags": {"names": ["O", "B-NAME"]}}})}, "give the folder with `dataset_info.json`"),
    Case("a cache of `Dataset.map`", {"own/a.jsonl": as_lines(PEOPLE), "own/cache-0a1.arrow": "x"},
        f"{LAST} left. -> a"),
    *(refused(f"{name}, a workbook", {name: b"PK\x03\x04\x14"}, "save each sheet as CSV")
      for name in ("own.csv", "own.json")),
    refused("a pointer of Git LFS", {"own.csv": "version https://git-lfs.github.com/spec/v1\n"},
        "found a pointer of Git LFS; fetch"),
    Case("lines called ndjson", {"own.ndjson": as_lines(PEOPLE)}, f"{LAST} left. -> a"),
]  # fmt: skip


KEYS = ["text", "label", "labels", "spans", "start", "end", "type", "cats", "data", "annotations",
        "result", "value", "choices", "completed_by", "was_cancelled", "conversations", "from",
        "instruction", "output", "history", "system", "translation", "source", "target", "tokens",
        "ner_tags", "annotator", "annotation_id", "options", "accept", "id"]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_records_are_read_right_or_refused(case):
    write_files(case.files)
    path = Path("own" if Path("own").is_dir() else next(iter(case.files)))
    if case.is_refused:
        with pytest.raises(WxbError, match=case.right):
            new_corpus(path, None, case.flags)
        return
    flags = dict(case.flags)
    block, trial = new_corpus(path, flags.pop("task", None), flags)
    assert tasks.get(block["task"]).reading.preview(trial.records[-1]) == case.right
    assert {key: block[key] for key in case.block} == case.block
    assert case.block or not {"offsets", "columns", "annotator"} & block.keys() or case.flags
    reasons = [reject.reason for reject in trial.rejects]
    if block["split"].get("by") == "audio_filepath":
        assert len({record.group for record in trial.records}) == 1
    assert Counter([*reasons, *(r for record in trial.records for r in record.repaired)]) == (
        case.reasons
    )


def summary(path="own.json"):
    """The lines that `wxb new corpus` prints about a path."""
    console = Console(width=400, file=io.StringIO())
    block, trial = new_corpus(Path(path))
    console.print(summary_table(trial, corpus_class(block["task"]).model_validate(block), seed=1))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_report_shows_conflicts_unread_fields_and_three_records():
    rows = [*PEOPLE, *({**row, "label": "b"} for row in PEOPLE[:5]), PEOPLE[5]]
    write_files({"own.json": json.dumps([{**row, "likes": 1} for row in rows])})
    lines = summary()
    shown = [line.partition("  ")[2].strip() for line in lines]
    (conflict,) = (line for line in lines if line.startswith("in conflict"))
    assert re.search(r"5: duplicate text, other label \(.*record 13.* 14.* 15", conflict)
    assert conflict.count("which is 'a'") == 3
    assert f"likes {len(rows)}" in shown
    assert [line for line in shown if " -> " in line] == [f"{x} left. -> a" for x in NAMES[:3]]
    assert all(line.isprintable() for line in lines)


def test_a_folder_per_class_has_no_unread_field():
    write_files({f"own/{'ab'[n % 2]}/{n}.txt": f"{x} left." for n, x in enumerate(NAMES)})
    _, trial = new_corpus(Path("own"))
    assert (len(trial.records), trial.unread_fields) == (len(NAMES), {})
    write_files({f"two/{c}.csv": "text\n" + "".join(f"{c} {x}\n" for x in NAMES) for c in "ab"})
    _, trial = new_corpus(Path("two"), None, {"class-per-file": ""})
    assert (len(trial.records), trial.unread_fields) == (2 * len(NAMES), {})


def test_rejects_name_files_where_they_are():
    write_files({f"own/{'ab'[n % 2]}/{n}.txt": f"{x} left." for n, x in enumerate(NAMES)})
    write_files({"own/a/empty.txt": ""})
    _, trial = new_corpus(Path("own"))
    assert [r.detail for r in trial.rejects] == [
        "own/a/empty.txt: found an empty file; expected records"
    ]


def test_the_report_shows_classes_in_doubt():
    classes = ["a", "b", "a#c", "nan", "Caf\u00e9", "Cafe\u0301", "1", "1.0"]
    rows = [{"text": f"{x} left.", "label": classes[n % 8]} for n, x in enumerate(NAMES * 2)]
    write_files({"own.json": json.dumps(rows)})
    shown = {line[:14].strip(): line[14:].strip() for line in summary()}
    assert shown["like missing"] == "nan"
    assert shown["several names"] == "a#c"
    assert {*shown["nearly equal"].split(", ")} == {*classes[4:]}


def test_the_report_shows_that_records_of_one_wording_cannot_be_divided():
    rows = [{"text": f"Letter {i}.", "label": "ab"[i % 2]} for i in range(9)]
    write_files({"own.json": json.dumps(rows)})
    lines = [line for line in summary() if line.startswith(("parts to divide", "not divided"))]
    assert [*map(str.split, lines[:-1])] == [["parts", "to", "divide", "1"]]
    assert "9 records in 1 part to divide" in lines[-1]
    assert lines[-1].endswith("add other records, or change `split` of the corpus")


@pytest.mark.parametrize("suffix", ["json", "conll"])
def test_the_report_shows_a_test_set_of_other_labels(suffix):
    for split, label in (("train", "A"), ("test", "-1")):
        people = json.dumps([{"text": f"{x} is {split}.", "label": label} for x in NAMES * 2])
        tagged = columns(f"{split} B-{label}", "# O")
        write_files({f"own/{split}.{suffix}": people if suffix == "json" else tagged})
    (line,) = (line for line in summary("own") if line.startswith("not divided"))
    assert "published: found the labels -1, which train (A) lacks; map them by `labels`" in line


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), min_size=1, max_size=3), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_record_ends_in_a_traceback(rows, data):
    task = data.draw(st.sampled_from(["chat", "classification", "ner", "translation"]))
    good = {"chat": QUESTION, "translation": {"source": "a", "target": "b"}}
    write_files({"own.json": json.dumps([*rows, good.get(task, PEOPLE[0] | {"spans": []})])})
    fields = {"ner": {"input": "text", "type": "label"}, "classification": {"input": "text"}}
    fields |= {"chat": {"messages": "conversations"}, "translation": {"input": "source"}}
    block = {"task": task, "path": "own.json", "split": {"test": 0.2, "valid": 0.1}}
    corpus = corpus_class(task).model_validate({**block, "fields": fields[task]})
    trial = read_records(Path("own.json"), corpus)
    assert len(trial.records) + len(trial.rejects) == len(rows) + 1
    with suppress(WxbError):
        new_corpus(Path("own.json"), task)
