import json
import random

import pytest
import soundfile

from demos.spoken.espeak import Utterance, spoken
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


def test_it_says_the_same_each_time_and_other_things_for_another_share(tmp_path):
    first, again = fetch(tmp_path / "a"), fetch(tmp_path / "b")
    assert first == again
    for record in first:
        paths = [tmp_path / name / record["path"] for name in "ab"]
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert 0.2 < soundfile.info(paths[0]).duration < 5
    assert [record["sentence"] is None for record in first] == 6 * [False] + [True]
    assert {record["speaker"] for record in first} == {"m1", "f2"}


def test_no_sentence_twice_and_none_of_another_share():
    parts = [(0.0, 0.5), (0.5, 1.0)]
    said = []
    for share in parts:
        found = sentences(["zh", "en"], share, random.Random(1))
        said.append([next(found)[0] for _ in range(400)])
    assert len({*said[0], *said[1]}) == 800
    some = sentences(["zh"], (0.0, 1.0), random.Random(1))
    assert {kind for _, _, kind in (next(some) for _ in range(100))} == {*KINDS}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"languages": ["xx"]}, r"found languages \['xx'\]; expected some of"),
        ({"sentence_share": [0.5, 0.5]}, "no more than 0 sentences"),
        ({"voices": ["nobody"]}, "no voice 'nobody'"),
    ],
)
def test_what_cannot_be_said_is_told(tmp_path, changes, message):
    with pytest.raises(Exception, match=message):
        fetch(tmp_path / "a", **changes)


def test_a_language_that_espeak_does_not_know_is_told():
    with pytest.raises(ValueError, match="knows no language 'en-GB'"):
        next(spoken([Utterance("one", "en-GB", "f1", 160, 50)]))
