import dataclasses

import pytest

from stages import align, tokenize
from tests.ner_project import RECORDS, write_corpus
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.corpora.text.tokenizers import train
from wxb.tasks.ner.record import Span


def test_validation_records_need_a_type_of_training(params):
    valid = [dataclasses.replace(r, gold=(Span(0, 3, "OTHER"),)) for r in RECORDS[16:]]
    write_corpus(paths.CLEAN / "pii", {"train": RECORDS[:16], "valid": valid, "test": RECORDS})
    tokenizer = train("wordpiece", 400, [record.input for record in RECORDS])
    tokenizer.save_pretrained(paths.TOKENIZERS / "encoder")
    tokenize.main(load(), "ner-encoder")
    with pytest.raises(WxbError, match="training lacks its classes or types"):
        align.main(load(), "ner-encoder")
    assert not (paths.TARGETS / "ner-encoder").exists()
