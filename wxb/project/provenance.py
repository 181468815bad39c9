"""Where and when the committed studies were made.

Their bytes are promised on one kind of CPU only. So `wxb readme` notes for each study the machines
that its stages ran on (reports/cost, which is not committed), beside the hash of what they made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.core.params import Params
from wxb.project.revisions import Index, Tree, WorkingTree
from wxb.reporting.costs import read_training, stages_of

PROVENANCE = paths.PROVENANCE.as_posix()
MACHINE = ("device", "cpu", "capability", "torch")  # keys of reports/cost, where it has them

# sha256 of the study's JSON, finished, machines, seconds of training by experiment, and how many
# training records it has.
Provenance = Mapping[str, Any]


def study_file(study: str) -> str:
    """The path of a study's table as JSON."""
    return paths.study(study).as_posix()


def studies(tree: Tree) -> list[str]:
    """The studies whose tables a tree has."""
    files = map(Path, tree.files(paths.STUDIES.as_posix()))
    return [path.stem for path in files if path.suffix == ".json"]


def of(study: str, tree: Tree, told: Tree | None = None) -> Provenance | None:
    """Where the study that a tree has was made, by the provenance in `told` (default: the same).

    None where that tells nothing of the study, or of other bytes.
    """
    content, noted = tree.read(study_file(study)), (told or tree).read(PROVENANCE)
    found = json.loads(noted).get(study) if noted else None
    return found if found and content and found["sha256"] == _sha256(content) else None


def demanded(study: str, tree: Tree) -> Provenance:
    """Where the study that a tree has was made, as the working tree notes it; WxbError if not."""
    found = of(study, tree, WorkingTree())
    if found is None:
        raise WxbError(
            f"{PROVENANCE} does not tell where {study_file(study)} of {tree.name} was made;"
            " expected its sha256 there, or the same file in the working tree, with reports/cost"
            f" of its stages. Make it and stage what was made: `dvc repro report@{study}`"
            " (`wxb params PROFILE` brings those that params.yaml lacks),"
            " `git add dvc.lock reports`, then `wxb readme`"
        )
    return found


def record(params: Params, index: Index) -> None:
    """Write the provenance of all studies in git's index.

    What is noted of a study stays; a new one is noted if the working tree has the same study, which
    DVC made here. Raises WxbError for one that is neither.
    """
    here = WorkingTree()
    noted: dict[str, Provenance] = {}
    for study in studies(index):
        content, made = index.read(study_file(study)) or b"", measured(params, study)
        if made and not of(study, index, here) and content == here.read(study_file(study)):
            seconds = read_training(json.loads(content))
            noted[study] = {"sha256": _sha256(content), **made, "seconds": seconds}
        else:
            noted[study] = demanded(study, index)
    write_json(Path(PROVENANCE), noted)


def measured(params: Params, study: str) -> dict[str, Any]:
    """When and on what machines the stages of a study ran here; empty unless all were measured."""
    if study not in params.studies:
        return {}
    files = dict.fromkeys(_costs(params, study))
    if not all(file.is_file() for file in files):
        return {}
    costs = [read_json(file) for file in files]
    machines = [{key: cost[key] for key in MACHINE if key in cost} for cost in costs]
    # A stage without torch tells less of its machine than others do.
    known = [one for one in machines if not any(one.items() < other.items() for other in machines)]
    return {
        **_trained_on(params.experiments[params.studies[study].experiments[0]].corpus),
        "finished": max(cost["finished"] for cost in costs),
        "machines": [made for place, made in enumerate(known) if made not in known[:place]],
    }


def told(made: Provenance) -> str:
    """Where and when, in words."""
    machines = " and ".join(machine(each) for each in made["machines"])
    return f"Made on {machines}, finished on {made['finished'][:10]}"


def machine(found: Mapping[str, str]) -> str:
    """A machine in words: `AMD EPYC, 1 CPU thread(s) (AVX512, torch 2.13.0+cpu)`."""
    version = f"torch {found['torch']}" if "torch" in found else ""
    more = ", ".join(filter(None, [found.get("capability"), version]))
    return f"{found['device']} ({more})" if more else found["device"]


def _costs(params: Params, study: str) -> Iterable[Path]:
    """The files on what those stages cost that decide a study's numbers."""
    for name in params.studies[study].experiments:
        for stage in stages_of(params, name):
            verb, _, block = stage.partition("@")
            yield paths.cost(verb, block)


def _trained_on(corpus: str) -> dict[str, int]:
    """How many labelled records a corpus has for training, if it is here."""
    profile = paths.clean(corpus) / paths.PROFILE
    there = profile.is_file()
    return {"trained_on": read_json(profile)["splits"]["train"]["labelled"]} if there else {}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
