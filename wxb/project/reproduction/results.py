"""The results in a tree of files, with their parameters and machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import PurePath
from typing import Any

from ruamel.yaml import YAML

from wxb.core import paths
from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.project import profiles, provenance
from wxb.project.reproduction.ranges import Runs
from wxb.project.revisions import Tree, WorkingTree

METRICS = paths.METRICS.as_posix()
# Folders of metrics that belong to no study, and the stage that writes them.
STAGES = {"lessons": "lesson", "pretrain": "pretrain"}
EXPERIMENT_STAGES = ("train", "evaluate")

Metrics = Mapping[str, float]


class Results:
    """The results in a tree by name: studies, lessons and `pretrain`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def folders(self) -> dict[str, str]:
        """The folder of metrics of each result; studies first."""
        files = [PurePath(file) for file in self.tree.files(METRICS)]
        folders = dict.fromkeys(file.parent.name for file in files if file.suffix == ".json")
        lessons = [file.stem for file in files if file.parent.name == "lessons"]
        return {
            **{name: name for name in folders if name not in STAGES},
            **dict.fromkeys(lessons, "lessons"),
            **({"pretrain": "pretrain"} if "pretrain" in folders else {}),
        }

    def metrics(self, result: str) -> dict[str, Metrics]:
        """The metrics of a result by experiment, lesson or backbone."""
        folder = self.folders.get(result)
        files = [PurePath(file) for file in self.tree.files(f"{METRICS}/{folder}")]
        names = [file.stem for file in files if file.suffix == ".json"]
        if folder == "lessons":
            names = [result]
        elif study := self.study(result):
            # In the order of the study, without files of removed experiments.
            names = [name for name in study["systems"] if name in names]
        return {name: self._json(f"{METRICS}/{folder}/{name}.json") for name in names}

    def study(self, name: str) -> dict[str, Any]:
        """The comparison of a study by the stage `compare`; empty if it does not exist."""
        return self._json(provenance.study_file(name))

    def records(self, result: str) -> dict[str, int]:
        """Numbers of test records and units of a result, by their names; empty if unknown."""
        if study := self.study(result):
            return {"test records": study["documents"], study["unit"]: study["support"]}
        supports = [
            metrics["support"] for metrics in self.metrics(result).values() if "support" in metrics
        ]
        return {"test items": int(supports[0])} if supports else {}

    def seeds(self, name: str) -> list[int]:
        """The training seeds of a study."""
        return list(self.study(name).get("seeds", []))

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
        folder = self.folders.get(result, "")
        verbs = (STAGES[folder],) if folder in STAGES else EXPERIMENT_STAGES
        return any(self.tree.read(paths.cost(verb, member).as_posix()) for verb in verbs)

    def has_weights(self, result: str) -> bool:
        """Whether the models of a result are files."""
        return self.folders.get(result) != "lessons"

    def weights(self, name: str) -> str | None:
        """The hash of a model in dvc.lock; None if it has none."""
        stages = self._lock.get("stages", {})
        outs = [out for stage in stages.values() for out in stage.get("outs", [])]
        return next(
            (out["md5"] for out in outs if out["path"] == paths.model(name).as_posix()), None
        )

    def params(self, result: str) -> dict[str, Any]:
        """The values of params.yaml that a result depends on, by dotted key."""
        general = {k: v for k, v in self._params.items() if not isinstance(v, Mapping)}
        blocks = {".".join(names): self._block(*names) for names in self._block_names(result)}
        return flatten({**general, **{key: block for key, block in blocks.items() if block}})

    def machines(self, result: str, params: Params | None) -> list[dict[str, str]]:
        """The machines on which a study ran; empty if unknown. `params` are for a working tree."""
        run: provenance.Provenance | None
        has_run = any(self.has_run(result, member) for member in self.metrics(result))
        if isinstance(self.tree, WorkingTree) and params and has_run:
            run = provenance.from_costs(params, result)
        else:
            run = provenance.find(result, self.tree)
        return list(run["machines"]) if run else []

    def _block_names(self, result: str) -> Iterator[tuple[str, str]]:
        """The blocks of params.yaml that a result depends on, as section and name."""
        match self.folders.get(result, result):
            case "lessons":
                yield "lessons", result
                source = PurePath(str(self._block("lessons", result).get("path")))
                if source.parent.name == "models":  # a model that a stage trained
                    yield from self._origins(source.name)
            case "pretrain":
                for name in self.metrics(result):
                    yield from self._origins(name)
            case study:
                yield "studies", study
                for name in self._block("studies", study).get("experiments", []):
                    yield from self._origins(name)

    def _origins(self, model: str) -> Iterator[tuple[str, str]]:
        """The blocks that a model depends on; `model` is an experiment or a backbone."""
        experiment = self._block("experiments", model)
        backbone = experiment.get("backbone", model)
        if experiment:
            yield "experiments", model
            yield "corpora", str(experiment.get("corpus"))
        yield "backbones", backbone
        yield "corpora", str(self._block("backbones", backbone).get("corpus"))

    def _block(self, section: str, name: str) -> Mapping[str, Any]:
        """A block of params.yaml, or else of the first profile that adds it; empty if none does."""
        sources = (self._params, *self._additions)
        blocks = (source.get(section, {}).get(name) for source in sources)
        return next(filter(None, blocks), {})

    @cached_property
    def _params(self) -> dict[str, Any]:
        return self._yaml("params.yaml")

    @cached_property
    def _additions(self) -> list[profiles.Blocks]:
        return list(profiles.additions(profiles.contents(self.tree)).values())

    @cached_property
    def _lock(self) -> dict[str, Any]:
        return self._yaml("dvc.lock")

    def _yaml(self, path: str) -> dict[str, Any]:
        return _parsed_yaml(self.tree.read(path) or b"{}")

    def _json(self, path: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.tree.read(path) or b"{}")
        return content


@cache
def _parsed_yaml(content: bytes) -> dict[str, Any]:
    """The content of a YAML file, often the same in both versions; parsing takes half a second."""
    parsed: dict[str, Any] = YAML(typ="safe").load(content)
    return parsed
