"""spaCy and our experiments: training, misaligned spans, and comparison on the same records."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.script import script
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params import check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.record import Labelling
from wxb.tasks.ner.record.spans import Span

ROOT = Path(__file__).parents[2]
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


def test_misaligned_spans_are_missed(benchmark):
    chinese = record(1, "我叫王明今年三十", "王明/NAME", "三十/AGE", language="zh")
    fit = benchmark.train_ner(benchmark.pipeline("xx"), [*TRAIN, chinese], [], **OPTIONS)
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


@pytest.fixture
def stand_in(benchmark, monkeypatch):
    """The benchmark with pipelines that find the gold spans of all records."""
    fit = benchmark.Fit("", epoch=1, valid_f1=1.0, seconds=2.0)
    for name, substitute in {
        "pipeline": lambda language: language,
        "train_ner": lambda *_, **__: fit,
        "predict": lambda _, records, vocabulary: rows_of(records, right=len(records)),
        "parameter_count": lambda _: 5_000,
    }.items():
        monkeypatch.setattr(benchmark, name, substitute)
    return benchmark


def test_the_table_has_spacy_and_our_experiments_on_each_test_set(stand_in, project, capsys):
    stand_in.main(**COMMAND, epochs=1, output=project / "table.json")
    rows = read_json(project / "table.json")["rows"]
    sets = [(row["test set"], row["groups"]) for row in rows]
    assert sets == [("test", 2), ("test", 2), ("new", 1), ("new", 1)]
    assert [row["system"] for row in rows[1::2]] == ["ner-encoder"] * 2
    spacy, encoder, _, one_group = rows
    assert spacy["F1"] == pytest.approx([1, 0.025**0.5, 1], abs=5e-5)  # two groups
    assert one_group["minus spaCy"] == [0, -1, 1]  # one group: no interval
    # Half of the spans and no false one: precision 1, recall 1/2.
    assert encoder["F1"][0] == pytest.approx(2 / 3, abs=5e-5)
    assert encoder["minus spaCy"][0] == pytest.approx(-1 / 3, abs=5e-5)
    assert (encoder["parameters"], encoder["seconds"]) == ("1.23 M", 7)
    assert "ner-decoder is left out" in capsys.readouterr().out


def test_predictions_of_another_corpus_or_an_older_split(stand_in, project):
    content = read_yaml(ROOT / "params.yaml")
    content["corpora"]["mine"] = content["corpora"]["pii"]
    params = check(content)
    assert stand_in.predictions(params, "ner", "mine", TESTS) == {}
    older = [*HELD_OUT[:1], record("other", "Yesterday Eve left.", "Eve/NAME")]
    for test in (older, HELD_OUT[:1], HELD_OUT[::-1]):
        with pytest.raises(WxbError, match="evaluate@ner-encoder"):
            stand_in.predictions(params, "ner", "pii", TESTS | {"test": test})
