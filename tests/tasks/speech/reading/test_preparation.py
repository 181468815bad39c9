"""The stage preprocess on recordings of many formats and defects."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from stages.preprocess import preprocess
from tests.tasks.speech.tones import FORMATS, noise, tone, write
from wxb.core.files import read_json, read_jsonl
from wxb.corpora import clean
from wxb.tasks.speech import record
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.record.audio import RATE


def cleaned(folder, rows, **changes):
    """Write a manifest into a raw folder with audio, and preprocess it; the clean folder."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "raw/manifest.jsonl").write_text(lines, encoding="utf-8")
    block = {"task": "speech", "path": "x", "split": {"test": 0.25, "valid": 0.25}, **changes}
    corpus = Corpus.model_validate(block)
    preprocess(folder / "raw", corpus, seed=1, caption="test", out=folder / "clean")
    return folder / "clean"


def records(out):
    """The records of a clean folder by id."""
    return {
        item.id: item
        for split in clean.splits(out)
        for item in clean.read(clean.split_file(out, split), record.LABELLING)
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path


def test_every_recording_is_kept_or_rejected_with_a_reason(folder, monkeypatch):
    monkeypatch.setattr("wxb.core.progress.Progress.console", console := io.StringIO())
    raw, rng = folder / "raw", np.random.default_rng(0)
    rows = []

    def add(name, sentence="一二", **more):
        rows.append({"ID": name, "path": name, "sentence": sentence, **more})
        return raw / name

    for index, suffix in enumerate(FORMATS):
        write(add(f"录音 {index}.{suffix}"), tone(48_000, hertz=300 + index), 48_000, suffix)
    write(add("stereo.wav"), np.stack([tone(hertz=900), np.zeros(len(tone()))], axis=1))
    write(add("again.wav"), tone(hertz=950))
    add("twice.flac").write_bytes((raw / "again.wav").read_bytes())
    write(add("silent.wav"), np.zeros(RATE))
    write(add("long.wav"), noise(rng, 6 * RATE))
    write(add("short.wav"), noise(rng, RATE // 50))
    write(add("blank.wav", " 。"), tone(hertz=960))
    write(add("number.wav", 7), tone(hertz=965))
    write(add("unsaid.wav", None), tone(hertz=970))
    add("empty.wav").write_bytes(b"")
    add("text.wav").write_text("this is a text\n" * 9)
    add("cut.flac").write_bytes(write(folder / "c.flac", suffix="flac").read_bytes()[:3000])
    add("sound.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(900))
    add("missing.wav")
    write(folder / "outside.wav", tone(hertz=990))
    add("../outside.wav")
    write(raw / "unnamed.wav", tone(hertz=980))
    out = cleaned(folder, rows, audio={"max_seconds": 5})
    assert "test: 3 recordings are in no usable row" in console.getvalue()
    reasons = {
        row["id"] or row["origin"]: row["reason"] for row in read_jsonl(out / "rejects.jsonl")
    }
    assert reasons == {
        "twice.flac": "duplicate audio",
        "silent.wav": "silent",
        "long.wav": "too long",
        "short.wav": "too short",
        "blank.wav": "blank sentence",
        "number.wav": "wrong type",
        **dict.fromkeys(("empty.wav", "text.wav", "cut.flac", "sound.m4a"), "not readable"),
        "missing.wav": "missing file",
        "../outside.wav": "outside the corpus",
    }
    kept = records(out)
    assert len(kept) == len(FORMATS) + 3
    assert kept["unsaid.wav"].gold is None
    assert {*out.rglob("*.flac")} == {Path(item.input) for item in kept.values()}
    for item in kept.values():
        info = soundfile.info(item.input)
        assert (info.samplerate, info.channels, info.subtype) == (RATE, 1, "PCM_16")
        if item.gold:
            assert info.duration == pytest.approx(item.gold["seconds"], abs=1e-3)
    profile = read_json(out / "profile.json")
    assert profile["records"]["raw"] == len(kept) + len(reasons)
    assert profile["splits"]["train"]["seconds"]["median"] == pytest.approx(1.1, abs=0.2)


def test_a_further_test_recording_changes_no_training_data(folder):
    raw, contents = folder / "raw", []
    split = {"files": {name: [f"{name}.jsonl"] for name in ("train", "valid", "test")}}
    corpus = Corpus.model_validate({"task": "speech", "path": "x", "split": split})
    for index, name in enumerate(["train", "valid", "test", "test"]):
        write(raw / f"{index}.wav", tone(hertz=300 + 50 * index))
        with (raw / f"{name}.jsonl").open("a") as lines:
            lines.write(json.dumps({"path": f"{index}.wav", "sentence": f"on{'e' * index}"}) + "\n")
        if index > 1:
            out, home = folder / str(index), Path("data/clean/x")
            preprocess(raw, corpus, seed=1, caption="test", out=out, home=home)
            files = [path for path in out.rglob("*") if path.is_file()]
            contents.append({str(path.relative_to(out)): path.read_bytes() for path in files})
    before, after = contents
    assert {*after} - {*before} == {"test/000001.flac"}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"profile.json", "test.parquet"}
