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
        "inside": Verdict.INSIDE,
        "edge": Verdict.INSIDE,
        "outside": Verdict.OUTSIDE,
        "gone": Verdict.GONE,
        "new": Verdict.NEW,
    }
    assert told(before, after) == (
        "ner: undecided. Which CPUs this run and HEAD (abc) had is not known; one seed does not"
        " show how trainings vary. 4 of 5 are inside their 95% intervals (test records), not"
        " outside. Same scores of other weights: retrained. Gone: gone. New: new."
    )


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_result_reproduces_itself_and_noise_is_the_interval(f1, now, below, above):
    before = project({"one": f1})
    before.tree.contents["reports/metrics/ner/one.json"] = metrics(f1, f1 - below, f1 + above)
    itself = compare("ner", before, before)
    assert summary(itself) is Summary.SAME
    assert (itself.swaps, itself.params, itself.scores[0].others) == ([], [], {})
    result = compare("ner", before, project({"one": now}))
    assert result.is_outside is not (f1 - below <= now <= f1 + above)
    assert [score.name for score in result.scores] == ["one"]


def test_models_without_a_hash_are_not_called_the_same():
    assert set(verdicts(project(), project(weights={})).values()) == {Verdict.UNKNOWN_WEIGHTS}
    assert told(project(weights={}), project()) == (
        "ner: reproduced. Compared with HEAD (abc), 2 of 2 scores are the same (hashes of weights"
        " unknown)."
    )


def test_same_bytes_where_no_machine_is_known():
    assert told(project(), project()) == (
        "ner: reproduced. Compared with HEAD (abc), 2 of 2 have the same bytes."
    )


def test_other_test_records_cannot_be_compared():
    result = compare("ner", project(), project({"one": 0.9, "two": 0.1}, documents=60))
    assert {score.verdict for score in result.scores} == {Verdict.OTHER_RECORDS}
    assert (summary(result), result.is_outside) == (Summary.NOT_COMPARABLE, False)
    assert line(result, "HEAD", "here") == (
        "ner: not comparable with HEAD: test records 100 -> 60."
    )
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
    assert result.is_outside
    assert line(result, "HEAD", "here") == (
        "ner: not a rerun of HEAD: 1 parameter differs. 1 of 2 are inside their 95% intervals"
        " (test records), not one."
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
    assert (summary(result), result.is_outside) == (Summary.DIFFERS, False)
    assert told(*pair, "pretrain") == (
        "pretrain: undecided. Which CPUs this run and HEAD (abc) had is not known, and no"
        " interval is known."
    )


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
    assert told(empty, project()) == "ner: HEAD (abc) has no results of it to compare with."
    assert told(project(), empty) == "ner: no results here; `dvc repro report@ner` makes them."
    other = project({"three": 0.5})
    assert "gone one and two, new three" in told(project(), other)


def test_seeds_are_read_as_one_or_several():
    several = project()
    several.tree.contents["reports/studies/ner.json"]["seeds"] = [1, 2, 3]
    assert compare("ner", project(), several).seeds == ([1], [1, 2, 3])


def made_on(machine, scores, *, seeds=None, weights="b"):
    """A project made on a machine, with reports/seeds.json; nobody knows where for None."""
    files = {}
    if seeds:
        study = as_compared({name: runs[0] for name, runs in seeds.items()})
        for name, runs in seeds.items():
            study["systems"][name]["f1_by_run"] = runs
        files["reports/seeds.json"] = {**study, "seeds": [1, 2, 3]}
    made = project(scores, weights=weights, **files)
    if machine:
        digest = hashlib.sha256(made.tree.read("reports/studies/ner.json")).hexdigest()
        noted = {"ner": {"sha256": digest, "machines": [machine], "finished": "2030"}}
        made.tree.contents["reports/provenance.json"] = noted
    return made


# F1 on `test` of the demo's study with seeds 1, 2 and 3, as first committed.
SEEDS = {
    "ner-encoder": [0.8519, 0.864087, 0.85709],
    "ner-decoder": [0.756315, 0.758197, 0.752365],
    "ner-decoder-lora": [0.619911, 0.64616, 0.612793],
    "ner-decoder-qlora": [0.629068, 0.609662, 0.63376],
    "ner-decoder-bidirectional": [0.857143, 0.862738, 0.867484],
    "ner-generative": [0.450631, 0.424576, 0.428215],
    "ner-generative-neftune": [0.337553, 0.278307, 0.32169],
}
COMMITTED = {name: runs[0] for name, runs in SEEDS.items()}
ELSEWHERE = {**MACHINE, "cpu": "Pascaline"}
QUESTION = "Another kind of CPU than HEAD (abc), where trainings vary as 3 seeds do:"


def test_another_cpu_reproduces_what_other_seeds_may_give():
    """0.285 is what an Intel CPU gave, below the 95% interval for test records of seed 1."""
    before = made_on(MACHINE, COMMITTED, seeds=SEEDS)
    rerun = {name: score + 0.002 for name, score in COMMITTED.items()}
    after = made_on(ELSEWHERE, {**rerun, "ner-generative-neftune": 0.285}, weights="c")
    assert told(before, after) == (f"ner: reproduced. {QUESTION} 7 of 7 are inside that variation.")
    broken = made_on(ELSEWHERE, {**rerun, "ner-decoder": 0.65}, weights="c")
    assert told(before, broken) == (
        f"ner: not reproduced. {QUESTION} 6 of 7 are inside that variation, not ner-decoder."
    )


def test_the_same_cpu_must_give_the_same_bytes():
    question = "Same kind of CPU as HEAD (abc), so the bytes must be the same:"
    before = made_on(MACHINE, COMMITTED, seeds=SEEDS)
    assert told(before, before) == f"ner: reproduced. {question} 7 of 7 are."
    other = made_on(MACHINE, {**COMMITTED, "ner-decoder": 0.757})
    assert told(before, other) == (
        f"ner: not reproduced. {question} 6 of 7 are. 7 of 7 are inside what 3 seeds vary."
    )
    assert not compare("ner", before, other).is_outside


def test_the_same_bytes_on_another_cpu_are_more_than_expected():
    before = made_on(MACHINE, COMMITTED, seeds=SEEDS)
    assert told(before, made_on(ELSEWHERE, COMMITTED)) == (
        "ner: reproduced. Another kind of CPU than HEAD (abc), and still 7 of 7 have the same"
        " bytes."
    )


@pytest.mark.parametrize(
    ("score", "answer", "names"),
    [(0.505, "no difference found", ""), (0.6, "undecided", ", not one")],
)
def test_one_seed_does_not_decide_what_another_cpu_may_give(score, answer, names):
    before = made_on(MACHINE, {"one": 0.5, "two": 0.4})
    after = made_on(ELSEWHERE, {"one": score, "two": 0.401}, weights="c")
    inside = 1 if names else 2
    assert told(before, after) == (
        f"ner: {answer}. Another kind of CPU than HEAD (abc); one seed does not show how trainings"
        f" vary. {inside} of 2 are inside their 95% intervals (test records){names}."
    )


@pytest.mark.parametrize(
    "stale",
    [{"ner-encoder": [0.9, 0.91, 0.92]}, {"ner-unknown": [0.1, 0.2, 0.3]}],
    ids=["other scores", "another experiment"],
)
def test_seeds_of_another_version_of_the_study_are_not_used(stale):
    before = made_on(MACHINE, COMMITTED, seeds={**SEEDS, **stale})
    assert compare("ner", before, before).trainings == 1


def test_a_study_with_several_seeds_of_its_own_needs_no_others():
    means = {name: sum(runs) / 3 for name, runs in SEEDS.items()}
    before = made_on(MACHINE, means)
    study = before.tree.contents["reports/studies/ner.json"]
    study["seeds"] = [1, 2, 3]
    for name, runs in SEEDS.items():
        study["systems"][name]["f1_by_run"] = runs
    result = compare("ner", before, before)
    assert result.trainings == 3
    near, far = (
        next(s.range for s in r.scores)
        for r in (result, compare("ner", before, made_on(MACHINE, means)))
    )
    assert near.high - near.low < far.high - far.low, "a mean of three varies less than one"


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({}, "Same kind of CPU as"),
        ({"cpu": "Pascaline"}, "Another kind of CPU than"),
        ({"capability": "AVX512"}, "Another instruction set than"),
        ({"torch": "3"}, "Another version of torch than"),
        (None, "Which CPUs this run and HEAD (abc) had is not known"),
    ],
)
def test_the_machines_of_both_decide_the_question(now, words):
    machine = None if now is None else {**MACHINE, **now}
    assert words in told(made_on(MACHINE, {"one": 0.5}), made_on(machine, {"one": 0.501}))


def test_a_score_tells_its_other_metrics_without_its_interval():
    before, after = metrics(0.5, parameters=8, old=1), metrics(0.6, parameters=8, new=2)
    score = Score("one", Verdict.OUTSIDE, "f1", before, after)
    assert score.others == {"old": (1, None), "new": (None, 2)}
    assert score._replace(verdict=Verdict.OTHER_RECORDS).others == {}
    result = Result("ner", [score], [], [], ([], []), {}, ([], []))
    assert result.named(Verdict.OUTSIDE) == ["one"]
