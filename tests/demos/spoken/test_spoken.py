import json

import pytest
import soundfile

from wxb.corpora import fetching
from wxb.tasks.speech.params import Corpus

pytest.importorskip("espeakng_loader", reason="the extra `speech` is not installed")

PATH = "demos/spoken"


def fetch(folder, **changes):
    generate = {"labelled": 6, "unlabelled": 1, "languages": ["zh"], "voices": 2, **changes}
    block = {"path": PATH, "generate": generate, "split": {"test": 0.2, "valid": 0.2}}
    corpus = Corpus.model_validate({"task": "speech", **block})
    folder.mkdir()
    fetching.fetch(corpus, folder, seed=1, caption="test")
    lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_a_seed_determines_the_recordings(tmp_path):
    first, again = fetch(tmp_path / "a"), fetch(tmp_path / "b")
    assert first == again
    for record in first:
        paths = [tmp_path / name / record["path"] for name in "ab"]
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert 0.2 < soundfile.info(paths[0]).duration < 5
    assert [record["sentence"] is None for record in first] == 6 * [False] + [True]
    assert {record["speaker"] for record in first} == {"voice-000", "voice-001"}


def test_an_unknown_language_is_an_error(tmp_path):
    with pytest.raises(Exception, match=r"found languages \['xx'\]; expected \['zh'\]"):
        fetch(tmp_path / "a", languages=["xx"])
