"""Comparisons of results: same bytes, inside their ranges, or outside."""

import hashlib
import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import comparison as study_content
from wxb.project.reproduction.comparison import Change, Comparison, Score, Swap, Verdict, compare
from wxb.project.reproduction.results import Results
from wxb.project.reproduction.wording import Summary, summary, verdict_line

EXPERIMENT = {"corpus": "pii", "backbone": "encoder", "epochs": 4}
PARAMS = {
    "seed": 1,
    "corpora": {"pii": {"path": "a"}, "other": {"path": "b"}},
    "backbones": {"encoder": {"corpus": "pii"}, "decoder": {"corpus": "other"}},
    "experiments": {"one": EXPERIMENT, "two": EXPERIMENT},
    "studies": {"ner": {"title": "Which?", "experiments": ["one", "two"]}},
    "lessons": {"images": {"path": "x.py"}, "attention": {"path": "models/one"}},
}
MACHINE = {"device": "Abacus, 1 CPU thread(s)", "cpu": "Abacus", "capability": "AVX2", "torch": "2"}


class Files(NamedTuple):
    """A tree of files in memory."""

    name: str
    contents: dict

    def read(self, path):
        content = self.contents.get(path)
        return None if content is None else json.dumps(content).encode()

    def files(self, folder):
        return sorted(path for path in self.contents if path.startswith(f"{folder}/"))


def metrics(f1, low=None, high=None, **others):
    bounds = {"f1_low": f1 - 0.01 if low is None else low}
    return {"f1": f1, **bounds, "f1_high": f1 + 0.01 if high is None else high, **others}


def results(scores=None, *, name="HEAD", weights="a", params=PARAMS, documents=100, **files):
    """Results with one study, whose experiments have these F1 scores and models."""
    scores = {"one": 0.5, "two": 0.4} if scores is None else scores
    study = {**study_content(scores), "documents": documents, "spans": 300, "seed": 1}
    models = dict.fromkeys(scores, weights) if isinstance(weights, str) else weights
    outs = [{"path": f"models/{member}", "md5": digest} for member, digest in models.items()]
    return Results(
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


def verdict(before, after, name="ner"):
    return verdict_line(compare(name, before, after), "HEAD (abc)", "here", "dvc repro report@ner")


def test_scores_are_compared_with_their_intervals():
    scores = {"same": 0.1, "retrained": 0.2, "inside": 0.3, "edge": 0.4, "outside": 0.5}
    now = {"same": 0.1, "retrained": 0.2, "inside": 0.305, "edge": 0.41, "outside": 0.511}
    before = results({**scores, "gone": 0.6}, weights=dict.fromkeys(scores, "a"))
    after = results({**now, "new": 0.6}, weights={**dict.fromkeys(now, "a"), "retrained": "b"})
    assert verdicts(before, after) == {
        "same": Verdict.SAME,
        "retrained": Verdict.OTHER_WEIGHTS,
        "inside": Verdict.INSIDE,
        "edge": Verdict.INSIDE,
        "outside": Verdict.OUTSIDE,
        "gone": Verdict.GONE,
        "new": Verdict.NEW,
    }
    assert verdict(before, after) == (
        "ner: undecided. The CPUs of this run and HEAD (abc) are not both known; one seed does not"
        " show the variation between trainings. 4 of 5 are inside their 95% intervals (test"
        " records), not outside. Same scores, other weights: retrained. Gone: gone. New: new."
    )


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_result_reproduces_itself_and_is_inside_its_interval(f1, now, below, above):
    before = results({"one": f1})
    before.tree.contents["reports/metrics/ner/one.json"] = metrics(f1, f1 - below, f1 + above)
    itself = compare("ner", before, before)
    assert summary(itself) is Summary.SAME
    assert (itself.swaps, itself.params, itself.scores[0].others) == ([], [], {})
    result = compare("ner", before, results({"one": now}))
    assert result.is_outside is not (f1 - below <= now <= f1 + above)
    assert [score.name for score in result.scores] == ["one"]


def test_models_without_a_hash_are_unknown():
    assert set(verdicts(results(), results(weights={})).values()) == {Verdict.UNKNOWN_WEIGHTS}
    assert verdict(results(weights={}), results()) == (
        "ner: reproduced. Compared with HEAD (abc), 2 of 2 scores are the same (hashes of weights"
        " unknown)."
    )


def test_same_bytes_on_unknown_machines():
    assert verdict(results(), results()) == (
        "ner: reproduced. Compared with HEAD (abc), 2 of 2 have the same bytes."
    )


def test_other_test_records_cannot_be_compared():
    result = compare("ner", results(), results({"one": 0.9, "two": 0.1}, documents=60))
    assert {score.verdict for score in result.scores} == {Verdict.OTHER_RECORDS}
    assert (summary(result), result.is_outside) == (Summary.NOT_COMPARABLE, False)
    assert verdict_line(result, "HEAD", "here") == (
        "ner: not comparable with HEAD: test records 100 -> 60."
    )
    small = {"reports/metrics/lessons/images.json": metrics(0.5, support=10)}
    large = {"reports/metrics/lessons/images.json": metrics(0.5, support=11)}
    lesson = verdicts(results(**small), results(**large), "images")
    assert lesson == {"images": Verdict.OTHER_RECORDS}


def test_other_parameters_are_not_a_rerun():
    changed = json.loads(json.dumps(PARAMS))
    changed["experiments"]["one"]["epochs"] = 8
    changed["corpora"]["other"]["path"] = "c"  # the study does not use it
    before, after = results(), results({"one": 0.6, "two": 0.4}, params=changed)
    result = compare("ner", before, after)
    assert result.params == [Change("experiments.one.epochs", 4, 8)]
    assert result.is_outside
    assert verdict_line(result, "HEAD", "here") == (
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
    ],
)
def test_params_are_those_of_the_blocks_of_a_result(name, keys):
    lessons = {f"reports/metrics/lessons/{lesson}.json": {} for lesson in ("images", "attention")}
    files = {"reports/metrics/pretrain/encoder.json": {}}
    params = results(**lessons, **files).params(name).keys()
    assert keys | {"seed"} <= params
    unrelated = {"ner": "lessons", "attention": "corpora.other", "pretrain": "experiments"}
    assert not any(key.startswith(unrelated.get(name, "experiments")) for key in params)


def test_params_include_blocks_that_only_a_profile_adds():
    """A commit has the results of public data sets, but params.yaml of the demo."""
    demo = {**PARAMS, "experiments": {}, "studies": {}}
    profiles = {
        "params/demo.yaml": {"corpora": {"pii": {"path": "a"}}},
        "params/public.yaml": {key: PARAMS[key] for key in ("experiments", "studies")},
    }
    before, after = results(params=demo, **profiles), results(params=PARAMS, **profiles)
    assert compare("ner", before, after).params == []
    assert "experiments.one.epochs" in before.params("ner")
    assert before.params("ner") == after.params("ner")
    without = results(params=demo)
    assert "experiments.one.epochs" not in without.params("ner")


def test_pretraining_has_only_backbones_with_results():
    one = {"reports/metrics/pretrain/encoder.json": {"loss": 5.0}}
    assert "backbones.decoder.corpus" not in results(**one).params("pretrain")


def test_metrics_without_interval_differ():
    before = {"reports/metrics/pretrain/encoder.json": {"loss": 5.0, "accuracy": 0.5}}
    after = {"reports/metrics/pretrain/encoder.json": {"loss": 5.1, "accuracy": 0.5}}
    pair = results(**before, weights={"encoder": "a"}), results(**after, weights={"encoder": "b"})
    result = compare("pretrain", *pair)
    assert [score.others for score in result.scores] == [{"loss": (5.0, 5.1)}]
    assert (summary(result), result.is_outside) == (Summary.DIFFERS, False)
    assert verdict(*pair, "pretrain") == (
        "pretrain: undecided. The CPUs of this run and HEAD (abc) are not both known, and no"
        " interval is known."
    )


def test_results_without_models_are_the_same_by_metrics():
    lesson = {"reports/metrics/lessons/images.json": metrics(0.5)}
    assert verdicts(results(**lesson), results(**lesson), "images") == {"images": Verdict.SAME}


def test_changes_of_order_have_results_of_the_paired_test():
    before = results({"one": 0.5, "two": 0.45, "three": 0.449})
    after = results({"one": 0.5, "two": 0.448, "three": 0.47})
    assert compare("ner", before, after).swaps == [
        Swap(
            "two",
            "three",
            pytest.approx(0.001),
            "no difference found",
            pytest.approx(0.022),
            "beyond noise",
        )
    ]
    assert compare("ner", before, results({"one": 0.5})).swaps == []


def test_files_of_removed_experiments_are_ignored():
    removed = {"reports/metrics/ner/removed.json": metrics(0.9)}
    assert set(verdicts(results(), results(**removed))) == {"one", "two"}


def test_missing_results_are_named_with_the_remedy():
    empty = Results(Files("empty", {}))
    assert verdict(empty, results()) == "ner: HEAD (abc) has no results to compare with."
    assert verdict(results(), empty) == "ner: no results here; run `dvc repro report@ner`."
    other = results({"three": 0.5})
    assert "gone one and two, new three" in verdict(results(), other)


def test_seeds_are_read_as_one_or_several():
    several = results()
    several.tree.contents["reports/studies/ner.json"]["seeds"] = [1, 2, 3]
    assert compare("ner", results(), several).seeds == ([1], [1, 2, 3])


def results_on(machine, scores, *, seeds=None, weights="b"):
    """Results with provenance, if `machine` is not None, and with reports/seeds/ner.json."""
    files = {}
    if seeds:
        study = study_content({name: runs[0] for name, runs in seeds.items()})
        for name, runs in seeds.items():
            study["systems"][name]["f1_by_run"] = runs
        files["reports/seeds/ner.json"] = {**study, "seeds": [1, 2, 3]}
    content = results(scores, weights=weights, **files)
    if machine:
        digest = hashlib.sha256(content.tree.read("reports/studies/ner.json")).hexdigest()
        provenance = {"ner": {"sha256": digest, "machines": [machine], "finished": "2030"}}
        content.tree.contents["reports/provenance.json"] = provenance
    return content


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
EXPECTATION = "Another type of CPU than HEAD (abc), so scores may vary as those of 3 seeds do:"


def test_on_another_cpu_scores_may_vary_like_seeds():
    """0.285 was measured on an Intel CPU; it is below the 95% interval of seed 1."""
    before = results_on(MACHINE, COMMITTED, seeds=SEEDS)
    rerun = {name: score + 0.002 for name, score in COMMITTED.items()}
    after = results_on(ELSEWHERE, {**rerun, "ner-generative-neftune": 0.285}, weights="c")
    assert verdict(before, after) == (
        f"ner: reproduced. {EXPECTATION} 7 of 7 are inside that variation."
    )
    broken = results_on(ELSEWHERE, {**rerun, "ner-decoder": 0.65}, weights="c")
    assert verdict(before, broken) == (
        f"ner: not reproduced. {EXPECTATION} 6 of 7 are inside that variation, not ner-decoder."
    )


def test_on_the_same_cpu_the_bytes_must_be_the_same():
    expectation = "Same type of CPU as HEAD (abc), so the bytes must be the same:"
    before = results_on(MACHINE, COMMITTED, seeds=SEEDS)
    assert verdict(before, before) == f"ner: reproduced. {expectation} 7 of 7 are."
    other = results_on(MACHINE, {**COMMITTED, "ner-decoder": 0.757})
    assert verdict(before, other) == (
        f"ner: not reproduced. {expectation} 6 of 7 are. 7 of 7 are inside the variation of 3"
        " seeds."
    )
    assert not compare("ner", before, other).is_outside


def test_the_same_bytes_on_another_cpu():
    before = results_on(MACHINE, COMMITTED, seeds=SEEDS)
    assert verdict(before, results_on(ELSEWHERE, COMMITTED)) == (
        "ner: reproduced. Another type of CPU than HEAD (abc), and still 7 of 7 have the same"
        " bytes."
    )


@pytest.mark.parametrize(
    ("score", "answer", "names"),
    [(0.505, "no difference found", ""), (0.6, "undecided", ", not one")],
)
def test_one_seed_is_not_enough_on_another_cpu(score, answer, names):
    before = results_on(MACHINE, {"one": 0.5, "two": 0.4})
    after = results_on(ELSEWHERE, {"one": score, "two": 0.401}, weights="c")
    inside = 1 if names else 2
    assert verdict(before, after) == (
        f"ner: {answer}. Another type of CPU than HEAD (abc); one seed does not show the variation"
        f" between trainings. {inside} of 2 are inside their 95% intervals (test records){names}."
    )


@pytest.mark.parametrize(
    "stale",
    [{"ner-encoder": [0.9, 0.91, 0.92]}, {"ner-unknown": [0.1, 0.2, 0.3]}],
    ids=["other scores", "another experiment"],
)
def test_seeds_of_another_version_of_the_study_are_ignored(stale):
    before = results_on(MACHINE, COMMITTED, seeds={**SEEDS, **stale})
    assert compare("ner", before, before).trainings == 1


def test_a_study_may_have_several_seeds_itself():
    means = {name: sum(runs) / 3 for name, runs in SEEDS.items()}
    before = results_on(MACHINE, means)
    study = before.tree.contents["reports/studies/ner.json"]
    study["seeds"] = [1, 2, 3]
    for name, runs in SEEDS.items():
        study["systems"][name]["f1_by_run"] = runs
    result = compare("ner", before, before)
    assert result.trainings == 3
    near, far = (
        next(s.range for s in r.scores)
        for r in (result, compare("ner", before, results_on(MACHINE, means)))
    )
    assert near.high - near.low < far.high - far.low, (
        "a mean of three seeds varies less than one seed"
    )


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({}, "Same type of CPU as"),
        ({"cpu": "Pascaline"}, "Another type of CPU than"),
        ({"capability": "AVX512"}, "Another instruction set than"),
        ({"torch": "3"}, "Another version of torch than"),
        (None, "The CPUs of this run and HEAD (abc) are not both known"),
    ],
)
def test_the_verdict_names_the_difference_of_machines(now, words):
    machine = None if now is None else {**MACHINE, **now}
    assert words in verdict(results_on(MACHINE, {"one": 0.5}), results_on(machine, {"one": 0.501}))


def test_other_metrics_exclude_the_interval():
    before, after = metrics(0.5, parameters=8, old=1), metrics(0.6, parameters=8, new=2)
    score = Score("one", Verdict.OUTSIDE, "f1", before, after)
    assert score.others == {"old": (1, None), "new": (None, 2)}
    assert score._replace(verdict=Verdict.OTHER_RECORDS).others == {}
    result = Comparison("ner", [score], [], [], ([], []), {}, ([], []))
    assert result.names_with(Verdict.OUTSIDE) == ["one"]
