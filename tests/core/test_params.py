import copy
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import demo
from tests.commands import printed_by
from tests.project_copy import ROOT
from wxb.core.params import ParamsError, check, load, load_for_stage
from wxb.core.params.section import Section

CONTENT = demo.content()
GATES, ENCODER = CONTENT["lessons"]["gates"], CONTENT["backbones"]["encoder"]


def locate(content, key):
    """The block with a dotted key, and the last part of the key."""
    *sections, name = key.split(".")
    for section in sections:
        content = content[section]
    return content, name


def edited(key, value):
    """The committed parameters with another value at a dotted key."""
    content = copy.deepcopy(CONTENT)
    block, name = locate(content, key)
    block[name] = value
    return content


def without(key):
    """The committed parameters, a key deleted."""
    content = copy.deepcopy(CONTENT)
    block, name = locate(content, key)
    del block[name]
    return content


def keys(block, prefix=""):
    """(dotted key, whether the schema requires it), of every key below a section or mapping."""
    for name, value in block.items() if isinstance(block, dict) else block:
        yield prefix + name, isinstance(block, dict) or type(block).model_fields[name].is_required()
        if isinstance(value, Section | dict):
            yield from keys(value, f"{prefix}{name}.")


ALL_KEYS = dict(keys(check(CONTENT)))
# These blocks have every key.
COMPLETE = ("corpora.pii.", "backbones.encoder.", "experiments.ner-encoder.", "studies.ner.")


def is_shown(key):
    """Whether the committed file holds this key, defaults aside."""
    try:
        block, name = locate(CONTENT, key)
    except (KeyError, TypeError):
        return False
    return name in block


# No other block refers to these blocks.
FREE = {f"lessons.{name}" for name in CONTENT["lessons"]}
FREE.add("corpora.pii.split.further.situations")
KEYS = [key for key in ALL_KEYS if is_shown(key) and key not in FREE]


def test_the_committed_file_is_valid_and_shows_every_key(tmp_path):
    assert load(demo.write(tmp_path)) == check(CONTENT)
    hidden = {*ALL_KEYS} - {*KEYS} - FREE
    assert [key for key in hidden if key.startswith(COMPLETE)] == []


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_has_a_default_or_is_named(key):
    message = None
    try:
        check(without(key))
    except ParamsError as error:
        message = str(error)
    assert (message is None) <= (not ALL_KEYS[key])
    assert message is None or re.search(rf"^params.yaml:\n.*{key.split('.')[-1]}", message)


def test_blocks_that_dvc_reads_are_written_out():
    """Else a run would end at `evaluate`, after training."""
    with pytest.raises(ParamsError, match=r"ner-crf\.prediction: missing; write `prediction: {}`"):
        check(without("experiments.ner-crf.prediction"))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(KEYS), st.sampled_from(["add", "replace", "double"]), st.data())
def test_a_misspelt_key_is_an_error_with_the_nearest_valid_one(key, slip, data):
    block, name = locate(CONTENT, key)
    index = data.draw(st.integers(0, len(name) - 1))
    letter = name[index] * 2 if slip == "double" else "qz"[name[index] == "q"]
    typo = name[:index] + letter + name[index + (slip != "add") :]
    content = without(key)
    locate(content, key)[0][typo] = block[name]
    with pytest.raises(ParamsError) as raised:
        check(content)
    assert typo in str(raised.value)
    assert name in str(raised.value)
    assert len(name) < 5 or "did you mean" in str(raised.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("corpora.bad name", {}, "corpora.bad name: a name is made of 1 to 100 ASCII"),
        ("lessons.gates", {"leson": "gates"}, "lessons.gates: no lesson; did you mean 'leson'?"),
        ("corpora.pii.generate.language", ["en"], "from: labelled, unlabelled, languages)"),
        ("corpora.pii.split.valid", 0.75, "split: test + valid + situations must stay below 1"),
        ("corpora.pii.split.valid", None, "give either `files`, or both `test` and `valid`"),
        (
            "corpora.pii.split",
            {"files": {"train": ["a"], "valid": ["b"], "test": ["c"]}, "by": "template"},
            "corpora.pii.split: `files` divide the records: leave `by`, `test` and `valid` out",
        ),
        ("corpora.pii.split.further.situations", {}, "give either both `by` and `share`, or"),
        ("corpora.pii.split.further", {"a/b": {"files": ["d"]}}, "a name is made of"),
        ("corpora.pii.split.further", {"Valid": {"files": ["d"]}}, "'valid': the name is taken"),
        ("corpora.pii.split.further", {"training": {"files": ["d"]}}, "the name is taken"),
        ("corpora.pii.conll", {}, "column files (`conll`) have only tokens and tags"),
        ("corpora.pii.repair", "by-value", "`repair: by-value` needs `fields.value`"),
        ("corpora.pii.urls", [{"address": "https://a.example/b.csv"}], "found generate and urls"),
        ("backbones.encoder.objective", "none", "`pretraining` settings go with an objective"),
        ("corpora.pii.split.max_records", {"test": 9}, "'test' is no held-out set of `files`"),
        ("backbones.encoder.checkpoint", "x", "give either `tokenizer` and `architecture`"),
        ("backbones.encoder.revision", "a" * 40, "`revision` pins a `checkpoint`"),
        (
            "backbones.encoder",
            {"corpus": "pii", "objective": "none", "checkpoint": "minilm", "revision": "a" * 40},
            "backbones.encoder: `revision` pins a `checkpoint` of the hub",
        ),
        ("backbones.encoder.architecture.hidden_size", 101, "is not a multiple of"),
        ("backbones.encoder.architecture.num_key_value_heads", 2, "for model_type llama only"),
        ("backbones.encoder.pretraining.max_length", 257, "max_length is over 256 positions"),
        ("experiments.ner-encoder.backbone", "encodr", "unknown backbone 'encodr'; did you mean"),
        ("experiments.ner-encoder.backbone", "words", "found a tokenizer; method 'tagging' needs"),
        ("experiments.ner-encoder.tuning", {"neftune_padded": True}, "add `neftune_alpha`"),
        ("experiments.ner-encoder.encoding.max_length", 257, "max_position_embeddings 256"),
        ("experiments.ner-encoder.training.learning_rate", float("inf"), "a finite number"),
        ("studies.ner.experiments", ["ner-encoder"], "lacks 'ner-decoder'"),
        ("studies.ner.question", ["ner-encoder"] * 2, "studies.ner.question: found ner-encoder"),
        ("studies.ner.question", ["ner-encoder", "x"], "found ner-encoder, x"),
        ("studies.ner.experiments", ["ner-encoder"] * 2, "lists 'ner-encoder' 2 times"),
        ("lessons.images.split.test", 0.9, "lessons.images.split: test + valid must stay below 1"),
        ("lessons.ner", GATES, "lessons.ner: writes the files of studies.ner"),
        ("lessons.index", GATES, "lessons.index: writes the files of the project"),
        ("studies.All", CONTENT["studies"]["ner"], "studies.All: writes the files of the project"),
        ("corpora.PII", CONTENT["corpora"]["pii"], "corpora.PII: writes the files of corpora.pii"),
        ("corpora.-x", CONTENT["corpora"]["pii"], "corpora.-x: a name is made of"),
        (f"corpora.{'x' * 101}", CONTENT["corpora"]["pii"], "x: a name is made of 1 to 100"),
        ("threads", True, "threads: found True; Input should be a valid integer"),
        ("corpora.pii.labels", {"NAME": "A\xa0B"}, "expected a printable name"),
        ("backbones.ner-encoder", ENCODER, "writes the files of backbones.ner-encoder"),
        (
            "studies.other",
            {"task": "ner", "title": "x", "seed": 1, "experiments": ["ner-encoder"]},
            "studies.other.experiments: 'ner-encoder' says study 'ner', not 'other'",
        ),
    ],
)
def test_a_wrong_value_is_an_error_with_the_expected_one(key, value, message):
    with pytest.raises(ParamsError, match=re.escape(message)) as raised:
        check(edited(key, value), Path("some/params.yaml"))
    assert str(raised.value).startswith("some/params.yaml:\n")


def downloads(*blocks):
    content = edited("corpora.pii.generate", None)
    content["corpora"]["pii"]["urls"] = list(blocks)
    return check(content).corpora["pii"].urls


@pytest.mark.parametrize(
    ("end", "file"),
    [
        ("train.csv", "train.csv"),
        ("a/b/train.conll?download=1&from=x/y.csv#part", "train.conll"),
        ("%E4%BD%A0%E5%A5%BD.csv", "你好.csv"),
        ("你好.csv", "你好.csv"),
        ("a/../b.csv", "b.csv"),
        ("100%25.csv", "100%.csv"),
    ],
)
def test_a_download_is_called_by_the_end_of_its_path(end, file):
    (download,) = downloads({"address": f"https://a.example/{end}"})
    assert download.file == file


ENDS = ["", "a/", "a/..", "a/%2e%2E", "..%2Fa.csv", "a%5Cb", "a%00b"]
NO_NAMES = ["../a.csv", "/a.csv", "..", ".a.csv", "a\\b.csv", "a\nb.csv"]


@pytest.mark.parametrize(
    ("end", "name"), [*((end, None) for end in ENDS), *(("a.csv", name) for name in NO_NAMES)]
)
def test_a_download_has_the_name_of_a_file_in_its_folder(end, name):
    with pytest.raises(ParamsError, match=r"urls\.0: expected a file name.*found '"):
        downloads({"address": f"https://a.example/{end}", "name": name})


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"address": "ftp://a.example/a.csv"}, "URL scheme should be 'http' or 'https'"),
        ({"address": "https://me:secret@a.example/a.csv"}, "put it into ~/.netrc"),
        ({"sha256": "0" * 64}, "urls.0.address: missing"),
        ({"address": "https://a.example/a.csv", "sha256": "0" * 63}, "sha256: found '000"),
    ],
)
def test_a_wrong_download_is_an_error(block, message):
    with pytest.raises(ParamsError, match=re.escape(message)):
        downloads(block)


@pytest.mark.parametrize("other", ["https://b.example/a.csv?x", "https://a.example/b/A.CSV"])
def test_downloads_do_not_replace_one_another(other):
    with pytest.raises(ParamsError, match=r"pii: two of `urls` are called 'a\.csv'; give one"):
        downloads({"address": "https://a.example/a.csv"}, {"address": other})


def test_a_study_compares_on_one_corpus():
    content = edited("corpora.other", CONTENT["corpora"]["pii"])
    content["experiments"]["ner-decoder"]["corpus"] = "other"
    with pytest.raises(ParamsError, match=r"studies\.ner.*different records \(corpora other, pii"):
        check(content)


def test_all_errors_are_listed():
    content = edited("seed", -1)
    content["studies"]["ner"]["titel"] = content["studies"]["ner"].pop("title")
    with pytest.raises(ParamsError) as raised:
        check(content)
    for part in ("seed: found -1", "studies.ner.title: missing", "did you mean 'title'?"):
        assert part in str(raised.value)


@pytest.mark.parametrize("content", [None, [], 5, "seed"])
def test_parameters_are_a_mapping(content):
    with pytest.raises(ParamsError, match=r"^params\.yaml:\n  the file: found"):
        check(content)


@pytest.mark.parametrize(
    "text", [b"a: [", b"\tseed: 1", b"seed: \xff", b"a: !!python/object:os.x y"]
)
def test_a_file_that_is_not_yaml_is_an_error(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_bytes(text)
    with pytest.raises(ParamsError, match=rf"^{re.escape(str(path))}: not readable as YAML"):
        load(path)


def test_a_name_that_is_twice_in_the_file_is_an_error(tmp_path):
    (path := tmp_path / "params.yaml").write_text("a: {x: 1,\n  x: 2}")
    with pytest.raises(ParamsError, match=r'params.yaml, line 2: found duplicate key "x"'):
        load(path)


def test_a_missing_file_is_an_error_with_the_working_folder(cwd):
    with pytest.raises(ParamsError, match=r"^params\.yaml: No such file .*project's root"):
        load()


def test_a_stage_checks_the_blocks_that_it_reads(params):
    expected, stage = load(), load_for_stage()
    assert (stage.threads, [*stage.experiments]) == (expected.threads, [*expected.experiments])
    assert stage.block("experiments", "ner-crf") == expected.experiments["ner-crf"]
    params.write_text(params.read_text().replace("method: generation", "method: generatoin"))
    stage = load_for_stage()
    assert stage.block("experiments", "ner-crf") == expected.experiments["ner-crf"]
    with pytest.raises(ParamsError, match=r"ner-generative\.method: unknown method 'generatoin'"):
        stage.block("experiments", "ner-generative")


def test_a_stage_imports_only_the_methods_that_it_reads():
    code = """
import sys
from wxb.core.params import load_for_stage
load_for_stage().block("experiments", "ner-crf")
print(*sorted(name for name in sys.modules if name.startswith("wxb.tasks.ner.")))
"""
    methods = {f"wxb.tasks.ner.{name}" for name in ("crf", "tagging", "generation")}
    assert {*printed_by(code, ROOT).split()} & methods == {"wxb.tasks.ner.crf"}
