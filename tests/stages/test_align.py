"""Tokenize and align every split of a corpus."""

from pathlib import Path

from stages import align, tokenize
from tests.corpora.records import record
from wxb.core.files import read_json, write_json
from wxb.core.params import check, read_yaml
from wxb.corpora import clean
from wxb.corpora.profile import profile
from wxb.corpora.text.encoded import read_encoded
from wxb.corpora.text.tokenizers import train
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Labelling, Span

ROOT = Path(__file__).parents[2]


def test_every_split_is_tokenized_and_aligned(tmp_path, monkeypatch):
    params = check(read_yaml(ROOT / "params.yaml"))
    monkeypatch.chdir(tmp_path)
    corpus = Path("data/clean/pii")
    corpus.mkdir(parents=True)
    splits = {
        name: [record(i, f"Ann met Bob{i}", (Span(0, 3, "NAME"),)) for i in range(size)]
        + [record("raw", "Nobody labelled this", None)]
        for name, size in (("train", 4), ("valid", 1), ("test", 2), ("situations", 3))
    }
    for name, members in splits.items():
        clean.write(corpus / f"{name}.parquet", members, Labelling())
    write_json(corpus / "profile.json", profile(splits, [], Reading()))
    texts = [r.input for r in splits["train"]]
    train("wordpiece", 100, texts).save_pretrained("data/tokenizers/encoder")

    tokenize.main(params, "ner-encoder")
    align.main(params, "ner-encoder")

    features = Path("data/features/ner-encoder")
    assert {file.stem for file in features.iterdir()} == {*splits}
    assert len(read_encoded(features / "situations.arrow").splits) == 3 + 1
    targets = Path("data/targets/ner-encoder")
    assert {file.stem for file in targets.glob("*.arrow")} == {*splits}
    accounts = read_json(targets / "alignment.json")
    assert {name: counts["gold"] for name, counts in accounts.items()} == {
        "train": 4,
        "valid": 1,
        "test": 2,
        "situations": 3,
    }
