"""Add experiments, their backbones and studies to params.yaml, from a template or a copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt

from wxb.cli.new import corpus as corpora
from wxb.cli.new.corpus import Trial
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import MODELS, Params
from wxb.core.params.backbones import PACKAGES
from wxb.core.params.corpora import Corpus
from wxb.core.params.section import Section
from wxb.project import params_file
from wxb.project.params_file import add_block, parse
from wxb.tasks import recognition

INSTALL = "make .venv/pretrained"


class Epochs(Section):
    """The number of epochs that train on `examples` records in all, from `least` to `most`."""

    examples: PositiveInt
    least: PositiveInt
    most: PositiveInt

    def number(self, records: int) -> int:
        """The number of epochs for some training records."""
        return min(max(self.examples // max(1, records), self.least), self.most)


class Row(Section):
    """An experiment of a first study: what it is for, and its epochs if records decide them.

    `seconds`: of training 1,000 records for one epoch, or without epochs until it is done.
    """

    purpose: str
    seconds: float | None = None
    epochs: Epochs | None = None


class Advice(Section):
    """What to expect if a count of the corpus, `records` or `hours`, is below a number.

    With `only_without_checkpoint`, only if no experiment starts from a checkpoint.
    """

    count: str
    below: float
    text: str
    only_without_checkpoint: bool = False


class Recipe(Section):
    """The keys `rows`, by experiment, and `advice` of a template."""

    rows: dict[str, Row]
    advice: list[Advice] = Field(default=[])

    def advise(self, size: Size, *, has_checkpoint: bool = False) -> Iterator[str]:
        """The advice for a corpus, with the count that it is based on."""
        for each in self.advice:
            count = {"records": size.records, "hours": size.hours}[each.count]
            if each.only_without_checkpoint and has_checkpoint:
                continue
            if count is not None and count < each.below:
                yield f"only {count:,g} {each.count} to train on: {each.text}"


class Size(NamedTuple):
    """The number of labelled training records, and their hours if they are recordings."""

    records: int
    hours: float | None = None


def recipe(content: Mapping[str, Any]) -> Recipe:
    """The recipe in the content of a template."""
    return Recipe.model_validate(
        {key: content[key] for key in Recipe.model_fields if key in content}
    )


def measure(name: str, corpus: Corpus, trial: Trial | None) -> Size | None:
    """The size of a corpus from its profile, else from the records that were read; None if neither.

    `trial` must have read all records.
    """
    profile = paths.clean(name) / paths.PROFILE
    if profile.is_file():
        train = read_json(profile)["splits"]["train"]
        return Size(train["labelled"], train.get("hours"))
    if trial is None:
        return None
    split = corpus.split
    shares = [split.test or 0, split.valid or 0, *(s for _, s in split.held_out_fields.values())]
    records = (
        trial.splits["train"] if split.files else round(trial.splits[None] * (1 - sum(shares)))
    )
    hours = trial.counts.get("hours")
    return Size(records, hours and hours * records / max(1, trial.splits.total()))


def training_seconds(params: Params, name: str, row: Row | None, records: int) -> float | None:
    """About the seconds of training an experiment on some records; None if unknown.

    The speed is that of the last training here with the same settings, whatever its epochs and
    learning rate, else that of its row in the template.
    """
    experiment = params.experiments[name]
    costs = {
        path: other
        for key, other in params.experiments.items()
        if _settings(params, key) == _settings(params, name)
        and (path := paths.cost("train", key)).is_file()
        and (paths.clean(other.corpus) / paths.PROFILE).is_file()
    }
    speed = row.seconds if row else None
    if costs:
        path = max(costs, key=lambda path: path.stat().st_mtime)
        last = costs[path]
        splits = read_json(paths.clean(last.corpus) / paths.PROFILE)["splits"]
        trainings = len(params.studies[last.study].seeds) * (last.max_epochs or 1)
        speed = 1000 * read_json(path)["seconds"] / (splits["train"]["labelled"] * trainings)
    return None if speed is None else speed * records * (experiment.max_epochs or 1) / 1000


def _settings(params: Params, name: str) -> dict[str, Any]:
    """The settings that decide the speed of an experiment's training."""
    experiment = params.experiments[name]
    backbone = params.backbones[experiment.backbone]
    settings = experiment.model_dump(include={"task", "method", "encoding", "model", "tuning"})
    excluded = {"epochs", "learning_rate", "early_stopping_patience"}
    training = experiment.training.model_dump(exclude=excluded)
    shape = (backbone.checkpoint, backbone.architecture)
    return {**settings, "training": training, "shape": shape}


def can_use_pretrained(
    params: Params, corpus: str, command: str, read: Trial | None = None
) -> tuple[bool, str]:
    """Whether a study of a corpus can use a pretrained encoder, and the reason.

    It can if its task has one in its template, the corpus is English and the encoder is installed.
    If only the latter is missing, the reason says to install it and to run `command`. `read`: the
    records of the corpus; by default reads a sample.
    """
    block = params.block("corpora", corpus)
    backbones = parse(_template(block.task, "study", "corpus"))["backbones"].values()
    if not any("checkpoint" in backbone for backbone in backbones):
        return False, f"{corpus} is for {block.task}, which has no pretrained models here"
    is_english, evidence = _is_english(corpus, block, read)
    can_use = is_english and are_packages_installed()
    reason = f"{corpus} is{'' if is_english else ' not'} English, {evidence}:"
    reason += f" {'with' if can_use else 'without'} an encoder pretrained on English"
    return (
        can_use,
        reason if can_use or not is_english else f"{reason}; to add one: {INSTALL} && {command}",
    )


def are_packages_installed() -> bool:
    """Whether the packages with pretrained checkpoints are installed."""
    return all(map(find_spec, PACKAGES.values()))


def read_records(name: str, corpus: Corpus, *, limit: int | None = None) -> Trial | None:
    """Read the records of a corpus; None if it is generated, or not downloaded yet."""
    path = paths.raw(name)
    if not path.exists():
        if corpus.hub or corpus.urls or corpus.generate:
            return None
        path = Path(corpus.path)
    return corpora.count_records(path, corpus, limit=limit)


def _is_english(name: str, corpus: Corpus, read: Trial | None) -> tuple[bool, str]:
    """Whether a corpus is English, and the evidence; may read a sample of its records."""
    languages = corpus.languages or (corpus.generate and corpus.generate.languages)
    if languages:
        return corpora.are_english(languages), f"according to params.yaml ({', '.join(languages)})"
    sample = read or read_records(name, corpus, limit=corpora.SAMPLE)
    if sample is None:
        return False, f"as {paths.raw(name)} does not exist yet"
    names = ", ".join(map(str, sample.languages))
    evidence = f"according to its records ({names})" if names else "by the words of its texts"
    return sample.is_english, evidence


def add_study(
    text: str,
    name: str,
    corpus: str,
    task: str,
    title: str | None,
    *,
    pretrained: bool,
    size: Size | None = None,
) -> str:
    """The text of params.yaml with a study of a corpus, its experiments and their backbones.

    An existing study of the corpus gets the experiments that it lacks. The `size` of the corpus
    sets epochs. Raises WxbError if an existing study lacks none or has another corpus, or the task
    has no template.
    """
    template = _template(task, name, corpus)
    content, existing = parse(template), parse(text)
    rows = recipe(content).rows
    (template_study,) = content["studies"].values()
    backbones = {
        key
        for key, block in content["backbones"].items()
        if pretrained or "checkpoint" not in block
    }
    experiments = [
        key
        for key in template_study["experiments"]
        if content["experiments"][key]["backbone"] in backbones
    ]
    if study := existing["studies"].get(name):
        found = {existing["experiments"][key]["corpus"] for key in study["experiments"]}
        experiments = [key for key in experiments if key not in existing["experiments"]]
        if found != {corpus} or not experiments:
            raise WxbError(
                f"params.yaml has the study {name!r} already, of {' and '.join(sorted(found))},"
                f" and no experiment of {corpus} to add; choose another name"
            )
    needed = {content["experiments"][key]["backbone"] for key in experiments}
    for key in content["backbones"]:
        if key in needed - (existing["backbones"].keys() if study else set()):
            text = add_block(text, "backbones", params_file.block_text(template, "backbones", key))
    for key in experiments:
        block = params_file.block_text(template, "experiments", key)
        if size and (epochs := rows[key].epochs):
            changed = parse(block)
            changed[key]["training"] |= {"epochs": epochs.number(size.records)}
            block = params_file.update(block, changed)
        text = add_block(text, "experiments", block)
    if study:
        changed = parse(text)
        changed["studies"][name]["experiments"] += experiments
        return params_file.update(text, changed)
    lines = [
        f"{name}:",
        f"  task: {task}",
        f"  {params_file.to_yaml({'title': title or template_study['title']}).strip()}",
        "  seed: 1",
        "  experiments:",
        *(f"  - {experiment}" for experiment in experiments),
    ]
    return add_block(text, "studies", "".join(f"{line}\n" for line in lines))


def recipe_of(task: str, study: str, corpus: str) -> Recipe:
    """Purposes, epochs and advice of a task's first study."""
    return recipe(parse(_template(task, study, corpus)))


def add_experiment(
    text: str,
    name: str,
    study: str,
    corpus: str,
    task: str,
    *,
    like: str | None,
    backbone: str | None,
) -> str:
    """The text of params.yaml with a new experiment of a study.

    It is a copy of the experiment `like`. Without `like`, it is from the template of the task: with
    `backbone`, the first one on a backbone of the same kind (with or without a checkpoint), else
    the pretrained one. Raises WxbError if a name is taken, or there is none to copy.
    """
    if like:
        source, block = like, params_file.block_text(text, "experiments", like)
    else:
        template = _template(task, study, corpus)
        content = parse(template)
        backbones = parse(text)["backbones"]
        has_checkpoint = backbone is None or bool(backbones.get(backbone, {}).get("checkpoint"))
        source, needed = _first_experiment(content, has_checkpoint)
        block = params_file.block_text(template, "experiments", source)
        if backbone is None and needed not in backbones:
            text = add_block(
                text, "backbones", params_file.block_text(template, "backbones", needed)
            )
    changed = parse(block)
    changed[source] |= {"study": study, "corpus": corpus}
    if backbone:
        architecture = _architecture(parse(text)["backbones"][backbone])
        changed[source] |= {"backbone": backbone, "architecture": architecture}
    block = params_file.rename_block(params_file.update(block, changed), name)
    text = add_block(text, "experiments", block)
    content = parse(text)
    content["studies"][study]["experiments"].append(name)
    return params_file.update(text, content)


def _architecture(backbone: Mapping[str, Any]) -> str:
    """The source file of a backbone's architecture, for `architecture` of an experiment."""
    shape = backbone.get("architecture") or {}
    kind = "bert" if backbone.get("checkpoint") in PACKAGES else shape.get("model_type")
    return f"{MODELS}/{kind}.py" if kind else str(MODELS)


def _first_experiment(content: Mapping[str, Any], has_checkpoint: bool) -> tuple[str, str]:
    """The first experiment of a template whose backbone has a checkpoint or not, and the backbone.

    Raises WxbError if there is none.
    """
    for name, block in content["experiments"].items():
        backbone = block["backbone"]
        if ("checkpoint" in content["backbones"][backbone]) == has_checkpoint:
            return name, backbone
    kind = "with" if has_checkpoint else "without"
    raise WxbError(f"the task has no template on a backbone {kind} a checkpoint; give --like")


def _template(task: str, study: str, corpus: str) -> str:
    """The YAML of a task's first study. Raises WxbError if the task has none."""
    if task not in recognition.tasks():
        known = ", ".join(recognition.tasks())
        raise WxbError(
            f"{corpus} is for {task}, which has no template of a study (choose from: {known}); copy"
            " the blocks of a file in params/"
        )
    return Template(recognition.template(task)).substitute(study=study, corpus=corpus)
