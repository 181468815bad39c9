import json
import random
from itertools import islice

import pytest
import soundfile

from demos.spoken.espeak import Utterance, speak
from demos.spoken.sentences import KINDS, sentences
from wxb.core.params.corpora import Corpus
from wxb.corpora import fetching
from wxb.tasks.speech.params import Corpus as Speech

pytest.importorskip("espeakng_loader", reason="the extra `speech` is not installed")

PATH = "demos/spoken"


def corpus(**changes) -> Corpus:
    generate = {"labelled": 6, "unlabelled": 1, "languages": ["zh", "en"], "voices": ["m1", "f2"]}
    return Speech.model_validate(
        {
            "task": "speech",
            "path": PATH,
            "generate": {**generate, **changes},
            "split": {"test": 0.2, "valid": 0.2},
        }
    )


def fetch(folder, **changes):
    folder.mkdir()
    fetching.fetch(corpus(**changes), folder, seed=1, label="test")
    lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_seed_determines_the_recordings(tmp_path):
    first, again = fetch(tmp_path / "a"), fetch(tmp_path / "b")
    assert first == again
    for record in first:
        paths = [tmp_path / name / record["path"] for name in "ab"]
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert 0.2 < soundfile.info(paths[0]).duration < 5
    assert [record["sentence"] is None for record in first] == 6 * [False] + [True]
    assert {record["speaker"] for record in first} == {"m1", "f2"}


def test_sentences_are_unique_and_shares_disjoint():
    texts = set()
    for share in [(0.0, 0.5), (0.5, 1.0)]:
        generated = islice(sentences(["zh", "en"], share, random.Random(1)), 400)
        texts |= {text for text, _, _ in generated}
    assert len(texts) == 800
    chinese = islice(sentences(["zh"], (0.0, 1.0), random.Random(1)), 100)
    assert {kind for _, _, kind in chinese} == {*KINDS}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"languages": ["xx"]}, r"found languages \['xx'\]; expected some of"),
        ({"sentence_share": [0.5, 0.5]}, "no more than 0 sentences"),
        ({"voices": ["nobody"]}, "no voice 'nobody'"),
    ],
)
def test_invalid_settings_are_errors(tmp_path, changes, message):
    with pytest.raises(Exception, match=message):
        fetch(tmp_path / "a", **changes)


def test_a_language_that_espeak_lacks_is_an_error():
    with pytest.raises(ValueError, match="has no language 'en-GB'"):
        next(speak([Utterance("one", "en-GB", "f1", 160, 50)]))
