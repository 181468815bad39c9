"""Comparisons of results: equal, within their ranges, or outside."""

import hashlib
import math
from pathlib import Path
from statistics import fmean

import pytest
from scipy.stats import t

from tests.reporting.conftest import comparison as study_content
from tests.repository import Files, write
from wxb.project import comparison
from wxb.project.comparison import (
    Range,
    Results,
    Score,
    Verdict,
    judged_scores,
    ranges,
    worst_verdicts,
)
from wxb.project.revisions import WorkingTree

LESSON = "reports/metrics/lessons/images.json"
PRETRAIN = "reports/metrics/pretrain/encoder.json"


def metrics(f1, **others):
    return {"f1": f1, "f1_low": f1 - 0.01, "f1_high": f1 + 0.01, **others}


def results(scores=None, *, weights="a", documents=100, records=0, seeds=None, **files):
    """Results with one study, whose experiments have these F1 scores and models."""
    scores = {"one": 0.5, "two": 0.4} if scores is None else scores
    study = {
        **study_content(scores),
        "records_sha256": records,
        "documents": documents,
        "spans": 300,
        "seed": 1,
    }
    models = dict.fromkeys(scores, weights) if isinstance(weights, str) else weights
    outs = [{"path": f"models/{member}", "md5": digest} for member, digest in models.items()]
    if seeds:
        files["reports/seeds/ner.json"] = with_seeds(seeds)
    return Results(
        Files(
            "HEAD",
            {
                "dvc.lock": {"stages": {"train": {"outs": outs}, "download": {}}},
                "reports/studies/ner.json": study,
                **{f"reports/metrics/ner/{m}.json": metrics(f1) for m, f1 in scores.items()},
                **files,
            },
        )
    )


def with_seeds(seeds):
    """A study with the scores of three seeds."""
    study = study_content({name: runs[0] for name, runs in seeds.items()})
    for name, runs in seeds.items():
        study["systems"][name]["f1_by_run"] = runs
    return {**study, "seeds": [1, 2, 3]}


def verdicts(before, after, name="ner"):
    return {k[1]: v for k, v in worst_verdicts(judged_scores(name, before, after)).items()}


def test_scores_are_compared_with_their_intervals():
    scores = {"same": 0.1, "retrained": 0.2, "inside": 0.3, "edge": 0.4, "outside": 0.5}
    now = {"same": 0.1, "retrained": 0.2, "inside": 0.305, "edge": 0.41, "outside": 0.511}
    before = results({**scores, "gone": 0.6}, weights=dict.fromkeys(scores, "a"))
    after = results({**now, "new": 0.6}, weights={**dict.fromkeys(now, "a"), "retrained": "b"})
    assert verdicts(before, after) == {
        "same": Verdict.EQUAL,
        "retrained": Verdict.ROUNDING,
        "inside": Verdict.WITHIN,
        "edge": Verdict.WITHIN,
        "outside": Verdict.OUTSIDE,
        "gone": Verdict.MISSING,
        "new": Verdict.NEW,
    }
    assert {score.trainings for score in judged_scores("ner", before, after)} == {0, 1}


def test_other_test_records_cannot_be_compared():
    after = results({"one": 0.9, "two": 0.1}, documents=60)
    assert {*verdicts(results(), after).values()} == {Verdict.OTHER_RECORDS}
    hashed = [results({"one": 0.9, "two": 0.1}, records=digit) for digit in "ab"]
    assert {*verdicts(*hashed).values()} == {Verdict.OTHER_RECORDS}
    for known in hashed:  # an earlier version wrote no hash
        assert Verdict.OTHER_RECORDS not in {*verdicts(results(), known).values()}
    small, large = (results(**{LESSON: metrics(0.5, support=n)}) for n in (10, 11))
    assert verdicts(small, large, "images") == {"images": Verdict.OTHER_RECORDS}


def test_metrics_without_interval_differ():
    before, after = (
        results(**{PRETRAIN: {"loss": loss, "accuracy": 0.5}}, weights={"encoder": digest})
        for loss, digest in ((5.0, "a"), (5.1, "b"))
    )
    (score,) = judged_scores("pretrain", before, after)
    assert score[:5] == ("pretrain", "encoder", "loss", 5.0, 5.1)
    assert (score.range, score.verdict) == (None, Verdict.DIFFERS)
    (score,) = judged_scores("pretrain", before, before)
    assert score.verdict is Verdict.EQUAL


def test_files_of_removed_experiments_are_ignored():
    removed = {"reports/metrics/ner/removed.json": metrics(0.9)}
    assert [*verdicts(results(), results(**removed))] == ["one", "two"]


def test_a_result_may_be_in_one_version_only():
    empty = Results(Files("empty", {}))
    assert {*verdicts(empty, results()).values()} == {Verdict.NEW}
    assert {*verdicts(results(), empty).values()} == {Verdict.MISSING}


def test_only_results_of_the_last_run_have_run_here(cwd):
    """Not those of a training that failed, or that git restored: dvc.lock has other costs."""
    outs = []
    for verb in ("train", "evaluate"):
        write(path := f"reports/cost/{verb}/one.json", {"seconds": 1.0})
        outs.append({"path": path, "md5": hashlib.md5(Path(path).read_bytes()).hexdigest()})
    write("dvc.lock", {"stages": {"train@one": {"outs": outs}}})
    write("reports/metrics/ner/one.json", metrics(0.5))
    assert Results(WorkingTree()).has_run("ner", "one")
    write("reports/cost/train/one.json", {"seconds": 2.0})
    assert not Results(WorkingTree()).has_run("ner", "one")
    Path("reports/cost/train/one.json").unlink()
    assert not Results(WorkingTree()).has_run("ner", "one")


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


def test_without_the_same_bytes_scores_may_vary_like_seeds():
    """0.285 was measured on an Intel CPU; it is below the 95% interval of seed 1."""
    before = results(COMMITTED, seeds=SEEDS)
    rerun = {name: score + 0.002 for name, score in COMMITTED.items()}
    after = results({**rerun, "ner-generative-neftune": 0.285}, weights="c")
    assert {*verdicts(before, after).values()} == {Verdict.WITHIN}
    broken = verdicts(before, results({**rerun, "ner-decoder": 0.65}, weights="c"))
    assert [name for name in broken if broken[name] is Verdict.OUTSIDE] == ["ner-decoder"]
    assert {score.trainings for score in judged_scores("ner", before, after)} == {3}


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (0.901758, Verdict.ROUNDING),
        (0.90176, Verdict.ROUNDING),
        (0.901761, Verdict.OUTSIDE),
        (0.838, Verdict.OUTSIDE),
    ],
)
def test_an_experiment_with_equal_seeds_must_have_its_score(now, verdict):
    seeds = {**SEEDS, "ner-crf": [0.901759] * 3}
    committed = {**COMMITTED, "ner-crf": 0.901759}
    after = results({**committed, "ner-crf": now}, weights="c")
    assert verdicts(results(committed, seeds=seeds), after)["ner-crf"] is verdict


@pytest.mark.parametrize(
    "stale",
    [{"ner-encoder": [0.9, 0.91, 0.92]}, {"ner-unknown": [0.1, 0.2, 0.3]}],
    ids=["other scores", "another experiment"],
)
def test_seeds_of_another_version_of_the_study_are_ignored(stale):
    before = results(COMMITTED, seeds={**SEEDS, **stale})
    assert {score.trainings for score in judged_scores("ner", before, before)} == {1}


def test_a_mean_of_several_seeds_has_a_narrower_range():
    means = {name: sum(runs) / 3 for name, runs in SEEDS.items()}
    before = results(means)
    before.tree.contents["reports/studies/ner.json"] |= {**with_seeds(SEEDS), "documents": 100}
    near, far = (next(judged_scores("ner", before, after)) for after in (before, results(means)))
    assert near.trainings == far.trainings == 3
    assert near.range.high - near.range.low < far.range.high - far.range.low


RUNS = {"f1": {"one": [0.5, 0.52, 0.51], "two": [0.3, 0.33, 0.36]}}


def test_the_wider_interval_of_students_t_is_used():
    """Around the mean of all seeds: the pooled interval of `one`, its own of `two`."""
    one, two = ranges(RUNS)["f1"].values()
    pooled = math.sqrt((0.01**2 + 0.03**2) / 2)
    both, alone = t.ppf((1 + math.sqrt(0.95)) / 2, 4), t.ppf(0.975, 2)
    assert one.high - 0.51 == pytest.approx(both * pooled * math.sqrt(4 / 3))
    assert two.high - 0.33 == pytest.approx(alone * 0.03 * math.sqrt(4 / 3))
    assert [fmean(one), fmean(two)] == pytest.approx([0.51, 0.33])


def test_experiments_that_do_not_vary_have_no_range_and_narrow_no_other():
    constant = {"crf": [0.901759] * 3, "mentions": [0.4] * 3}
    both = ranges({"f1": {**RUNS["f1"], **constant}})["f1"]
    assert {name: both[name] for name in RUNS["f1"]} == ranges(RUNS)["f1"]
    assert ranges({"f1": constant})["f1"].keys() == constant.keys()


@pytest.mark.parametrize(
    ("trainings", "kind"), [(1, "95% intervals of test records"), (3, "3 seeds")]
)
def test_the_summary_names_the_ranges_of_scores_that_were_judged(trainings, kind):
    scores = [
        Score("mine", "a", "f1", 0.5, 0.6, Range(0.4, 0.5), trainings, Verdict.OUTSIDE),
        Score("ner", "b", "f1", 0.5, 0.5, Range(0.4, 0.6), 4 - trainings, Verdict.EQUAL),
    ]
    expected = f"1 of 2 have the same bytes, 1 outside (ranges: {kind})"
    assert comparison._verdict_counts(scores) == expected
