"""The sentences and voices of the test sets of params/speech.yaml; eSpeak NG is not needed."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from ruamel.yaml import YAML

import demos.spoken
from demos.spoken.sentences import near_keys, sentences
from wxb.corpora.division import divide
from wxb.corpora.records import Record
from wxb.tasks.speech.params import Corpus

GROUPS = 30  # at least, in a test set
BLOCKS = YAML(typ="safe").load(Path("params/speech.yaml"))["corpora"]
CORPORA = {name: Corpus.model_validate(block) for name, block in BLOCKS.items()}


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    """The raw records of each split of each corpus, of silent recordings."""
    silence = np.zeros(8, np.int16), 16000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            demos.spoken.espeak, "speak", lambda utterances, _: (silence for _ in utterances)
        )
        patch.setattr(demos.spoken, "simulate_room", lambda samples, *_, **__: samples)
        return {n: divided(corpus, tmp_path_factory.mktemp(n)) for n, corpus in CORPORA.items()}


def divided(corpus, folder):
    raw = [*demos.spoken.generate(**corpus.generate.model_dump(), seed=1, folder=folder)]
    fields = [field for field, _ in corpus.split.held_out_fields.values()]
    records = [
        Record(r["ID"], r["path"], r, "zh", r["sentence"], values=tuple(r[f] for f in fields))
        for r in raw
    ]
    members, _ = divide(records, corpus.split, max_records=None, seed=1)
    return {split: [record.gold for record in members[split]] for split in members}


def texts(records):
    return [record["sentence"] for record in records]


def test_no_test_sentence_is_within_a_character_of_a_training_sentence(splits):
    for corpus in splits.values():
        held_out = [text for name in corpus if name != "train" for text in texts(corpus[name])]
        for other in splits.values():
            distances = cdist(held_out, texts(other["train"]), scorer=Levenshtein.distance)
            assert distances.min() >= 2


def test_test_sets_have_many_voices(splits):
    for corpus in splits.values():
        voices = {split: {record["speaker"] for record in corpus[split]} for split in corpus}
        for split in voices.keys() - {"train", "valid"}:
            assert len(voices[split]) >= GROUPS
        held_out = voices.get("voices", set())
        assert not held_out & (voices["train"] | voices["valid"] | voices["test"])
    assert "voices" in splits["speech-voices"]


near = st.text("ab二", max_size=5)


@given(near, near)
def test_texts_within_a_character_share_a_key(text, other):
    assert bool(near_keys(text) & near_keys(other)) == (Levenshtein.distance(text, other) <= 1)


def test_disjoint_shares_have_no_sentence_in_common():
    shares = [{text for text, _ in islice(sentences(share), 100)} for share in [(0, 0.5), (0.5, 1)]]
    assert len(shares[0] | shares[1]) == 200
    with pytest.raises(ValueError, match="no more than 0 sentences"):
        next(sentences((0.5, 0.5)))
