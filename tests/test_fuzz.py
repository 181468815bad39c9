"""Random bytes and texts: readers, answers, masking formats and parameters raise only WxbError.

`FUZZ=10000` sets how many are tried; `make trust` sets it.
"""

import os
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.masking.test_rows import FORMATS, changed
from wxb.core.errors import WxbError
from wxb.core.params import check, parse_yaml
from wxb.corpora import formats
from wxb.masking.edits import Edit
from wxb.tasks.ner.generation import answers

fuzzed = settings(max_examples=int(os.environ.get("FUZZ", "50")), deadline=None)
MARKS = ['"', "'", "{", "}", "[", "]", ",", ";", "\t", "\n", "\r", "\\", "\\u", ":", "&a", "*a"]
MARKS += [
    "text",
    "a",
    "é",
    "\0",
    "\ufeff",
    "\ud83d".encode("utf-8", "surrogatepass").decode("latin"),
]
texts = st.lists(st.sampled_from(MARKS) | st.text(st.characters(codec="utf-8"), max_size=4))
texts = texts.map("".join)
contents = texts.map(str.encode) | st.binary(max_size=200)
SUFFIXES = [".json", ".jsonl", ".csv", ".tsv", ".parquet", ".arrow", ".spacy"]


@fuzzed
@given(contents, st.sampled_from(SUFFIXES))
def test_any_file_is_read_or_refused(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    with suppress(WxbError):
        list(formats.raw_records(path))


@fuzzed
@given(texts, texts)
def test_any_answer_is_located_in_its_text(text, answer):
    for span in answers.locate(text, answers.parse(answer)):
        assert 0 <= span.start < span.end <= len(text)


@fuzzed
@given(contents, st.sampled_from(FORMATS))
def test_any_content_is_masked_or_refused(content, format_):
    with suppress(WxbError, UnicodeDecodeError):
        assert changed(content, format_)[1] == content
        changed(content, format_, lambda text: [Edit(0, 1, "x")])


@fuzzed
@given(texts)
def test_any_parameters_are_checked_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "params.yaml"
    with suppress(WxbError):
        check(parse_yaml(text, path), path)
