"""A study of recordings as users run it, at the smallest size: table, page, transcripts."""

import json
import shutil
from itertools import pairwise

import pytest
import soundfile

from tests import forked, traced
from tests.copied import Project

pytest.importorskip("espeakng_loader", reason="the extra `speech` is not installed")

KEPT = ["speech-whisper-frozen", "speech-whisper-lora"]


def small(params):
    """The model of another experiment, as it is and adapted, on few recordings; seconds each."""
    params["portable"], params["resamples"] = False, 50
    for name, number in (("speech", 120), ("speech-voices", 60)):
        params["corpora"][name]["generate"]["labelled"] = number
    for name in {*params["experiments"]} - {*KEPT, "speech-whisper"}:
        del params["experiments"][name]
    params["studies"]["speech"]["experiments"] = KEPT
    params["studies"]["speech-base"]["experiments"] = ["speech-whisper"]
    for section, name in (("studies", "ner"), ("backbones", "encoder"), ("backbones", "decoder")):
        del params[section][name]
    del params["corpora"]["pii"]
    params["lessons"], params["parity"] = {}, {}
    for experiment in params["experiments"].values():
        experiment["training"]["epochs"] = 1


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("speech") / "project")
    made.run("wxb", "params", "speech")
    made.edit(small)
    made.traces = made.folder.parent / "traces"
    made.traces.mkdir()
    forked.stages(made, "report@speech", traces=made.traces)
    return made


def test_its_stages_declare_what_they_import(project):
    assert traced.undeclared(project, project.traces) == {}


def test_dvc_finds_nothing_to_do(project):
    assert "up to date" in project.run("dvc", "repro", "report@speech")


def test_tables_and_pages_tell_of_it(project):
    table = project.run("wxb", "table", "speech")
    assert "CER" in table
    assert all(name in table for name in KEPT)
    metrics = {
        name: json.loads((project.folder / f"reports/metrics/speech/{name}.json").read_text())
        for name in KEPT
    }
    frozen, adapted = (metrics[name] for name in KEPT)
    assert (frozen["updates"], frozen["trainable_parameters"]) == (0, 0)
    assert 0 < adapted["trainable_parameters"] < 0.2 * adapted["parameters"]
    assert {"cer", "cer_low", "cer_high", "wer", "voices_cer", "voices_wer"} <= adapted.keys()
    page = (project.folder / "reports/speech.html").read_text(encoding="utf-8")
    for told in ("data:audio/flac;base64", "data:image/png;base64", "Real-time factor"):
        assert told in page
    assert "media-src data:" in page


def test_files_folders_and_standard_input_are_written_down(project):
    folder = project.folder / "录音"
    folder.mkdir()
    source = sorted((project.folder / "data/raw/speech/audio").glob("*.flac"))[0]
    shutil.copy(source, folder / "一 二.flac")
    samples, rate = soundfile.read(source)
    soundfile.write(folder / "two.wav", [*samples] * 4, rate, subtype="PCM_24")
    (folder / "notes.txt").write_text("not a recording")
    command = ["wxb", "predict", "-e", "speech-whisper", "--json"]
    lines = project.run(*command, "录音").splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    assert [row["input"] for row in found] == ["录音/two.wav", "录音/一 二.flac"]
    long = found[0]["segments"]
    assert len(long) > 1
    assert all(one["start"] < one["end"] <= other["start"] for one, other in pairwise(long))
    piped = project.run("bash", "-c", f"cat '录音/一 二.flac' | {' '.join(command)} -")
    again = [json.loads(line) for line in piped.splitlines() if line.startswith("{")]
    assert again == [{**found[1], "input": "-"}]
    (folder / "broken.wav").write_bytes(b"")
    code, told = project.attempt(*command, "录音", "录音/notes.txt")
    assert code != 0
    assert "broken.wav: empty file" in told
    assert "notes.txt: not readable" in told
    assert all(json.dumps(row, ensure_ascii=False) in told for row in found)
