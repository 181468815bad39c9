"""`wxb new corpus` and the readers, for a small file of every format that they recognize."""

from pathlib import Path

import pytest

from tests.cli.new.formats import CASES, CLASSIFIED, TOKENS, as_lines
from tests.repository import write_files
from wxb import tasks
from wxb.cli.new.corpus import new_corpus
from wxb.core.errors import WxbError
from wxb.core.params.tasks import corpus_class
from wxb.corpora.reading import read_folder
from wxb.corpora.records import Record

pytestmark = pytest.mark.usefixtures("cwd")


def block_of(path, flags=None):
    return new_corpus(Path(path), None, flags)[0]


def gold_of(record, task):
    """The gold of a record as in CASES."""
    match task:
        case _ if record.gold is None:
            return None
        case "ner":
            return [tuple(span) for span in record.gold]
        case "chat":
            return record.gold["text"]
        case _:
            return record.gold


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_format_is_recognized_and_read(case):
    write_files(case.files)
    block = block_of(case.path, case.flags)
    assert block["task"] == case.task
    params = corpus_class(case.task).model_validate(block)
    folder = Path(case.path)
    if folder.is_file():
        folder = Path("raw")
        folder.mkdir()
        Path(case.path).rename(folder / case.path)
    items = [*read_folder(folder, params, tasks.get(case.task).reading)]
    assert [item for item in items if not isinstance(item, Record)] == []
    records = [(record.input, gold_of(record, case.task)) for record in items]
    assert sorted(records, key=str) == sorted(case.records, key=str)


def test_published_tests_without_validation_are_kept():
    write_files(next(case for case in CASES if case.name == "aclImdb").files)
    block = block_of("own")
    assert block["split"]["further"] == {"published": {"files": ["test/*"]}}
    assert block["classes"] == {"bad": "bad", "good": "good", "unsup": None}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"own/a.en": "1.\n2.\n", "own/a.zh": "一。\n"}, r"a\.en: found 2 lines, and 1 in a\.zh"),
        ({"own/a.jsonl": as_lines({"tokens": t, "ner_tags": [0] * 6} for t in TOKENS)}, "names"),
        ({"own/a.txt": "<!DOCTYPE html><html>"}, r"a\.txt: found an HTML page; fetch"),
        ({"own/.hidden": ""}, "own: has no files"),
        ({"own/a.zip": bytes([80, 75, 0, 255]) * 9}, r"a\.zip: found an archive; unpack"),
        ({f"own/{n}.json": as_lines([{"text": t}]) for n, (t, _) in enumerate(CLASSIFIED)},
         r"(?s)own: found the fields\n  'text': 'Yesterday Ann.*--class-per-file"),
    ],
)  # fmt: skip
def test_formats_that_cannot_be_read_are_named(files, message):
    write_files(files)
    with pytest.raises(WxbError, match=message):
        block_of("own")
