"""Compare the experiments of a study: a table with intervals, and a test of each pair."""

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json, write_json
from wxb.core.params import Params
from wxb.metrics import evaluation
from wxb.reporting import tables
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Write the comparison of the study `name` as JSON, CSV and Markdown.

    Prints and skips unlisted experiments. Raises WxbError if test sets or seeds differ.
    """
    study = params.block("studies", name)
    predictions = paths.PREDICTIONS / name
    if unlisted := sorted({p.name for p in predictions.iterdir()}.difference(study.experiments)):
        print(f"skipped, not in params.yaml (`wxb clean` removes them): {', '.join(unlisted)}")
    scorer = tasks.get(study.task).metrics
    baselines = [name for name in study.experiments if params.experiments[name].is_baseline]
    members = sorted(study.experiments, key=lambda member: member in baselines)  # these come last
    evaluations = {member: evaluation.load(predictions / member) for member in members}
    test_sets = [*evaluations[study.experiments[0]]]
    seeds = {*map(study.seed_subfolder, study.seeds)}
    for member, by_set in evaluations.items():
        folders = {path.name for path in (predictions / member).glob(f"{paths.SEED}*")}
        if [*by_set] != test_sets or {"", *folders} != seeds:
            raise WxbError(
                f"{member} was scored on other test sets than {study.experiments[0]}, or not with"
                f" the seeds {study.seeds}; run `dvc repro evaluate@{member}"
                f" evaluate@{study.experiments[0]}`"
            )
    comparison = {
        "study": name,
        "title": study.title,
        "question": study.question,
        "seeds": study.seeds,
        **evaluation.compare(scorer, evaluations, baselines),
    }
    for member, system in comparison["systems"].items():
        metrics = read_json(paths.metrics(name, member))
        system |= {key: metrics[key] for key in tables.SIZES}
    outputs = [paths.study(name, suffix) for suffix in ("json", "csv", "md")]
    with publish(*outputs) as (as_json, as_csv, as_markdown):
        write_json(as_json, comparison)
        as_csv.write_text(tables.as_csv(comparison), encoding="utf-8", newline="")
        as_markdown.write_text(tables.markdown(comparison), encoding="utf-8")


if __name__ == "__main__":
    run("compare", main, __doc__)
