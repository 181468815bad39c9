"""What the test sets of params/chat.yaml share with tuning and with texts for pretraining."""

import json

import pytest
from ruamel.yaml import YAML

from demos.questions import WORDING, generate
from demos.questions.facts import LANGUAGES, facts
from tests.project_copy import ROOT
from wxb.corpora.division import divide
from wxb.corpora.reading import read_folder
from wxb.tasks.chat.params import Corpus
from wxb.tasks.chat.reading import Reading
from wxb.tasks.chat.record.conversation import deserialize

PARAMS = ROOT / "params/chat.yaml"
FACTS = {fact.key: fact for language in LANGUAGES for fact in facts(language)}
GROUPS = {"test": "kind", "combinations": "combination", "unseen-facts": "unseen"}


class Splits:
    """The splits of the study: for each, its questions as generated, and the training texts."""

    def __init__(self, folder):
        block = YAML(typ="safe").load(PARAMS)["corpora"]["chat"]
        corpus, reading = Corpus(**block), Reading()
        generated = {row["id"]: row for row in generate(**block["generate"], seed=1)}
        lines = [json.dumps(row) for row in generated.values()]
        (folder / "questions.jsonl").write_text("\n".join(lines))
        records = list(read_folder(folder, corpus, reading))
        splits, _ = divide(records, corpus.split, max_records=None, seed=1)
        self.questions = {
            name: [(generated[record.id], record) for record in members if record.gold]
            for name, members in splits.items()
        }
        self.texts = [record.input for record in splits["train"] if record.gold is None]

    def values(self, field, *names):
        """The values of a field in some splits."""
        return {row[field] for name in names for row, _ in self.questions[name]}

    def passages(self, *names):
        """The passages of some splits, which are the last lines of their questions."""
        questions = (
            deserialize(record.input)[-1]["content"]
            for name in names
            for _, record in self.questions[name]
        )
        return {question.split("\n")[1] for question in questions if "\n" in question}


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return Splits(tmp_path_factory.mktemp("questions"))


def rendered(fact):
    """All sentences that state a fact, and a text that asks about it."""
    wording = WORDING[fact.language]
    own = wording["kinds"].get(fact.kind, {})
    block = wording[own.get("wording", fact.kind)]
    slots = {**own, **fact.slots, "answer": fact.answer}
    passage = wording["passage"].format(**slots) + " " if "name" in slots else ""
    question = f"Question: {passage}{block['faq'].format(**slots)}\nAnswer: {fact.answer}\n"
    return [template.format(**slots) for template in block["statements"]], question


@pytest.mark.parametrize("name", GROUPS)
def test_no_fact_and_no_passage_of_a_test_set_is_in_tuning(splits, name):
    tuned = splits.values("content", "train", "valid")
    assert len(tuned) > 1800
    assert not splits.values("content", name) & tuned
    assert len(splits.values(GROUPS[name], name)) >= 30  # intervals resample them
    assert splits.passages(name)
    assert not splits.passages(name) & splits.passages("train", "valid")


def test_texts_state_the_facts_of_test_and_none_of_the_unseen_facts(splits):
    texts = "\n".join(splits.texts)
    assert "" not in splits.values("unseen", "unseen-facts")
    assert splits.values("unseen", "train", "valid", "test") == {""}
    for content in splits.values("content", "test"):
        assert any(sentence in texts for sentence in rendered(FACTS[content])[0]), content
    for content in splits.values("content", "unseen-facts"):
        assert not any(sentence in texts for sentence in rendered(FACTS[content])[0]), content
    assert not any(passage in texts for passage in splits.passages("unseen-facts"))


def test_texts_ask_about_no_fact_of_a_conversation(splits):
    texts = "".join(f"{text}\n" for text in splits.texts)
    asked = {key for key, fact in FACTS.items() if rendered(fact)[1] in texts}
    assert len(asked) > 300
    assert not splits.values("content", *splits.questions) & asked


def test_combinations_are_in_no_other_split_but_their_kinds_and_forms_are_in_tuning(splits):
    held_out = splits.values("combination", "combinations")
    others = [name for name in splits.questions if name != "combinations"]
    assert not held_out & splits.values("combination", *others)
    for part in (0, 1):  # kind, form
        tuned = {name.split()[part] for name in splits.values("combination", "train")}
        assert {name.split()[part] for name in held_out} <= tuned
