"""The machines and the date of the committed studies, in reports/provenance.json.

Bytes are the same on one type of CPU only. So `wxb readme` writes for each study the machines that
its stages ran on (from reports/cost, which is not committed) and the hash of its table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params import Params
from wxb.project.revisions import Tree, WorkingTree
from wxb.reporting.costs import experiment_stages, read_training_seconds

PROVENANCE = paths.PROVENANCE.as_posix()
MACHINE = ("device", "cpu", "capability", "torch")  # optional keys of files in reports/cost

# An entry of provenance.json: `sha256` of the study's table as JSON, `finished` (time), `machines`,
# `seconds` of training by experiment, and `trained_on`, the number of training records.
Provenance = Mapping[str, Any]


def study_file(study: str) -> str:
    """The path of a study's table as JSON."""
    return paths.study(study).as_posix()


def studies(tree: Tree) -> list[str]:
    """The studies whose tables a tree has."""
    files = map(Path, tree.files(paths.STUDIES.as_posix()))
    return [path.stem for path in files if path.suffix == ".json"]


def find(study: str, tree: Tree, source: Tree | None = None) -> Provenance | None:
    """The provenance of a study's table in `tree`, from the reports/provenance.json of `source`.

    `source` is `tree` by default. None if the tree has no such table (`study_file`), or if
    provenance.json has no entry of the study with the sha256 of this table.
    """
    table, provenances = tree.read(study_file(study)), (source or tree).read(PROVENANCE)
    provenance = json.loads(provenances).get(study) if provenances else None
    is_current = provenance and table and provenance["sha256"] == _sha256(table)
    return provenance if is_current else None


def require(study: str, tree: Tree) -> Provenance:
    """The provenance of a study's table in `tree`, from the working tree's provenance.json.

    Raises WxbError, with the command that adds it, if `find` returns None.
    """
    provenance = find(study, tree, WorkingTree())
    if provenance is None:
        raise WxbError(
            f"{PROVENANCE} lacks the sha256 of {study_file(study)} in {tree.name}, and this machine"
            f" has no run of it. Run `make run STUDY={study}`, `git add dvc.lock reports`, then"
            " `wxb readme`"
        )
    return provenance


def record(params: Params, index: Tree) -> None:
    """Write reports/provenance.json for all studies in git's index.

    Known studies keep their entry. A new one is added if the working tree has the same table with
    the costs of its stages. Raises WxbError for a study that is neither known nor added.
    """
    working_tree = WorkingTree()
    provenances: dict[str, Provenance] = {}
    for study in studies(index):
        known, run = find(study, index, working_tree), from_costs(params, study)
        table = index.read(study_file(study)) or b""
        if run and known is None and table == working_tree.read(study_file(study)):
            seconds = read_training_seconds(json.loads(table))
            provenances[study] = {"sha256": _sha256(table), **run, "seconds": seconds}
        else:
            provenances[study] = require(study, index)
    write_json(Path(PROVENANCE), provenances)


def from_costs(params: Params, study: str) -> dict[str, Any]:
    """The machines of a study's stages and their last finish, from reports/cost.

    Also the number of training records, from the profile of the corpus. Empty if params.yaml lacks
    the study, or a stage has no cost.
    """
    if study not in params.studies:
        return {}
    experiments = params.studies[study].experiments
    stages = [stage for name in experiments for stage in experiment_stages(params, name)]
    files = [paths.cost(*stage.split("@")) for stage in dict.fromkeys(stages)]
    if not all(file.is_file() for file in files):
        return {}
    costs = [read_json(file) for file in files]
    machines = [{key: cost[key] for key in MACHINE if key in cost} for cost in costs]
    # A stage without torch has fewer keys of the same machine than others.
    full = [m for m in machines if not any(m.items() < other.items() for other in machines)]
    profile = paths.clean(params.experiments[experiments[0]].corpus) / paths.PROFILE
    trained_on = read_json(profile)["splits"]["train"]["labelled"] if profile.is_file() else None
    return {
        **({} if trained_on is None else {"trained_on": trained_on}),
        "finished": max(cost["finished"] for cost in costs),
        "machines": [machine for i, machine in enumerate(full) if machine not in full[:i]],
    }


def sentence(provenance: Provenance) -> str:
    """Where and when a study was run, without a full stop."""
    machines = " and ".join(machine_text(machine) for machine in provenance["machines"])
    return f"Made on {machines}, finished on {provenance['finished'][:10]}"


def machine_text(machine: Mapping[str, str]) -> str:
    """A machine as text: `AMD EPYC, 1 CPU thread(s) (AVX512, torch 2.13.0+cpu)`."""
    version = f"torch {machine['torch']}" if "torch" in machine else ""
    details = ", ".join(filter(None, [machine.get("capability"), version]))
    return f"{machine['device']} ({details})" if details else machine["device"]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
