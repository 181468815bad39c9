"""What the stage preprocess makes of audio of the wild."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from stages.preprocess import preprocess
from tests.tasks.speech.record.audio.made import FORMATS, noise, tone, write
from wxb.core.files import read_json, read_jsonl
from wxb.corpora import clean
from wxb.tasks.speech import reading, record
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.record.audio.features import RATE

DATA = Path(__file__).parents[4] / "../shared/data/speech"


def cleaned(folder, rows, **changes):
    """The clean folder of a raw one that holds audio already."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "raw/manifest.jsonl").write_text(lines, encoding="utf-8")
    return made(folder / "raw", folder / "clean", **changes)


def made(raw, out, **changes):
    block = {"task": "speech", "path": "x", "split": {"test": 0.25, "valid": 0.25}, **changes}
    settings = Corpus.model_validate(block)
    preprocess(raw, settings, reading.Reading(), record.Labelling(), seed=1, label="test", out=out)
    return out


def kept(out):
    return {
        item.id: item
        for split in clean.splits(out)
        for item in clean.read(out / f"{split}.parquet", record.Labelling())
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path


def test_every_recording_is_kept_or_told_with_the_reason(folder):
    raw, rng = folder / "raw", np.random.default_rng(0)
    rows = []

    def add(name, sentence="一二", **more):
        rows.append({"ID": name, "path": name, "sentence": sentence, **more})
        return raw / name

    for number, suffix in enumerate(FORMATS):
        write(add(f"录音 {number}.{suffix}"), tone(48_000, hertz=300 + number), 48_000, suffix)
    write(add("stereo.wav"), np.stack([tone(hertz=900), np.zeros(len(tone()))], axis=1))
    write(add("again.wav"), tone(hertz=950))
    add("twice.flac").write_bytes((raw / "again.wav").read_bytes())
    write(add("silent.wav"), np.zeros(RATE))
    write(add("long.wav"), noise(rng, 6 * RATE))
    write(add("short.wav"), noise(rng, RATE // 50))
    write(add("blank.wav", " 。"), tone(hertz=960))
    write(add("unsaid.wav", None), tone(hertz=970))
    add("empty.wav").write_bytes(b"")
    add("text.wav").write_text("this is a text\n" * 9)
    add("cut.flac").write_bytes(write(folder / "c.flac", suffix="flac").read_bytes()[:3000])
    add("sound.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(900))
    add("missing.wav")
    write(folder / "outside.wav", tone(hertz=990))
    add("../outside.wav")
    out = cleaned(folder, rows, audio={"max_seconds": 5})
    reasons = {
        row["id"] or row["origin"]: row["reason"] for row in read_jsonl(out / "rejects.jsonl")
    }
    assert reasons == {
        "twice.flac": "duplicate audio",
        "silent.wav": "silent",
        "long.wav": "too long",
        "short.wav": "too short",
        "blank.wav": "blank sentence",
        "empty.wav": "empty file",
        "text.wav": "not readable",
        "cut.flac": "not readable",
        "sound.m4a": "not readable",
        "missing.wav": "missing file",
        "../outside.wav": "outside the corpus",
    }
    found = kept(out)
    assert len(found) == len(FORMATS) + 3
    assert found["unsaid.wav"].gold is None
    files = {path.name for path in (out / "audio").iterdir()}
    assert files == {Path(item.input).name for item in found.values()}
    for item in found.values():
        about = soundfile.info(item.input)
        assert (about.samplerate, about.channels, about.subtype) == (RATE, 1, "PCM_16")
        if item.gold:
            assert about.duration == pytest.approx(item.gold["seconds"], abs=1e-3)
    profile = read_json(out / "profile.json")
    assert profile["records"]["raw"] == len(found) + len(reasons)
    assert profile["splits"]["train"]["seconds"]["median"] == pytest.approx(1.1, abs=0.2)


def test_sentences_and_speakers_are_held_apart(folder):
    rows = []
    for number in range(24):
        name = f"{number}.wav"
        write(folder / "raw" / name, tone(hertz=300 + 20 * number))
        speaker = "abc"[number // 8]
        rows.append(
            {"ID": name, "path": name, "sentence": f"{speaker}{number % 4}", "speaker": speaker}
        )
    further = {"voices": {"by": "speaker", "share": 0.4}}
    split = {"by": "sentence", "test": 0.25, "valid": 0.1, "further": further}
    out = cleaned(folder, rows, split=split)
    said = {
        split: {
            r.gold["text"] for r in clean.labelled(out / f"{split}.parquet", record.Labelling())
        }
        for split in clean.splits(out)
    }
    assert len(set.union(*said.values())) == sum(map(len, said.values()))
    heard = {r.gold["speaker"] for r in clean.labelled(out / "voices.parquet", record.Labelling())}
    trained = {r.gold["speaker"] for r in clean.labelled(out / "train.parquet", record.Labelling())}
    assert heard
    assert not heard & trained


def test_a_field_that_is_no_text_is_told(folder):
    write(folder / "raw/a.wav")
    for number in range(4):
        write(folder / f"raw/{number}.wav", tone(hertz=500 + number))
    rows = [{"ID": str(n), "path": f"{n}.wav", "sentence": f"s{n}"} for n in range(4)]
    out = cleaned(folder, [*rows, {"ID": "a", "path": "a.wav", "sentence": 7}])
    (row,) = read_jsonl(out / "rejects.jsonl")
    assert (row["id"], row["reason"]) == ("a", "wrong type")


@pytest.mark.skipif(not DATA.is_dir(), reason="speech is not in ../shared/data")
def test_real_recordings_are_all_kept(tmp_path):
    names = ["transcripts.csv", "metadata.csv"]
    split = {"by": "speaker", "test": 0.25, "valid": 0.25}
    out = made(DATA / "fsdd", tmp_path / "fsdd", manifest=names, split=split)
    profile = read_json(out / "profile.json")
    assert profile["records"]["rejected"] == 0
    speakers = [{*profile["splits"][split]["speakers"]} for split in ("train", "valid", "test")]
    assert sorted(name for held in speakers for name in held) == [
        "george",
        "jackson",
        "nicolas",
        "theo",
    ]
