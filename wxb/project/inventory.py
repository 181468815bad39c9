"""What there is in a project: the blocks of params.yaml, what was made of them, and its metrics.

Everything here is plain data, fit for JSON; wxb/cli/listing.py lays it out for people.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wxb import tasks
from wxb.core import paths
from wxb.core.errors import WxbError, nearest
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.core.params.backbones import Backbone
from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment, Study
from wxb.core.params.lessons import Lesson
from wxb.core.params.section import Section, flat
from wxb.project.staleness import Staleness

SECTIONS = ("corpora", "backbones", "experiments", "studies", "lessons")
# The stage that makes what a block is for, and the one that ends it.
MAKES = {
    "corpora": "preprocess",
    "backbones": "pretrain",
    "experiments": "train",
    "studies": "report",
    "lessons": "lesson",
}
ENDS = {**MAKES, "experiments": "evaluate"}
VALID, LOSS = "valid_", "valid_loss"  # curves on validation records

Facts = dict[str, Any]


class Project(NamedTuple):
    """A project: its parameters, the stages of its dvc.yaml, what is stale, and what runs now."""

    params: Params
    dag: Mapping[str, Mapping[str, Any]]
    stale: Staleness
    running: Sequence[str]

    def overview(self) -> dict[str, dict[str, Facts]]:
        """Every block by section and name: what it is, its metrics and its state."""
        return {
            section: {name: self._brief(section, name) for name in getattr(self.params, section)}
            for section in SECTIONS
        }

    def details(self, name: str) -> dict[str, Facts]:
        """All that is known of the blocks of this name, by section: names may meet across those.

        Raises WxbError, with the nearest names, where there is none.
        """
        return {
            section: {**self._brief(section, name), **self._rest(section, name)}
            for section in sections(self.params, name)
        }

    def _brief(self, section: str, name: str) -> Facts:
        block = getattr(self.params, section)[name]
        made = _made(name, block)
        # A metric without its model (a clone has such) may be as fresh as any.
        verb = MAKES[section] if made.get("scored") is False else ENDS[section]
        return {
            **_described(name, block),
            **made,
            "stale": self.stale.of(f"{verb}@{name}") if any(made.values()) else False,
            "running": [stage for stage in self.running if stage in self._stages(section, name)],
        }

    def _rest(self, section: str, name: str) -> Facts:
        block = getattr(self.params, section)[name]
        corpus = name if section == "corpora" else getattr(block, "corpus", "")
        costs = {
            stage: _read(paths.cost(*stage.split("@"))) for stage in self._stages(section, name)
        }
        return {
            "changes": [
                {"stage": stage, "what": change.what, "how": change.how}
                for stage, change in self.stale.reasons(f"{ENDS[section]}@{name}")
            ],
            "users": self._users(section, name),
            "members": {
                member: self._brief("experiments", member)
                for member in getattr(block, "experiments", [])
            },
            "best": self._best(name, block),
            "profile": _read(paths.clean(corpus) / paths.PROFILE),
            "alignment": _read(paths.targets(name) / paths.ALIGNMENT)
            if isinstance(block, Experiment)
            else {},
            "cost": {stage: cost for stage, cost in costs.items() if cost},
            "files": dict(self._files(section, name, block)),
            "commands": _commands(section, name, block),
            "settings": flat(block.model_dump(mode="json")),
            "defaults": _defaults(block),
        }

    def _best(self, name: str, block: Section) -> Facts:
        """How training went; `allowed` are the epochs it was given, None where that is not known.

        params.yaml may say by now how long the next training may be.
        """
        best = _best(name, block)
        if not best or not isinstance(block, Experiment):
            return best
        changed = {change.what for change in self.stale.changes.get(f"train@{name}", ())}
        known = not self.stale.unknown and f"experiments.{name}.training.epochs" not in changed
        return {**best, "allowed": block.longest_training if known else None}

    def _users(self, section: str, name: str) -> list[str]:
        """The blocks that are made from this one."""
        keys = {"corpora": "corpus", "backbones": "backbone", "experiments": "backbone"}
        key = keys.get(section, "")
        blocks = {**self.params.backbones, **self.params.experiments}
        return [user for user, block in blocks.items() if getattr(block, key, None) == name]

    def _stages(self, section: str, name: str) -> list[str]:
        """The stages of a block, in the order of dvc.yaml."""
        return [
            f"{verb}@{name}"
            for verb, stage in self.dag.items()
            if stage.get("foreach") == f"${{{section}}}"
        ]

    def _files(self, section: str, name: str, block: Section) -> list[tuple[str, int]]:
        """What the stages of a block wrote and is there, with its size in bytes."""
        outputs = []
        for stage in self._stages(section, name):
            wanted = self.dag[stage.partition("@")[0]]["do"]
            outs = [out for kind in ("outs", "metrics", "plots") for out in wanted.get(kind, [])]
            outputs += [out if isinstance(out, str) else next(iter(out)) for out in outs]
            outputs.append(paths.log(stage).as_posix())
        study = getattr(block, "study", "")
        named = [p.replace("${key}", name).replace("${item.study}", study) for p in outputs]
        return [(path, _size(Path(path))) for path in named if Path(path).exists()]


def sections(params: Params, name: str) -> list[str]:
    """The sections with a block of this name; WxbError with the nearest names where none has."""
    known = {section: list(getattr(params, section)) for section in SECTIONS}
    found = [section for section, names in known.items() if name in names]
    if not found:
        every = dict.fromkeys(block for names in known.values() for block in names)
        listed = "; ".join(f"{section}: {', '.join(names)}" for section, names in known.items())
        raise WxbError(
            f"params.yaml has no block {name!r}{nearest(name, every)} (there is: {listed})"
        )
    return found


def headlines(metrics: Mapping[str, float]) -> list[str]:
    """The names of the metrics that come with an interval: one for each test set."""
    return [key for key in metrics if {f"{key}_low", f"{key}_high"} <= metrics.keys()]


def _described(name: str, block: Section) -> Facts:
    """What a block is, and its metrics."""
    match block:
        case Corpus():
            profile = _read(paths.clean(name) / paths.PROFILE)
            # Such as the labels that its records have.
            listed = {key: names for key, names in profile.items() if isinstance(names, list)}
            return {"origin": _origin(block), "records": profile.get("records", {}), **listed}
        case Backbone():
            shape = block.architecture
            return {
                "origin": shape.model_type if shape else block.checkpoint or "a tokenizer alone",
                "objective": block.objective,
                "corpus": block.corpus,
                "metrics": _read(paths.metrics(paths.PRETRAIN, name)),
            }
        case Experiment():
            return {
                "study": block.study,
                "task": block.task,
                "corpus": block.corpus,
                "backbone": block.backbone,
                "tuning": tuning(block),
                "metrics": _read(paths.metrics(block.study, name)),
            }
        case Study():
            return {"title": block.title, "experiments": block.experiments}
        case Lesson():
            metrics = _read(paths.metrics(paths.LESSONS, name))
            return {"title": block.title, "lesson": block.lesson, "metrics": metrics}
    raise TypeError(type(block))


def _made(name: str, block: Section) -> dict[str, bool]:
    """What was made of a block, in the order of making."""
    match block:
        case Corpus():
            return {"cleaned": paths.clean(name).is_dir()}
        case Backbone():
            measured = paths.metrics(paths.PRETRAIN, name).exists()
            return {"pretrained": paths.model(name).is_dir(), "measured": measured}
        case Experiment():
            trained = paths.model(name).is_dir()
            return {"trained": trained, "scored": paths.metrics(block.study, name).exists()}
        case Lesson():
            measured = paths.metrics(paths.LESSONS, name).exists()
            return {"measured": measured, "reported": paths.page(name).exists()}
        case _:
            table, page = paths.study(name), paths.page(name)
            return {"compared": table.exists(), "reported": page.exists()}


def _origin(corpus: Corpus) -> str:
    """Where the raw records come from."""
    if corpus.generate:
        return f"generated by {corpus.path}"
    if corpus.hub:
        return f"{corpus.hub.repository} (hub)"
    return ", ".join(download.file for download in corpus.urls or ()) or corpus.path


def tuning(experiment: Experiment) -> str:
    """How the experiment differs from plain fine-tuning of all weights, in words."""
    how = experiment.tuning
    lora = f"{'QLoRA' if how.four_bit else 'LoRA'} r {how.lora.r}" if how.lora else ""
    frozen = "frozen" if how.frozen else ""
    scaled = " by padded length" if how.neftune_padded else ""
    noise = f"NEFTune {how.neftune_alpha:g}{scaled}" if how.neftune_alpha else ""
    return ", ".join(filter(None, [lora, frozen, *experiment.traits, noise]))


def _best(name: str, block: Section) -> Facts:
    """When training was at its best by the metric it is watched by, of how many evaluations.

    That is a score of the task on validation records if there is one, or else the loss on them;
    the loss for a backbone, which has no task.
    """
    falling = {LOSS}
    match block:
        case Experiment():
            files = paths.training(block.study, name).glob(f"{VALID}*.csv")
            scores = tasks.get(block.task).metrics.METRICS
            falling |= {f"{VALID}{score.key}" for score in scores if score.lower_is_better}
        case Backbone():
            files = paths.training(paths.PRETRAIN, name).glob(f"{LOSS}.csv")
        case _:
            return {}
    drawn = sorted(files, key=lambda path: (path.stem == LOSS, path.stem))
    if not drawn:
        return {}
    key = drawn[0].stem
    with drawn[0].open(encoding="utf-8", newline="") as file:
        points = [(int(row["step"]), float(row[key])) for row in csv.DictReader(file)]
    values = [value for _, value in points]
    place = values.index((min if key in falling else max)(values))
    return {
        "metric": key,
        "value": values[place],
        "step": points[place][0],
        "evaluation": place + 1,
        "evaluations": len(points),
    }


def _commands(section: str, name: str, block: Section) -> dict[str, str]:
    """What to type, by what it does."""
    commands = {
        "make what is stale or missing": f"dvc repro {ENDS[section]}@{name}",
        "again, though nothing changed": f"dvc repro --force --single-item {MAKES[section]}@{name}",
    }
    if isinstance(block, (Study, Lesson)):
        commands["the same in parallel"] = f"snakemake --cores 2 {name}"
        commands["print its table"] = f"wxb table {name}"
    if isinstance(block, Experiment):
        commands["its whole study"] = f"snakemake --cores 2 {block.study}"
    if isinstance(block, (Corpus, Experiment)):
        commands["in formats of other tools"] = f"wxb export {name}"
    return commands


def _defaults(block: Section) -> list[str]:
    """The keys that params.yaml leaves out."""
    given = flat(block.model_dump(mode="json", exclude_unset=True))
    return [key for key in flat(block.model_dump(mode="json")) if key not in given]


def _read(path: Path) -> Facts:
    """What a stage wrote as JSON, or nothing."""
    content: Facts = read_json(path) if path.is_file() else {}
    return content


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
