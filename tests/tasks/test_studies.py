"""A small study of each profile, as users run it: stages, table, page, predictions."""

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple

import pytest
import soundfile

from tests import forks, import_traces
from tests.project_copy import Project

pytestmark = pytest.mark.slow


class Study(NamedTuple):
    """A reduced study, and texts on its page."""

    members: list[str]
    small: Callable  # changes the parameters of its profile
    page: tuple[str, ...]
    others: tuple[str, ...] = ()  # experiments of other studies that it needs


def small_chat(params):
    params["corpora"]["chat"]["generate"].update(labelled=400, unlabelled=100)
    params["corpora"]["chat"]["split"].update(test=0.15, valid=0.15)
    backbone = params["backbones"]["chat-llama"]
    backbone["tokenizer"]["vocabulary"] = 400
    backbone["architecture"].update(hidden_size=64, num_hidden_layers=1, intermediate_size=64)
    backbone["pretraining"].update(steps=4, batch_size=8)
    for block in params["experiments"].values():
        if block["method"] == "sft":
            block["prediction"].update(max_new_tokens=6)


def small_reviews(params):
    params["corpora"]["reviews"]["generate"].update(labelled=200, unlabelled=0)
    for name in ("reviews-encoder", "reviews-minilm"):
        del params["backbones"][name]
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    params["backbones"]["reviews-initial"]["architecture"].update(shape, intermediate_size=32)


def small_speech(params):
    for name, number in (("speech", 120), ("speech-voices", 60)):
        params["corpora"][name]["generate"]["labelled"] = number
    params["studies"]["speech-base"]["experiments"] = ["speech-whisper"]


def small_translation(params):
    params["corpora"]["phrases"]["generate"]["labelled"] = 400
    params["backbones"]["phrases-pieces"]["tokenizer"]["vocabulary"] = 400
    small = {"embedding_size": 16, "hidden_size": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    for block in params["experiments"].values():
        block["model"].update({k: v for k, v in small.items() if k in block["model"]})
        if block["training"]:
            block["training"].update(batch_size=16)


STUDIES = {
    "chat": Study(
        ["chat-few-shot", "chat-qlora-neftune", "chat-qlora-neftune-padded", "chat-nearest"],
        small_chat,
        (*(f'<section id="{name}"' for name in ("kinds", "replies", "published")), "1.881"),
    ),
    "reviews": Study(
        ["reviews-tfidf", "reviews-bilstm", "reviews-transformer-cls", "reviews-nearest"],
        small_reviews,
        ('<section id="classes"', '<section id="confusions"', "AUROC", "inputs a second"),
    ),
    "speech": Study(
        ["speech-whisper-frozen", "speech-whisper-lora", "speech-nearest"],
        small_speech,
        ("data:audio/flac;base64", "media-src data:"),
        others=("speech-whisper",),
    ),
    "translation": Study(
        ["translation-attention", "translation-gpt2", "translation-nearest"],
        small_translation,
        (
            *(f'<section id="{name}"' for name in ("kinds", "translations", "published")),
            *("Attention of translation-attention", "23.23"),
        ),
    ),
}


def small(params, name):
    """Reduce the parameters to some experiments of one study on few records, seconds each."""
    study = STUDIES[name]
    params["portable"] = False
    for other in {*params["experiments"]} - {*study.members, *study.others}:
        del params["experiments"][other]
    params["lessons"] = {}
    del params["studies"]["ner"]
    for backbone in ("encoder", "decoder", "words"):
        del params["backbones"][backbone]
    if "pii" in params["corpora"]:
        del params["corpora"]["pii"]
    params["studies"][name]["experiments"] = study.members
    for block in params["experiments"].values():
        if "epochs" in block["training"]:
            block["training"].update(epochs=1)
    study.small(params)


@pytest.fixture(scope="module", params=STUDIES)
def project(request, tmp_path_factory):
    """A project in which a study has run."""
    name = request.param
    if name == "speech" and find_spec("espeakng_loader") is None:
        pytest.skip("the extra `speech` is not installed")
    project = Project(tmp_path_factory.mktemp(name) / "project")
    project.study, project.traces = name, project.folder.parent / "traces"
    project.run("wxb", "params", name)
    project.edit(lambda params: small(params, name))
    project.traces.mkdir()
    forks.stages(project, f"report@{name}", traces=project.traces)
    return project


def test_stages_declare_what_they_import(project):
    verbs = {stage.partition("@")[0] for stage in import_traces.imported(project.traces)}
    assert verbs > {"train", "evaluate", "report"}
    assert import_traces.undeclared(project, project.traces) == {}


def test_dvc_finds_nothing_to_do(project):
    assert "up to date" in project.run("dvc", "repro", f"report@{project.study}")


def test_page_and_table_are_complete(project):
    page = (project.folder / f"reports/{project.study}.html").read_text(encoding="utf-8")
    for text in STUDIES[project.study].page:
        assert text in page
    table = project.run("wxb", "table", project.study)
    assert all(name in table for name in STUDIES[project.study].members)
    study = json.loads((project.folder / f"reports/studies/{project.study}.json").read_text())
    assert [*study["systems"]] == STUDIES[project.study].members


def test_every_record_and_every_gold_is_counted_once(project):
    profiles = [*project.folder.glob("data/clean/*/profile.json")]
    accounts = [*project.folder.glob("data/targets/*/alignment.json")]
    assert len(accounts) >= len(STUDIES[project.study].members)
    for counts, whole in (
        *((json.loads(path.read_text())["records"], "raw") for path in profiles),
        *((row, "gold") for path in accounts for row in json.loads(path.read_text()).values()),
    ):
        assert counts.pop(whole) == sum(counts.values()) > 0


@pytest.mark.parametrize("project", ["speech"], indirect=True)
def test_files_folders_and_standard_input_are_transcribed(project):
    folder = project.folder / "录音"
    folder.mkdir()
    source = sorted((project.folder / "data/raw/speech/audio").glob("*.flac"))[0]
    shutil.copy(source, folder / "一 二.flac")
    samples, rate = soundfile.read(source)
    soundfile.write(folder / "two.wav", [*samples] * 4, rate, subtype="PCM_24")
    (folder / "._two.wav").touch()  # as macOS writes beside each file
    (folder / "notes.txt").write_text("not a recording")
    command = ["wxb", "predict", "-e", "speech-whisper", "--json"]
    lines = project.run(*command, "录音").splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    assert [row["input"] for row in rows] == ["录音/two.wav", "录音/一 二.flac"]
    segments = rows[0]["segments"]
    assert len(segments) > 1
    assert all(left["start"] < left["end"] <= right["start"] for left, right in pairwise(segments))
    piped = project.run("bash", "-c", f"cat '录音/一 二.flac' | {' '.join(command)} -")
    from_pipe = [json.loads(line) for line in piped.splitlines() if line.startswith("{")]
    assert from_pipe == [{**rows[1], "input": "-"}]
    (folder / "broken.wav").write_bytes(b"")
    code, output = project.attempt(*command, "录音", "录音/notes.txt")
    assert code != 0
    assert "broken.wav: not readable" in output
    assert "notes.txt: not readable" in output
    assert all(json.dumps(row, ensure_ascii=False) in output for row in rows)


@pytest.mark.parametrize("project", ["chat"], indirect=True)
def test_a_trained_model_answers_in_a_pipe_and_can_be_merged(project):
    project.run("wxb", "merge", "chat-qlora-neftune", "--output", "merged")
    command = "printf 'What is 1 plus 2?\\n你好\\n/reset\\n' | wxb chat -e merged"
    assert "conversation cleared" in project.run("bash", "-c", command)
    output = project.run("wxb", "predict", "-e", "chat-qlora-neftune", "--json", "Spell cat.")
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert [row["input"] for row in rows] == ["Spell cat."]
    assert {"reply", "ended"} <= rows[0].keys()
    code, output = project.attempt("wxb", "chat", "-e", "chat-nothing")
    assert code == 1
    assert "chat-nothing" in output


@pytest.mark.parametrize("project", ["translation"], indirect=True)
def test_a_trained_model_translates_with_options(project):
    command = ["wxb", "predict", "-e", "translation-attention", "--json"]
    sources = ["", "老师昨天买了三本书。", "\0 and 😀"]
    (project.folder / "sources.txt").write_text("\n".join(sources))
    greedy = project.run(*command, "--beam", "1", "sources.txt")
    best = project.run(*command, "--beam=3", "sources.txt")
    for output in (greedy, best):
        rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        assert [row["input"] for row in rows] == sources
        assert rows[0]["translation"] == ""
        assert {"translation", "score"} <= rows[1].keys()
    code, output = project.attempt(*command, "--bean", "3", "x")
    assert code != 0
    assert "bean: unknown key; did you mean 'beam'" in output
    assert project.attempt(*command, "--beam", "0", "x")[0] != 0
