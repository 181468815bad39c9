"""spaCy and our experiments: training, misaligned spans, and comparison on the same records."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.benchmarks.script import script
from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.core.params import check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import Labelling
from wxb.tasks.ner.record.spans import Span

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks/spacy_ner.py"
COMMAND = {"corpus": "pii", "study": "ner"}
OPTIONS = {"epochs": 8, "seed": 1, "label": "spaCy@test"}


@pytest.fixture(scope="module")
def benchmark():
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install -e '.[benchmarks]'")
    return script("spacy_ner")


def record(index, text, *mentions, language="en"):
    """A record whose first span of each mention is gold; a mention is `value/TYPE`."""
    spans = []
    for mention in mentions:
        value, kind = mention.split("/")
        start = text.index(value)
        spans.append(Span(start, start + len(value), kind))
    return Record(f"id {index}", text, tuple(sorted(spans)), language, text)


NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")
TRAIN = [
    record(f"{name} {age}", f"Yesterday {name} said she was {age}.", f"{name}/NAME", f"{age}/AGE")
    for name in NAMES[:6]
    for age in (31, 42, 57)
]
HELD_OUT = [
    record(name, f"Yesterday {name} said she was 64.", f"{name}/NAME", "64/AGE")
    for name in NAMES[6:]
]


TESTS = {"test": HELD_OUT, "new": HELD_OUT[:1]}


def weights(nlp):
    """All parameters of the recognizer, as one vector."""
    nodes = nlp.get_pipe("ner").model.walk()
    return np.concatenate(
        [node.get_param(name).ravel() for node in nodes for name in node.param_names]
    )


def test_training_keeps_the_best_epoch_and_is_deterministic(benchmark):
    best = benchmark.train_ner(benchmark.pipeline("en"), TRAIN, HELD_OUT, **OPTIONS)
    assert best.valid_f1 == 1
    assert best.epoch < OPTIONS["epochs"]
    assert [j.predicted for j in benchmark.predict(best.nlp, HELD_OUT)] == [
        record.gold for record in HELD_OUT
    ]
    # Training that stops there without validation has the same weights.
    options = OPTIONS | {"epochs": best.epoch}
    flat = benchmark.train_ner(benchmark.pipeline("en"), TRAIN, [], **options)
    assert (flat.epoch, flat.valid_f1) == (best.epoch, None)
    np.testing.assert_array_equal(weights(flat.nlp), weights(best.nlp))
    another_seed = benchmark.train_ner(benchmark.pipeline("en"), TRAIN, [], **options | {"seed": 2})
    assert not np.array_equal(weights(another_seed.nlp), weights(best.nlp))
    assert len(weights(best.nlp)) == benchmark.parameter_count(best.nlp)


def test_misaligned_spans_are_reported_and_missed(benchmark):
    nlp = benchmark.pipeline("xx")
    chinese = record(1, "我叫王明今年三十", "王明/NAME", "三十/AGE", language="zh")
    fine = record(2, "Yesterday Ann left.", "Ann/NAME")
    assert benchmark.misaligned(nlp, chinese) == [Span(2, 4, "NAME"), Span(6, 8, "AGE")]
    assert benchmark.misaligned(nlp, fine) == []
    note = benchmark._misaligned_note({"xx": nlp}, "test", [chinese, fine])
    assert note.startswith("2 of 3 test spans (zh 2)")
    assert "F1 is at most 0.500" in note  # precision 1, recall 1/3
    fit = benchmark.train_ner(nlp, [*TRAIN, chinese], [], **OPTIONS)
    scores = evaluation.metrics(
        metrics.Scorer(), [benchmark.predict(fit.nlp, [chinese, *HELD_OUT])]
    )
    assert scores["support"] == 6
    assert scores["recall"] == pytest.approx(4 / 6, abs=1e-6)


def test_tokens_of_a_misaligned_span_have_no_target(benchmark):
    nlp = benchmark.pipeline("en")
    peer = script("spacy_peer")
    example = peer.example(nlp, record(1, "Dial 555x for Ann", "555/PHONE", "Ann/NAME"))
    assert example.get_aligned_ner() == ["O", None, "O", "U-NAME"]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (["en", "en"], ["en"]),
        (["en", "de"], ["de", "en"]),
        ([None], ["xx"]),
        (["en", None], ["xx"]),
    ],
)
def test_each_language_of_the_records_has_a_pipeline(benchmark, languages, expected):
    records = [record(i, "Hello.", language=language) for i, language in enumerate(languages)]
    assert benchmark.languages_of(records) == expected
    by_language = [benchmark.select_language(records, code, expected) for code in expected]
    assert sorted(r.id for members in by_language for r in members) == [r.id for r in records]


def test_a_language_that_spacy_lacks_is_an_error(benchmark):
    with pytest.raises(WxbError, match=r"'qq'.*expected one that spaCy.*--language"):
        benchmark.pipeline("qq")


def rows_of(records, *, right):
    """Rows of a system that finds all spans of the first `right` records, and no others."""
    return [
        metrics.PredictionRow(r.id, r.input, r.gold, spans, (0.9,) * len(spans))
        for i, r in enumerate(records)
        for spans in [r.gold if i < right else ()]
    ]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with clean records, and the results of an encoder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    Path("data/clean/pii").mkdir(parents=True)
    splits = {"train": TRAIN, "valid": HELD_OUT[:1], "test": HELD_OUT, "new": HELD_OUT[:1]}
    for name, members in splits.items():
        unlabelled = Record(f"bare {name}", f"bare {name}", None, "en", name)
        clean.write(Path(f"data/clean/pii/{name}.parquet"), [*members, unlabelled], Labelling())
    write_json(Path("data/clean/pii/profile.json"), {"splits": {name: {} for name in splits}})
    runs = {name: {"": rows_of(members, right=1)} for name, members in TESTS.items()}
    evaluation.save(metrics.Scorer(), Path("reports/predictions/ner/ner-encoder"), runs, {})
    write_json(Path("reports/metrics/ner/ner-encoder.json"), {"parameters": 1_234_567})
    for cost in ("train/ner-encoder", "pretrain/encoder"):
        content = {"seconds": 7.0, "device": "abacus"}
        write_json(Path("reports/cost", f"{cost}.json"), content)
    return tmp_path


def run(*options, script=(SCRIPT,)):
    return subprocess.run(
        [sys.executable, *script, "--corpus", "pii", "--study", "ner", *options],
        env={"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "60"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_table_has_spacy_and_our_experiments(benchmark, project):
    result = run("--epochs", "8")
    assert result.returncode == 0, result.stderr
    rows = {
        tuple(cells[:3]): cells[3:]
        for line in result.stdout.splitlines()
        if line.startswith("|")
        for cells in [[cell.strip() for cell in line.strip().strip("|").split("|")]]
    }
    spacy, encoder = rows["test", "2", benchmark.PEER], rows["test", "2", "ner-encoder"]
    assert rows["new", "1", "ner-encoder"][1] == "+0.000 (−1.000 to +1.000)"  # no interval
    assert spacy[0] == "1.000 (0.158–1.000)"
    # Half of the spans and no false one: precision 1, recall 1/2.
    assert encoder[0].startswith("0.667 (")
    assert encoder[1].startswith("−0.333 (")
    assert encoder[2:4] == ["1.23 M", "7"]
    assert "spacy.blank('en')" in result.stdout
    assert "0 of 4 test spans are not on token boundaries" in result.stdout
    assert "ner-decoder is left out: it has no predictions yet; run `dvc repro" in result.stdout
    assert "abacus" in result.stdout
    assert "encoder 7 s" in result.stdout
    assert "spaCy en: 100%" in result.stderr


@pytest.fixture
def without_spacy(monkeypatch):
    """The benchmark with a fake spaCy, whose pipelines find the gold spans of all records."""
    names = {
        "": ("blank",),
        ".language": ("Language",),
        ".schemas": ("ConfigSchemaTraining",),
        ".training": ("Example",),
        ".util": ("fix_random_seed", "registry"),
    }
    for name, members in names.items():
        module = SimpleNamespace(__version__="0", **dict.fromkeys(members))
        monkeypatch.setitem(sys.modules, f"spacy{name}", module)
    for name in ("spacy_peer", "spacy_ner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    benchmark = script("spacy_ner")
    fit = benchmark.Fit("", epoch=1, valid_f1=1.0, seconds=2.0)
    for name, substitute in {
        "pipeline": lambda language: language,
        "train_ner": lambda *_, **__: fit,
        "predict": lambda _, records, vocabulary: rows_of(records, right=len(records)),
        "parameter_count": lambda _: 5_000,
        "misaligned": lambda *_: [],
    }.items():
        monkeypatch.setattr(benchmark, name, substitute)
    yield benchmark
    for name in ("spacy_peer", "spacy_ner"):
        del sys.modules[name]


def test_tables_and_notes_are_printed(without_spacy, project, capsys):
    without_spacy.main(**COMMAND, epochs=1)
    output = capsys.readouterr().out
    assert "| test | 2 | spaCy 0 | 1.000 (0.158–1.000) |" in output
    assert "| new | 1 | spaCy 0 | " in output
    assert "+0.000 (−1.000 to +1.000)" in output
    assert "0 of 4 test spans are not on token boundaries" in output


def test_flat_training_uses_both_splits(benchmark, project, capsys):
    benchmark.main(**COMMAND, epochs=1, flat=True)
    output = capsys.readouterr().out
    assert "train and valid together; epoch 1 of 1 is kept" in output
    spans = 2 * (len(TRAIN) + 1)
    assert f"of {spans} train spans" in output
    assert "valid spans" not in output


def test_predictions_of_another_corpus_or_an_older_split(benchmark, project):
    content = read_yaml(ROOT / "params.yaml")
    content["corpora"]["mine"] = content["corpora"]["pii"]
    params = check(content)
    ours, without = benchmark.predictions(params, "ner", "mine", TESTS)
    assert ours == {}
    assert without["ner-encoder"] == "its corpus is pii, not mine"
    older = [*HELD_OUT[:1], record("other", "Yesterday Eve left.", "Eve/NAME")]
    for test in (older, HELD_OUT[:1], HELD_OUT[::-1]):
        with pytest.raises(WxbError, match=r"ner-encoder: found other records.*evaluate@ner-enc"):
            benchmark.predictions(params, "ner", "pii", TESTS | {"test": test})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"study": "nre"}, "did you mean 'ner'"),
        ({"corpus": "pi"}, "did you mean 'pii'"),
        ({}, "valid.parquet does not exist; run `dvc repro preprocess@pii`"),
    ],
)
def test_missing_inputs_are_errors(benchmark, project, options, message):
    Path("data/clean/pii/valid.parquet").unlink()
    with pytest.raises(WxbError, match=message):
        benchmark.main(**COMMAND | options)


def test_errors_have_no_traceback(benchmark, project):
    failed = run("--study", "nre")
    assert failed.returncode == 2
    assert failed.stderr.startswith("spacy_ner: studies has no 'nre'")
    assert "Traceback" not in failed.stderr


def test_the_error_without_spacy_has_the_command_to_install_it():
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(SCRIPT.parent)!r});"
        f" sys.modules['spacy'] = None; runpy.run_path({str(SCRIPT)!r})"
    )
    failed = run(script=("-c", code))
    assert failed.returncode == 1
    assert "pip install --editable '.[benchmarks]'" in failed.stderr
    assert "Traceback" not in failed.stderr
