"""The results in a tree of files, with the machines of their runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import PurePath
from typing import Any

from wxb.core import paths
from wxb.core.params import PARAMS, Params, parse_yaml
from wxb.project import provenance
from wxb.project.reproduction.ranges import Runs
from wxb.project.revisions import Tree, WorkingTree

METRICS = paths.METRICS.as_posix()
# Folders of metrics that belong to no study, and the stage that writes them.
STAGES = {paths.LESSONS: "lesson", paths.PRETRAIN: "pretrain"}
EXPERIMENT_STAGES = ("train", "evaluate")

Metrics = Mapping[str, float]


class Results:
    """The results in a tree by name: studies, lessons and `pretrain`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def members(self) -> dict[str, list[PurePath]]:
        """The metrics files of each result: one for each experiment or backbone of it."""
        members: dict[str, list[PurePath]] = {}
        for file in map(PurePath, self.tree.files(METRICS)):
            if file.suffix == ".json":
                is_lesson = file.parent.name == paths.LESSONS
                members.setdefault(file.stem if is_lesson else file.parent.name, []).append(file)
        for name, files in members.items():
            if systems := [*self.study(name).get("systems", [])]:
                # In the order of the study, without files of removed experiments.
                present = [file for file in files if file.stem in systems]
                members[name] = sorted(present, key=lambda file: systems.index(file.stem))
        return members

    def metrics(self, result: str) -> dict[str, Metrics]:
        """The metrics of a result by experiment, lesson or backbone."""
        return {file.stem: self._json(file.as_posix()) for file in self.members.get(result, [])}

    def study(self, name: str) -> dict[str, Any]:
        """The comparison of a study by the stage `compare`; empty if it does not exist."""
        return self._json(provenance.study_file(name))

    def records(self, result: str) -> tuple[float, ...]:
        """Numbers of test records and units of a study, or of test items; empty if unknown."""
        if study := self.study(result):
            return study["documents"], study["support"]
        support = self.metrics(result).get(result, {}).get("support")
        return () if support is None else (support,)

    def trainings(self, study: str) -> Runs:
        """The scores of every seed by metric and experiment; empty if only one seed is known.

        They come from the study, or from the same study in reports/seeds.
        """
        contents = (self.study(study), self._json(paths.seeds(study).as_posix()))
        content = next((each for each in contents if len(each.get("seeds", [])) > 1), None)
        if content is None:
            return {}
        headline = content["headline"]
        test_sets = {headline: content} | {
            f"{name}_{headline}": test_set for name, test_set in content["further"].items()
        }
        return {
            key: {name: system[f"{headline}_by_run"] for name, system in part["systems"].items()}
            for key, part in test_sets.items()
        }

    def has_run(self, result: str, member: str) -> bool:
        """Whether one metrics file was written by a run in this tree.

        True for commits. In a working tree, only a run leaves the cost of a stage.
        """
        if not isinstance(self.tree, WorkingTree):
            return True
        folders = (file.parent.name for file in self.members.get(result, []))
        stage = STAGES.get(next(folders, ""))
        verbs = (stage,) if stage else EXPERIMENT_STAGES
        return any(self.tree.read(paths.cost(verb, member).as_posix()) for verb in verbs)

    def weights(self, name: str) -> str | None:
        """The hash of a model in dvc.lock; None if it has none."""
        return self._hashes.get(paths.model(name).as_posix())

    def machines(self, result: str, params: Params) -> list[str]:
        """The machines on which a study ran; empty if unknown."""
        is_here = isinstance(self.tree, WorkingTree)
        has_run = is_here and any(self.has_run(result, name) for name in self.metrics(result))
        run = (
            provenance.from_costs(params, result) if has_run else provenance.find(result, self.tree)
        )
        return [provenance.machine_text(machine) for machine in run["machines"]] if run else []

    @cached_property
    def _hashes(self) -> dict[str, str]:
        lock = parse_yaml((self.tree.read("dvc.lock") or b"{}").decode(), PARAMS)
        outs = [out for stage in lock.get("stages", {}).values() for out in stage.get("outs", [])]
        return {out["path"]: out["md5"] for out in outs}

    def _json(self, path: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.tree.read(path) or b"{}")
        return content
