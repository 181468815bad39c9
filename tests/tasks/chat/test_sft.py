import numpy as np
import pytest

from tests import training_steps
from tests.chat_models import RECORDS, experiment
from wxb.core.errors import WxbError
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, read_columns
from wxb.corpora.text.templates import message
from wxb.corpora.text.tokenizers import load, train
from wxb.tasks.chat.record.conversation import serialize
from wxb.tasks.chat.sft import SftMethod


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    texts = [text for record in RECORDS for text in (record.input, record.gold["text"])]
    train("byte-level-bpe", 320, texts).save_pretrained(folder)
    return folder


def encode_and_align(folder, tokens, records, split="train", **encoding):
    """The tokenizer, the tokens, and the labels, splits and counts of `align`."""
    settings = experiment(**encoding)
    method = SftMethod(settings, [], load(tokens))
    features, targets, counts = training_steps.encode(method, records, folder, split)
    ids, _ = read_columns(features, ["ids"])
    columns, splits = read_columns(targets, ["labels"])
    return method.tokenizer, ids["ids"], columns["labels"], splits, counts


def test_only_the_answer_has_loss(tmp_path, tokens):
    tokenizer, ids, labels, splits, counts = encode_and_align(tmp_path, tokens, RECORDS)
    assert counts == {"gold": 4, "kept": 4, "shortened": 0, "lost": 0}
    for record, start, end in zip(RECORDS, splits[:-1], splits[1:], strict=True):
        answer = labels[start:end][labels[start:end] != IGNORED]
        assert tokenizer.decode(answer.tolist()) == f"{record.gold['text']}</s>"
        assert (answer == ids[start:end][-len(answer) :]).all()


def test_loss_all_applies_to_training_only(tmp_path, tokens):
    _, ids, labels, _, _ = encode_and_align(tmp_path, tokens, RECORDS, loss="all")
    assert (labels == ids).all()
    _, _, of_valid, _, _ = encode_and_align(tmp_path, tokens, RECORDS, split="valid", loss="all")
    _, _, only_answers, _, _ = encode_and_align(tmp_path, tokens, RECORDS, split="valid")
    assert (of_valid == only_answers).all()


def test_long_conversations_lose_whole_turns_and_are_counted(tmp_path, tokens, capsys):
    turns = [message(("user", "assistant")[i % 2], "Spell cat.") for i in range(9)]
    gold = {"text": "c-a-t", "kind": None, "format": None}
    records = [
        Record("long", serialize([message("system", "Hi."), *turns]), gold, None, ""),
        Record("far", "cat " * 99, gold, None, ""),
        RECORDS[0],
    ]
    tokenizer, ids, _, splits, counts = encode_and_align(tmp_path, tokens, records, max_length=48)
    assert counts == {"gold": 3, "kept": 1, "shortened": 1, "lost": 1}
    assert "of 3 conversations, 1 are too long and lost, 1 lost" in capsys.readouterr().out
    kept = tokenizer.decode(ids[splits[0] : splits[1]].tolist())
    assert kept.startswith("<s><|SYSTEM|>Hi.<|USER|>Spell cat.<|ASSISTANT|>")
    assert kept.endswith("<|USER|>Spell cat.<|ASSISTANT|>c-a-t</s>")
    assert np.diff(splits).max() <= 48
    assert splits[2] == splits[1]


def test_a_dataset_without_items_is_refused(tmp_path, tokens):
    method = SftMethod(experiment(max_length=4), [], load(tokens))
    features, targets, _ = training_steps.encode(method, RECORDS, tmp_path)
    items = method.items(features, targets, RECORDS)
    with pytest.raises(WxbError, match=r"all training records are too long; raise .*length': 4"):
        method.train(tmp_path, items, items, seed=1, checkpoints=tmp_path, caption="train")
