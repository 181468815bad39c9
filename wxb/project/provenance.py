"""The machines and the date of the committed studies, in reports/provenance.json.

Bytes are the same on one type of CPU only. So `python -m docs.generate` writes for each study the
machines that its stages ran on (from reports/cost, which is not committed) and the hash of its
table.

`make seeds` calls this module in a clone for reports/seeds/<study>.json, which also has `made`:
`seeds STUDY` before the run, `print STUDY` after it.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, write_json
from wxb.core.params import PARAMS, Params, load, read_yaml
from wxb.project import params_file
from wxb.project.revisions import Tree, WorkingTree, read_json
from wxb.reporting.costs import experiment_stages, training_seconds

MACHINE = ("device", "cpu", "capability", "torch")  # optional keys of files in reports/cost

# An entry of provenance.json: `sha256` of the study's table as JSON, `finished` (time), `machines`,
# `seconds` of training by experiment, and `trained_on`, the number of training records.
Provenance = Mapping[str, Any]


def studies(tree: Tree) -> list[str]:
    """The studies whose tables a tree has."""
    files = map(Path, tree.files(paths.STUDIES.as_posix()))
    return [path.stem for path in files if path.suffix == ".json"]


def find(study: str, tree: Tree) -> Provenance:
    """The provenance of a study's table in `tree`, from the working tree's provenance.json.

    Raises WxbError, with the command that adds it, if that file has no entry of the study with the
    sha256 of this table.
    """
    provenance: Provenance = read_json(WorkingTree(), paths.PROVENANCE).get(study, {})
    if provenance.get("sha256") == _table_sha256(study, tree):
        return provenance
    raise WxbError(
        f"{paths.PROVENANCE} lacks the sha256 of {paths.study(study)} in {tree.name}, and this"
        f" machine has no run of it. Run `make run STUDY={study}`, `git add dvc.lock reports`,"
        " then `python -m docs.generate`"
    )


def write(params: Params, index: Tree) -> None:
    """Write reports/provenance.json, with an entry for each study in git's index and no other.

    An entry of the same table is kept. Another is made if the working tree has the same table with
    the costs of its stages. Raises WxbError for a study that has neither.
    """
    provenances: dict[str, Provenance] = {}
    for study in studies(index):
        try:
            provenances[study] = find(study, index)
        except WxbError:
            run, sha256 = from_costs(params, study), _table_sha256(study, index)
            if not run or _table_sha256(study, WorkingTree()) != sha256:
                raise
            seconds = training_seconds(read_json(index, paths.study(study)))
            provenances[study] = {"sha256": sha256, **run, "seconds": seconds}
    with publish(paths.PROVENANCE) as (draft,):
        write_json(draft, provenances)


def from_costs(params: Params, study: str) -> dict[str, Any]:
    """The distinct `machines` of a study's stages and when the last `finished`, from reports/cost.

    Also `trained_on`, the number of labelled training records, if the corpus has a profile.
    Empty if params.yaml lacks the study, or a stage has no cost.
    """
    if study not in params.studies:
        return {}
    experiments = params.studies[study].experiments
    stages = [stage for name in experiments for stage in experiment_stages(params, name)]
    costs = [read_json(WorkingTree(), paths.cost(*s.split("@"))) for s in dict.fromkeys(stages)]
    if not all(costs):
        return {}
    machines = [{key: cost[key] for key in MACHINE if key in cost} for cost in costs]
    # A stage without torch has fewer keys of the same machine than others.
    full = [m for m in machines if not any(m.items() < other.items() for other in machines)]
    corpus = params.experiments[experiments[0]].corpus
    profile = read_json(WorkingTree(), paths.CLEAN / corpus / paths.PROFILE)
    return {
        **({"trained_on": profile["splits"]["train"]["labelled"]} if profile else {}),
        "finished": max(cost["finished"] for cost in costs),
        "machines": [machine for i, machine in enumerate(full) if machine not in full[:i]],
    }


def sentence(provenance: Provenance) -> str:
    """Where and when a study was run, without full stop: `Made on EPYC (AVX2), finished on ...`"""
    machines = []
    for machine in provenance["machines"]:
        version = f"torch {machine['torch']}" if "torch" in machine else ""
        details = ", ".join(filter(None, [machine.get("capability"), version]))
        machines.append(f"{machine['device']} ({details})" if details else machine["device"])
    return f"Made on {' and '.join(machines)}, finished on {provenance['finished'][:10]}"


def write_seeds(study: str) -> None:
    """Set the seeds of one study in params.yaml to 1, 2 and 3.

    Only its own experiments are trained with all of them: backbones, also those that another study
    trains, keep their weights. Raises ParamsError, with the nearest name, for an unknown study.
    """
    load().block("studies", study)
    content = read_yaml(PARAMS)
    content["studies"][study]["seed"] = [1, 2, 3]
    params_file.write(content)


def comparison_with_machines(study: str) -> dict[str, Any]:
    """The comparison of a study, and `from_costs` as `made`; they may come from different runs."""
    content = read_json(WorkingTree(), paths.study(study))
    return {**content, "made": from_costs(load(), study)}


def _table_sha256(study: str, tree: Tree) -> str:
    """The hash of the JSON file of a study's table; that of no bytes if the tree has none."""
    return hashlib.sha256(tree.read(paths.study(study).as_posix()) or b"").hexdigest()


if __name__ == "__main__":
    _, action, name = sys.argv
    if action == "seeds":
        write_seeds(name)
    else:
        print(json.dumps(comparison_with_machines(name), ensure_ascii=False, indent=2))
