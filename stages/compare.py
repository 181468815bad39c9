"""Compare the experiments of one study: a table with intervals, and a test for every pair."""

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.metrics import TEST, evaluation
from wxb.reporting import tables
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Compare the experiments of the study `name` of params.yaml, on each of its test sets."""
    study = params.named("studies", name)
    predictions = paths.PREDICTIONS / name
    unlisted = sorted(p.name for p in predictions.iterdir() if p.name not in study.experiments)
    if unlisted:
        print(f"left out, not in params.yaml (`wxb clean` removes them): {', '.join(unlisted)}")
    scorer = tasks.get(study.task).metrics
    judged = {member: evaluation.load(scorer, predictions / member) for member in study.experiments}
    places = [study.folder(seed) for seed in study.seeds]
    sets = list(judged[study.experiments[0]])
    for member, found in judged.items():
        if list(found) != sets or any(runs.keys() != {*places} for runs in found.values()):
            raise WxbError(
                f"{member} was scored on other test sets than {study.experiments[0]}, or not with"
                f" the seeds {study.seeds}; evaluate both again"
            )
    compared = {
        test_set: evaluation.compare(
            scorer,
            {
                member: [found[test_set][place] for place in places]
                for member, found in judged.items()
            },
            resamples=params.resamples,
            seed=params.seed,
        )
        for test_set in sets
    }
    comparison = {
        "study": name,
        "title": study.title,
        "seeds": study.seeds,
        **compared.pop(TEST),
        "further": compared,
        "left_out": unlisted,
    }
    for member, system in comparison["systems"].items():
        metrics = read_json(paths.metrics(name, member))
        system |= {key: metrics[key] for key in tables.SIZES}
    outputs = [paths.study(name, suffix) for suffix in ("json", "csv", "md")]
    with publish(*outputs) as (as_json, as_csv, as_markdown):
        write_json(as_json, comparison)
        table = tables.study_table(comparison)
        table.to_csv(as_csv, index=False, lineterminator="\n")
        as_markdown.write_text(tables.markdown(comparison), encoding="utf-8")


if __name__ == "__main__":
    run("compare", main, __doc__)
