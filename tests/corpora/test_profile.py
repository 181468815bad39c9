import pytest

from tests.corpora.records import record
from wxb import tasks
from wxb.corpora.profile import nearness, profile, verbatim
from wxb.corpora.records import Record, Reject
from wxb.corpora.text.templates import message
from wxb.tasks.chat.record.conversation import serialize
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Span


def test_the_profile_accounts_for_every_record():
    splits = {
        "train": [
            record(
                1,
                "Ann met Bob",
                (Span(0, 3, "NAME"), Span(8, 11, "NAME")),
                repaired=("span found by value", "span found by value", "repeated id"),
            ),
            record(2, "x" * 99, None, language=None),
        ],
        "valid": [record(3, "nobody"), record(5, "\u1000\u1001\u1002", (Span(0, 1, "NAME"),))],
        "test": [record(4, "Bonn", (Span(0, 4, "CITY"),), language="de")],
    }
    rejects = [Reject("f:line 9", "blank text", "", None), Reject("7", "too long", "", "7")]
    counts = profile(splits, rejects, Reading())
    assert counts["records"] == {"raw": 7, "rejected": 2, "train": 2, "valid": 2, "test": 1}
    assert counts["rejects"] == {"blank text": 1, "too long": 1}
    assert counts["repaired"] == {"repeated id": 1, "span found by value": 2}
    assert counts["labels"] == ["NAME"]
    assert counts["splits"]["train"] == {
        "labelled": 1,
        "unlabelled": 1,
        "without_spans": 0,
        "at_word_edges": 1.0,
        "near_duplicates": 0,
        "groups": 2,
        "groups_sharing_wordings": 0,
        "characters": {"median": 11, "p95": 99, "longest": 99},
        "languages": {"en": 1, "unknown": 1},
        "spans": {"NAME": 2},
    }
    assert counts["splits"]["valid"]["without_spans"] == 1
    assert counts["splits"]["valid"]["at_word_edges"] == 1.0  # of Burmese


def test_near_duplicates_of_a_split_are_counted():
    train = [
        record(1, "Ann is here", (Span(0, 3, "NAME"),), group="a"),
        record(2, "Bob is here", (Span(0, 3, "NAME"),), group="b"),
        record(3, "Eve IS here", (Span(0, 3, "NAME"),), group="b"),
        record(4, "so it is", group="c"),
        record(5, "So it is", group="c"),
        record(6, "Joe is here", None, group="d"),
        record(7, "1 : 2", group="e"),
        record(8, "3 : 4", group="f"),
    ]
    counts = profile({"train": train}, [], Reading())["splits"]["train"]
    assert counts["near_duplicates"] == 3
    assert (counts["groups"], counts["groups_sharing_wordings"]) == (6, 2)


def chat(question, answer="yes"):
    turns = [message("system", "Be exact."), message("user", question)]
    return serialize(turns), {"text": answer, "kind": "k", "format": None}


@pytest.mark.parametrize(
    ("task", "make"),
    [
        ("chat", chat),
        ("speech", lambda text: (f"{len(text)}.flac", {"text": text, "speaker": "a", "rules": ""})),
        ("classification", lambda text: (text, "real")),
        ("translation", lambda text: (text, ("a",))),
        ("ner", lambda text: (text, ())),
    ],
)
def test_leakage_is_measured_on_the_test_input_of_each_task(task, make):
    """Of three labelled test records one is in training, and one differs from it in one word."""
    reading = tasks.get(task).reading
    texts = ["where does the tall woman live", "where does the tall person live"]
    test = [Record(text, *make(text), None, "") for text in [*texts, "nobody answers here at all"]]
    assert nearness(test, [Record("1", *make(texts[0]), None, "")], reading) == {
        "records": 3,
        "within_one_word": 0.6667,
        "within_two_words": 0.6667,
    }


def test_sentences_and_runs_of_five_words_in_training_are_counted():
    reading = tasks.get("classification").reading
    train = [record(1, "It is so. A b c d e f."), record(2, "C. Unlabelled.", None)]
    test = [record(3, "It is so! it IS so. X b c d e f."), record(4, "Unlabelled.")]
    # "it is so." is one of four sentences; "b c d e f" and "c d e f ." are two of eleven runs.
    content = profile({"train": train, "test": test}, [], reading)
    assert content["verbatim"]["test"] == {"sentences": 0.25, "five_words": 0.1818}
    unlabelled = record(5, "C. Unlabelled.", None)
    repeated = profile({"train": train, "test": [*test, unlabelled]}, [], reading)
    assert repeated["verbatim"] == content["verbatim"]
    assert repeated["nearness"] == content["nearness"]
    assert verbatim([], train, reading) == {"sentences": None, "five_words": None}
