"""The sentences and voices of the test sets of params/speech.yaml; eSpeak NG is not needed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from ruamel.yaml import YAML

import demos.spoken
from demos.spoken.sentences import near_keys
from wxb.corpora.division import divide
from wxb.corpora.records import Record
from wxb.tasks.speech.params import Corpus

GROUPS = 30  # at least, in a test set
BLOCKS = YAML(typ="safe").load(Path("params/speech.yaml"))["corpora"]
CORPORA = {name: Corpus.model_validate(block) for name, block in BLOCKS.items()}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The raw records of each split of each corpus, of silent recordings, and its voice files."""
    silence = np.zeros(8, np.int16)
    voices = []

    def speak(utterances, variants):
        voices.append(variants)
        return ((silence, 16000) for _ in utterances)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demos.spoken.espeak, "speak", speak)
        patch.setattr(demos.spoken, "simulate_room", lambda samples, *_, **__: samples)
        splits = {n: divided(corpus, tmp_path_factory.mktemp(n)) for n, corpus in CORPORA.items()}
    return splits, dict(zip(splits, voices, strict=True))


@pytest.fixture
def splits(generated):
    return generated[0]


def divided(corpus, folder):
    raw = [*demos.spoken.generate(**corpus.generate.model_dump(), seed=1, folder=folder)]
    fields = [field for field, _ in corpus.split.held_out_fields.values()]
    records = [
        Record(r["ID"], r["path"], r, "zh", r["sentence"], values=tuple(r[f] for f in fields))
        for r in raw
    ]
    members, _ = divide(records, corpus.split, lambda _: "", limit=None, seed=1)
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


def test_no_two_voices_are_alike(generated):
    _, voices = generated
    timbres = [
        tuple(line.split()[3:] for line in variant.splitlines() if line.startswith("formant"))
        for variants in voices.values()
        for variant in variants.values()
    ]
    assert len({*map(str, timbres)}) == len(timbres) == 140


near = st.text("ab二", max_size=5)


@given(near, near)
def test_texts_within_a_character_share_a_key(text, other):
    assert bool(near_keys(text) & near_keys(other)) == (Levenshtein.distance(text, other) <= 1)
