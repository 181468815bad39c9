"""What became of results: the same bytes, within the interval that they had, or beyond it."""

import hashlib
import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import comparison as as_compared
from wxb.project.profiles import Change
from wxb.project.reproduction.comparison import Result, Score, Swap, Verdict, compare
from wxb.project.reproduction.project import Project
from wxb.project.reproduction.wording import Summary, line, summary

EXPERIMENT = {"corpus": "pii", "backbone": "encoder", "epochs": 4}
PARAMS = {
    "seed": 1,
    "corpora": {"pii": {"path": "a"}, "other": {"path": "b"}},
    "backbones": {"encoder": {"corpus": "pii"}, "decoder": {"corpus": "other"}},
    "experiments": {"one": EXPERIMENT, "two": EXPERIMENT},
    "studies": {"ner": {"title": "Which?", "experiments": ["one", "two"]}},
    "lessons": {"images": {"path": "x.py"}, "attention": {"path": "models/one"}},
    "parity": {"bert": {"hidden": 8}},
}
MACHINE = {"device": "Abacus, 1 CPU thread(s)", "cpu": "Abacus", "capability": "AVX2", "torch": "2"}


class Files(NamedTuple):
    """A tree of files that are kept in memory."""

    name: str
    contents: dict

    def read(self, path):
        found = self.contents.get(path)
        return None if found is None else json.dumps(found).encode()

    def files(self, folder):
        return sorted(path for path in self.contents if path.startswith(f"{folder}/"))


def metrics(f1, low=None, high=None, **others):
    bounds = {"f1_low": f1 - 0.01 if low is None else low}
    return {"f1": f1, **bounds, "f1_high": f1 + 0.01 if high is None else high, **others}


def project(scores=None, *, name="HEAD", weights="a", params=PARAMS, documents=100, **files):
    """A project with one study, whose experiments have these F1 scores and models."""
    scores = {"one": 0.5, "two": 0.4} if scores is None else scores
    study = {**as_compared(scores), "documents": documents, "spans": 300, "seed": 1}
    models = dict.fromkeys(scores, weights) if isinstance(weights, str) else weights
    outs = [{"path": f"models/{member}", "md5": found} for member, found in models.items()]
    return Project(
        Files(
            name,
            {
                "params.yaml": params,
                "dvc.lock": {"stages": {"train": {"outs": outs}, "download": {}}},
                "reports/studies/ner.json": study,
                **{f"reports/metrics/ner/{m}.json": metrics(f1) for m, f1 in scores.items()},
                **files,
            },
        )
    )


def verdicts(before, after, name="ner"):
    return {score.name: score.verdict for score in compare(name, before, after).scores}


def told(before, after, name="ner"):
    return line(compare(name, before, after), "HEAD (abc)", "here", "dvc repro report@ner")


def test_each_score_is_judged_by_the_interval_it_had():
    scores = {"same": 0.1, "retrained": 0.2, "inside": 0.3, "edge": 0.4, "outside": 0.5}
    now = {"same": 0.1, "retrained": 0.2, "inside": 0.305, "edge": 0.41, "outside": 0.511}
    before = project({**scores, "gone": 0.6}, weights=dict.fromkeys(scores, "a"))
    after = project({**now, "new": 0.6}, weights={**dict.fromkeys(now, "a"), "retrained": "b"})
    assert verdicts(before, after) == {
        "same": Verdict.SAME,
        "retrained": Verdict.OTHER_WEIGHTS,
        "inside": Verdict.WITHIN,
        "edge": Verdict.WITHIN,
        "outside": Verdict.BEYOND,
        "gone": Verdict.GONE,
        "new": Verdict.NEW,
    }
    assert told(before, after) == (
        "ner: not all reproduced, beyond noise of HEAD (abc): 4 of 5 scores inside their 95%"
        " intervals, 1 of 5 same bytes, same scores, other weights retrained,"
        " beyond noise outside, gone gone, new new"
    )


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_result_reproduces_itself_and_noise_is_the_interval(f1, now, below, above):
    before = project({"one": f1})
    before.tree.contents["reports/metrics/ner/one.json"] = metrics(f1, f1 - below, f1 + above)
    itself = compare("ner", before, before)
    assert summary(itself) is Summary.SAME
    assert (itself.swaps, itself.params, itself.scores[0].others) == ([], [], {})
    result = compare("ner", before, project({"one": now}))
    assert result.beyond_noise is not (f1 - below <= now <= f1 + above)
    assert [score.name for score in result.scores] == ["one"]


def test_models_without_a_hash_are_not_called_the_same():
    assert set(verdicts(project(), project(weights={})).values()) == {Verdict.UNKNOWN_WEIGHTS}
    assert told(project(weights={}), project()) == (
        "ner: same scores as HEAD (abc), weights unknown: 2 of 2"
    )


def test_lines_of_a_reproduction():
    assert told(project(), project()) == "ner: same bytes as HEAD (abc): 2 of 2"
    near = project({"one": 0.505, "two": 0.395}, weights="b")
    assert told(project(), near) == (
        "ner: reproduced within noise of HEAD (abc): 2 of 2 scores inside their 95% intervals,"
        " 0 of 2 same bytes"
    )


def test_other_test_records_cannot_be_compared():
    result = compare("ner", project(), project({"one": 0.9, "two": 0.1}, documents=60))
    assert {score.verdict for score in result.scores} == {Verdict.OTHER_RECORDS}
    assert (summary(result), result.beyond_noise) == (Summary.NOT_COMPARABLE, False)
    assert line(result, "HEAD", "here") == ("ner: not comparable with HEAD: test records 100 -> 60")
    small = {"reports/metrics/lessons/images.json": metrics(0.5, support=10)}
    large = {"reports/metrics/lessons/images.json": metrics(0.5, support=11)}
    found = verdicts(project(**small), project(**large), "images")
    assert found == {"images": Verdict.OTHER_RECORDS}


def test_other_parameters_make_it_no_reproduction():
    changed = json.loads(json.dumps(PARAMS))
    changed["experiments"]["one"]["epochs"] = 8
    changed["corpora"]["other"]["path"] = "c"  # which the study does not read
    before, after = project(), project({"one": 0.6, "two": 0.4}, params=changed)
    result = compare("ner", before, after)
    assert result.params == [Change("experiments.one.epochs", 4, 8)]
    assert result.beyond_noise
    assert line(result, "HEAD", "here") == (
        "ner: no reproduction of HEAD, as 1 parameter differs: 1 of 2 scores inside their 95%"
        " intervals, 1 of 2 same bytes, beyond noise one"
    )


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("ner", {"corpora.pii.path", "backbones.encoder.corpus", "experiments.two.epochs"}),
        ("images", {"lessons.images.path"}),
        ("attention", {"lessons.attention.path", "experiments.one.epochs", "corpora.pii.path"}),
        ("pretrain", {"backbones.encoder.corpus", "corpora.pii.path"}),
        ("parity", {"parity.bert.hidden"}),
    ],
)
def test_a_result_is_made_from_its_own_blocks(name, keys):
    lessons = {f"reports/metrics/lessons/{lesson}.json": {} for lesson in ("images", "attention")}
    files = {"reports/metrics/pretrain/encoder.json": {}, "reports/metrics/parity/bert.json": {}}
    found = project(**lessons, **files).params(name).keys()
    assert keys | {"seed"} <= found
    foreign = {"ner": "lessons", "attention": "corpora.other", "pretrain": "experiments"}
    assert not any(key.startswith(foreign.get(name, "experiments")) for key in found)


def test_blocks_that_only_a_profile_brings_are_those_of_a_reproduction():
    """A commit has the results of public sets, and params.yaml as that of the demo."""
    demo = {**PARAMS, "experiments": {}, "studies": {}}
    profiles = {
        "params/demo.yaml": {"corpora": {"pii": {"path": "a"}}},
        "params/public.yaml": {key: PARAMS[key] for key in ("experiments", "studies")},
    }
    before, after = project(params=demo, **profiles), project(params=PARAMS, **profiles)
    assert compare("ner", before, after).params == []
    assert "experiments.one.epochs" in before.params("ner")
    assert before.params("ner") == after.params("ner")
    without = project(params=demo)
    assert "experiments.one.epochs" not in without.params("ner")


def test_pretraining_is_that_of_the_backbones_with_results():
    one = {"reports/metrics/pretrain/encoder.json": {"loss": 5.0}}
    assert "backbones.decoder.corpus" not in project(**one).params("pretrain")


def test_what_has_no_interval_only_differs():
    before = {"reports/metrics/pretrain/encoder.json": {"loss": 5.0, "accuracy": 0.5}}
    after = {"reports/metrics/pretrain/encoder.json": {"loss": 5.1, "accuracy": 0.5}}
    pair = project(**before, weights={"encoder": "a"}), project(**after, weights={"encoder": "b"})
    result = compare("pretrain", *pair)
    assert [score.others for score in result.scores] == [{"loss": (5.0, 5.1)}]
    assert (summary(result), result.beyond_noise) == (Summary.DIFFERS, False)
    assert told(*pair, "pretrain") == "pretrain: differs from HEAD (abc): 0 of 1 same bytes"


def test_what_keeps_no_model_is_the_same_by_its_metrics():
    lesson = {"reports/metrics/lessons/images.json": metrics(0.5)}
    assert verdicts(project(**lesson), project(**lesson), "images") == {"images": Verdict.SAME}


def test_changed_places_are_told_with_what_the_test_says_of_each():
    before = project({"one": 0.5, "two": 0.45, "three": 0.449})
    after = project({"one": 0.5, "two": 0.448, "three": 0.47})
    assert compare("ner", before, after).swaps == [
        Swap("two", "three", pytest.approx(0.001), False, pytest.approx(0.022), True)
    ]
    assert compare("ner", before, project({"one": 0.5})).swaps == []


def test_files_of_removed_experiments_count_for_nothing():
    left = {"reports/metrics/ner/removed.json": metrics(0.9)}
    assert set(verdicts(project(), project(**left))) == {"one", "two"}


def test_what_is_missing_is_told_with_what_makes_it():
    empty = Project(Files("empty", {}))
    assert told(empty, project()) == "ner: nothing to compare, no results of it at HEAD (abc)"
    assert told(project(), empty) == (
        "ner: nothing to compare, no results of it here; `dvc repro report@ner` makes them"
    )
    other = project({"three": 0.5})
    assert "gone one and two, new three" in told(project(), other)


def test_seeds_are_read_as_one_or_several():
    several = project()
    several.tree.contents["reports/studies/ner.json"]["seeds"] = [1, 2, 3]
    assert compare("ner", project(), several).seeds == ([1], [1, 2, 3])


def made_on(machine, f1):
    """A project with one score, and where it was made; nobody knows where for None."""
    found = project({"one": f1}, weights="b")
    if machine:
        digest = hashlib.sha256(found.tree.read("reports/studies/ner.json")).hexdigest()
        noted = {"ner": {"sha256": digest, "machines": [machine], "finished": "2030"}}
        found.tree.contents["reports/provenance.json"] = noted
    return found


@pytest.mark.parametrize(
    ("now", "word"),
    [
        ({}, "; same CPU"),
        ({"cpu": "Pascaline"}, "; other CPU"),
        ({"capability": "AVX512"}, "; other instruction set"),
        ({"torch": "3"}, "; other torch"),
        (None, ""),
    ],
)
def test_the_machines_of_both_are_compared(now, word):
    assert told(
        made_on(MACHINE, 0.5), made_on(None if now is None else {**MACHINE, **now}, 0.501)
    ).endswith(f"same bytes{word}")


def test_another_machine_is_told_to_be_why_scores_are_beyond_noise():
    before, after = made_on(MACHINE, 0.5), made_on({**MACHINE, "cpu": "Pascaline"}, 0.9)
    assert told(before, after).endswith(
        "beyond noise one; other CPU, which trains other weights, as another seed does"
    )


def test_a_score_tells_its_other_metrics_without_its_interval():
    before, after = metrics(0.5, parameters=8, old=1), metrics(0.6, parameters=8, new=2)
    score = Score("one", Verdict.BEYOND, "f1", before, after)
    assert score.others == {"old": (1, None), "new": (None, 2)}
    assert score._replace(verdict=Verdict.OTHER_RECORDS).others == {}
    assert Result("ner", [score], [], [], ([], []), {}, ([], [])).named(Verdict.BEYOND) == ["one"]
