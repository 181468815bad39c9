"""Random bytes and texts, `FUZZ` of them: readers, masking and parameters raise only WxbError."""

import os
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.masking.test_files import FORMATS, changed
from wxb.core.errors import WxbError
from wxb.core.params import check, parse_yaml
from wxb.corpora import formats
from wxb.tasks.ner.models import answers

fuzzed = settings(max_examples=int(os.environ.get("FUZZ", "50")), deadline=None)
MARKS = ['"', "'", "{", "}", "[", "]", ",", ";", "\t", "\n", "\r", "\\", "\\u", ":", "&a", "*a"]
MARKS += ["text", "a", "é", "\0", "\ufeff", "\xed\xa0\xbd"]  # the last: half of a pair in UTF-8
texts = st.lists(st.sampled_from(MARKS) | st.text(st.characters(codec="utf-8"), max_size=4))
texts = texts.map("".join)
contents = texts.map(str.encode) | st.binary(max_size=200)


@fuzzed
@given(contents, st.sampled_from([".json", ".jsonl", ".csv", ".tsv", ".parquet", ".arrow"]))
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
        texts, same = changed(content, format_)
        assert changed(same, format_)[0] == texts


@fuzzed
@given(texts)
def test_any_parameters_are_checked_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "params.yaml"
    with suppress(WxbError):
        check(parse_yaml(text, path), path)


# Files of one repeated part: beginning, part, separator, end, and the memory of reading it in bytes
# per byte.
REPEATED = {
    ".jsonl": ("", '{"text": "one two", "label": "a"}\n', "", "", 10),
    ".json": ("[", '{"text": "one two", "label": "a"}', ",", "]", 10),
    ".csv": ("text,label\n", "one two,a\n", "", "", 10),
    ".tsv": ("text\tlabel\n", "one two\ta\n", "", "", 10),
    "tiny.json": ("[", "{}", ",", "]", 30),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_memory_of_reading_a_file_is_bounded(tmp_path, name):
    start, part, separator, end, bound = REPEATED[name]
    path = tmp_path / f"any{name}"
    path.write_text(start + separator.join([part] * (100_000 // len(part + separator))) + end)
    tracemalloc.start()
    for _ in formats.raw_records(path):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < bound * path.stat().st_size
