"""The blocks of params.yaml with metrics, files and states, which `wxb list` shows."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import Params, resources
from wxb.core.params.backbones import Backbone
from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment, Study
from wxb.core.params.lessons import Lesson
from wxb.core.params.section import Section, flatten
from wxb.project.revisions import WorkingTree, read_json
from wxb.project.status import Staleness
from wxb.reporting.formatting import origin, variant_text

# The stage that writes the main output of a block, and the last one.
MAIN_STAGES = {
    "corpora": "preprocess",
    "backbones": "pretrain",
    "experiments": "train",
    "studies": "report",
    "lessons": "lesson",
}
LAST_STAGES = {**MAIN_STAGES, "experiments": "evaluate"}

Facts = dict[str, Any]
read = partial(read_json, WorkingTree())  # the content of a JSON file; empty if it does not exist


class Inventory(NamedTuple):
    """Reads a project, given its parameters, staleness and running stages."""

    params: Params
    staleness: Staleness
    running: Sequence[str]

    def overview(self) -> dict[str, dict[str, Facts]]:
        """All blocks by section and name: description, metrics, existing outputs and states."""
        return {
            section: {name: self._facts(section, name) for name in getattr(self.params, section)}
            for section in MAIN_STAGES
        }

    def details(self, name: str) -> dict[str, Facts]:
        """All facts on the blocks with this name, by section. Raises WxbError if there is none."""
        return {
            section: {**self._facts(section, name), **self._changes_and_settings(section, name)}
            for section in sections(self.params, name)
        }

    def _facts(self, section: str, name: str) -> Facts:
        """The facts that `overview` has of a block; only outputs that exist can make it stale."""
        block = getattr(self.params, section)[name]
        description, outputs = _facts_and_outputs(name, block)
        # A trained model without metrics is stale only if training is.
        verb = MAIN_STAGES[section] if outputs.get("scored") is False else LAST_STAGES[section]
        is_stale = self.staleness.is_stale(f"{verb}@{name}") if any(outputs.values()) else False
        stages = [f"{verb}@{name}" for verb, key in resources.SECTIONS.items() if key == section]
        return {
            **description,
            **outputs,
            "stale": is_stale,
            "running": [stage for stage in stages if stage in self.running],
        }

    def _changes_and_settings(self, section: str, name: str) -> Facts:
        """Changes, users, members, profile, alignment, settings and the keys that are defaults."""
        block = getattr(self.params, section)[name]
        corpus = name if section == "corpora" else getattr(block, "corpus", "")
        reasons = self.staleness.reasons(f"{LAST_STAGES[section]}@{name}")
        alignment = paths.TARGETS / name / paths.ALIGNMENT
        keys = {"corpora": "corpus", "backbones": "backbone", "experiments": "backbone"}
        key = keys.get(section, "")  # with which others name it
        users = {**self.params.backbones, **self.params.experiments}.items()
        settings = flatten(block.model_dump(mode="json"))
        set_keys = flatten(block.model_dump(mode="json", exclude_unset=True))
        return {
            "changes": [{"stage": stage, **change._asdict()} for stage, change in reasons],
            "users": [user for user, each in users if getattr(each, key, None) == name],
            "members": {
                member: self._facts("experiments", member)
                for member in getattr(block, "experiments", [])
            },
            "profile": read(paths.CLEAN / corpus / paths.PROFILE),
            "alignment": read(alignment) if section == "experiments" else {},
            "settings": settings,
            "defaults": [key for key in settings if key not in set_keys],
        }


def sections(params: Params, name: str) -> list[str]:
    """The sections with a block of this name. Raises WxbError, with the nearest name, if none."""
    if result := [section for section in MAIN_STAGES if name in getattr(params, section)]:
        return result
    known = dict.fromkeys(block for section in MAIN_STAGES for block in getattr(params, section))
    raise WxbError(f"params.yaml has no block {name!r}{choices(name, known)}")


def headline_keys(metrics: Mapping[str, float]) -> list[str]:
    """The keys of metrics that have an interval: one for each test set."""
    return [key for key in metrics if {f"{key}_low", f"{key}_high"} <= metrics.keys()]


def _facts_and_outputs(name: str, block: Section) -> tuple[Facts, dict[str, bool]]:
    """What a block is, with its metrics; and which outputs exist, such as `trained`, `measured`."""
    match block:
        case Corpus():
            profile = read(paths.CLEAN / name / paths.PROFILE)
            # Lists of a task, such as the labels of its records.
            lists = {key: value for key, value in profile.items() if isinstance(value, list)}
            labelled = {key: s["labelled"] for key, s in profile.get("splits", {}).items()}
            facts = {"origin": origin(block), "labelled": labelled, **lists}
            outputs = {"cleaned": paths.CLEAN / name}
        case Backbone():
            shape, metrics = block.architecture, paths.metrics(paths.PRETRAIN, name)
            facts = {
                "origin": shape.model_type if shape else block.checkpoint or "only a tokenizer",
                **block.model_dump(include={"objective", "corpus"}),
                "metrics": read(metrics),
            }
            outputs = {"pretrained": paths.MODELS / name, "measured": metrics}
        case Experiment():
            metrics = paths.metrics(block.study, name)
            facts = {
                **block.model_dump(include={"study", "task", "method", "corpus", "backbone"}),
                "tuning": variant_text(block),
                "metrics": read(metrics),
            }
            outputs = {"trained": paths.MODELS / name, "scored": metrics}
        case Study():
            facts = {"title": block.title, "experiments": block.experiments}
            outputs = {"compared": paths.study(name), "reported": paths.page(name)}
        case Lesson():
            metrics = paths.metrics(paths.LESSONS, name)
            facts = {"title": block.title, "lesson": block.lesson, "metrics": read(metrics)}
            outputs = {"measured": metrics, "reported": paths.page(name)}
    return facts, {key: path.exists() for key, path in outputs.items()}
