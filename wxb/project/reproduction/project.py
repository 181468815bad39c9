"""What a tree of files tells of a project's results, and of what they were made from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import PurePath
from typing import Any

from ruamel.yaml import YAML

from wxb.core import paths
from wxb.core.params import Params
from wxb.core.params.section import flat
from wxb.project import profiles, provenance
from wxb.project.reproduction.ranges import Runs
from wxb.project.revisions import Tree, WorkingTree

METRICS = paths.METRICS.as_posix()
# Folders of metrics that belong to no study, and the stage that writes them.
STAGES = {"lessons": "lesson", "pretrain": "pretrain", "parity": "parity"}
TOGETHER = ("pretrain", "parity")  # one result for all; each lesson is a result of its own
TRAINED = ("train", "evaluate")  # the stages that make the metrics of an experiment

Metrics = Mapping[str, float]


class Project:
    """The results in a tree by their names: studies, lessons, `pretrain` and `parity`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @property
    def name(self) -> str:
        """What the tree is called in a sentence."""
        return self.tree.name

    @cached_property
    def results(self) -> dict[str, str]:
        """Each result's folder of metrics, by its name; studies first."""
        files = [PurePath(file) for file in self.tree.files(METRICS)]
        folders = dict.fromkeys(file.parent.name for file in files if file.suffix == ".json")
        lessons = [file.stem for file in files if file.parent.name == "lessons"]
        return {
            **{name: name for name in folders if name not in STAGES},
            **dict.fromkeys(lessons, "lessons"),
            **{name: name for name in TOGETHER if name in folders},
        }

    def metrics(self, result: str) -> dict[str, Metrics]:
        """The metrics of a result by experiment, lesson, backbone or architecture."""
        folder = self.results.get(result)
        files = [PurePath(file) for file in self.tree.files(f"{METRICS}/{folder}")]
        names = [file.stem for file in files if file.suffix == ".json"]
        if folder == "lessons":
            names = [result]
        elif study := self.study(result):
            # Others are left behind by blocks that were removed; the study has its own order.
            names = [name for name in study["systems"] if name in names]
        return {name: self._json(f"{METRICS}/{folder}/{name}.json") for name in names}

    def study(self, name: str) -> dict[str, Any]:
        """What the stage `compare` wrote of a study; empty where it did not."""
        return self._json(provenance.study_file(name))

    def records(self, result: str) -> dict[str, int]:
        """How much a result was tested on: counts by what is counted, as far as known."""
        if study := self.study(result):
            return {"test records": study["documents"], study["unit"]: study["support"]}
        supports = [
            found["support"] for found in self.metrics(result).values() if "support" in found
        ]
        return {"test items": int(supports[0])} if supports else {}

    def seeds(self, name: str) -> list[int]:
        """The seeds that a study was trained with."""
        return list(self.study(name).get("seeds", []))

    def trainings(self, study: str) -> Runs:
        """The scores of every seed by metric and experiment; empty if only one seed is known.

        They are those of the study, or of the same study with several seeds in reports/seeds.json.
        """
        known = (self.study(study), self._json(paths.SEEDS.as_posix()))
        several = [each for each in known if each.get("study") == study and len(each["seeds"]) > 1]
        if not several:
            return {}
        headline = several[0]["headline"]
        sets = {headline: several[0]} | {
            f"{test_set}_{headline}": found for test_set, found in several[0]["further"].items()
        }
        return {
            key: {name: system[f"{headline}_by_run"] for name, system in found["systems"].items()}
            for key, found in sets.items()
        }

    def has_run(self, result: str, member: str) -> bool:
        """Whether the stages of one metrics file ran where the tree lies.

        A commit has what a run left. In a working tree only a run leaves the cost of a stage.
        """
        if not isinstance(self.tree, WorkingTree):
            return True
        folder = self.results.get(result, "")
        verbs = (STAGES[folder],) if folder in STAGES else TRAINED
        return any(self.tree.read(paths.cost(verb, member).as_posix()) for verb in verbs)

    def has_any_run(self, result: str) -> bool:
        """Whether any metrics file of a result was made where the tree lies."""
        return any(self.has_run(result, member) for member in self.metrics(result))

    def has_weights(self, result: str) -> bool:
        """Whether the metrics of a result are those of models that are kept."""
        return self.results.get(result) not in ("lessons", "parity")

    def weights(self, name: str) -> str | None:
        """The hash that DVC has of a model; None where there is none."""
        stages = self._lock.get("stages", {})
        outs = [out for stage in stages.values() for out in stage.get("outs", [])]
        return next(
            (out["md5"] for out in outs if out["path"] == paths.model(name).as_posix()), None
        )

    def params(self, result: str) -> dict[str, Any]:
        """The values of params.yaml that a result is made from, by dotted key."""
        general = {k: v for k, v in self._params.items() if not isinstance(v, Mapping)}
        blocks = {place: self._block(*place) for place in self._blocks(result)}
        return flat({**general, **{".".join(place): b for place, b in blocks.items() if b}})

    def machines(self, result: str, params: Params | None) -> list[dict[str, str]]:
        """The machines that made a study, as far as known; `params` are those of a working tree."""
        made: provenance.Provenance | None
        if isinstance(self.tree, WorkingTree) and params and self.has_any_run(result):
            made = provenance.measured(params, result)
        else:
            made = provenance.of(result, self.tree)
        return list(made["machines"]) if made else []

    def _blocks(self, result: str) -> Iterator[tuple[str, str]]:
        """The blocks of params.yaml that a result is made from, as section and name."""
        match self.results.get(result, result):
            case "lessons":
                yield "lessons", result
                source = PurePath(str(self._block("lessons", result).get("path")))
                if source.parent.name == "models":  # a model that a stage trained
                    yield from self._origins(source.name)
            case "pretrain":
                for name in self.metrics(result):
                    yield from self._origins(name)
            case "parity":
                yield from (("parity", name) for name in self._params.get("parity", {}))
            case study:
                yield "studies", study
                for name in self._block("studies", study).get("experiments", []):
                    yield from self._origins(name)

    def _origins(self, model: str) -> Iterator[tuple[str, str]]:
        """The blocks that a model is made from: an experiment's, or a backbone's."""
        experiment = self._block("experiments", model)
        backbone = experiment.get("backbone", model)
        if experiment:
            yield "experiments", model
            yield "corpora", str(experiment.get("corpus"))
        yield "backbones", backbone
        yield "corpora", str(self._block("backbones", backbone).get("corpus"))

    def _block(self, section: str, name: str) -> Mapping[str, Any]:
        """A block of params.yaml, or else that which a profile would add."""
        blocks = (there.get(section, {}).get(name) for there in (self._params, *self._additions))
        return next(filter(None, blocks), {})

    @cached_property
    def _params(self) -> dict[str, Any]:
        return self._yaml("params.yaml")

    @cached_property
    def _additions(self) -> list[profiles.Blocks]:
        return list(profiles.additions(profiles.of(self.tree)).values())

    @cached_property
    def _lock(self) -> dict[str, Any]:
        return self._yaml("dvc.lock")

    def _yaml(self, path: str) -> dict[str, Any]:
        content: dict[str, Any] = YAML(typ="safe").load(self.tree.read(path) or b"{}")
        return content

    def _json(self, path: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.tree.read(path) or b"{}")
        return content
