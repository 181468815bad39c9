"""Add experiments, their backbones and studies to params.yaml, from a template or a copy."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from wxb.cli.new import trial
from wxb.cli.new.recipes import Recipe, Size, recipe
from wxb.cli.new.trial import Trial
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import MODELS, Params
from wxb.core.params.backbones import PACKAGES
from wxb.core.params.corpora import Corpus
from wxb.project import params_file
from wxb.project.params_file import add_block, parse
from wxb.tasks import guessing

INSTALL = "make .venv/pretrained"


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
    return trial.count_records(path, corpus, limit=limit)


def _is_english(name: str, corpus: Corpus, read: Trial | None) -> tuple[bool, str]:
    """Whether a corpus is English, and the evidence; may read a sample of its records."""
    languages = corpus.languages or (corpus.generate and corpus.generate.languages)
    if languages:
        return trial.are_english(languages), f"according to params.yaml ({', '.join(languages)})"
    sample = read or read_records(name, corpus, limit=trial.SAMPLE)
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
    selects the experiments with bounds, and sets epochs. Raises WxbError if an existing study lacks
    none or has another corpus, or the task has no template.
    """
    template = _template(task, name, corpus)
    content, existing = parse(template), parse(text)
    rows = recipe(content).rows
    backbones = [
        key
        for key, block in content["backbones"].items()
        if pretrained or "checkpoint" not in block
    ]
    (template_study,) = content["studies"].values()
    counts = size.counts if size else {}
    experiments = [
        key
        for key in template_study["experiments"]
        if content["experiments"][key]["backbone"] in backbones and rows[key].suits(counts)
    ]
    if study := existing["studies"].get(name):
        _check_corpus(
            name, corpus, {existing["experiments"][k]["corpus"] for k in study["experiments"]}
        )
        experiments = [key for key in experiments if key not in existing["experiments"]]
        if not experiments:
            raise WxbError(
                f"params.yaml has the study {name!r} already, with all experiments that can be"
                " added here; choose another name"
            )
        needed = {content["experiments"][key]["backbone"] for key in experiments}
        backbones = [key for key in backbones if key in needed - existing["backbones"].keys()]
    for key in backbones:
        text = add_block(text, "backbones", params_file.block_text(template, "backbones", key))
    for key in experiments:
        block = params_file.block_text(template, "experiments", key)
        if size and (epochs := rows[key].epochs):
            changed = parse(block)
            changed[key]["training"] |= {"epochs": epochs.number(size.train)}
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


def _check_corpus(study: str, corpus: str, found: set[str]) -> None:
    """Raise WxbError if the experiments of a study have another corpus."""
    if found != {corpus}:
        raise WxbError(
            f"params.yaml has the study {study!r} already, of {' and '.join(sorted(found))}, not of"
            f" {corpus}; choose another name"
        )


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
    if task not in guessing.tasks():
        known = ", ".join(guessing.tasks())
        raise WxbError(
            f"{corpus} is for {task}, which has no template of a study (choose from: {known}); copy"
            " the blocks of a file in params/"
        )
    return Template(guessing.template(task)).substitute(study=study, corpus=corpus)
