"""Blocks of experiments, the backbones they need and their study, from a template or a copy."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from ruamel.yaml import YAML

from wxb import paths
from wxb.cli.new import edits, trial
from wxb.params import MODELS, Params
from wxb.params.backbones import NAMED
from wxb.tasks.ner.params import Corpus

TEMPLATE = Path(__file__).with_name("study.yaml")
INSTALL = "pip install --editable '.[pretrained]'"
DEFAULT = "ner-encoder"  # the block that is copied where no pretrained model is to be had


def english(params: Params, corpus: str) -> tuple[bool, str]:
    """Whether a corpus is English, and how that is known."""
    known, why = _english(corpus, params.named("corpora", corpus))
    return known, f"{corpus} is{'' if known else ' not'} English, {why}"


def installed() -> bool:
    """Whether the packages are there that bring the checkpoints of the template."""
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


def study(text: str, name: str, corpus: str, title: str, *, pretrained: bool) -> str:
    """The text of params.yaml with a study of a corpus, its experiments and their backbones.

    Raises WxbError where a block of such a name is there already.
    """
    edits.check_new(text, "studies", name)
    template = _template(name, corpus)
    chosen = _chosen(template, pretrained)
    for section, blocks in chosen.items():
        for block in blocks:
            text = edits.with_block(text, section, edits.block(template, section, block))
    lines = [
        f"{name}:",
        "  task: ner",
        f"  title: {edits.scalar(title)}",
        "  seed: 1",
        "  experiments:",
    ]
    lines += [f"  - {block}" for block in chosen["experiments"]]
    return edits.with_block(text, "studies", "".join(f"{line}\n" for line in lines))


def _chosen(template: str, pretrained: bool) -> dict[str, list[str]]:
    """The names of the template's blocks by section, perhaps without those of a checkpoint."""
    content = YAML(typ="safe").load(template)
    left_out = {
        name
        for name, block in content["backbones"].items()
        if "checkpoint" in block and not pretrained
    }
    experiments = content["experiments"].items()
    return {
        "backbones": [name for name in content["backbones"] if name not in left_out],
        "experiments": [n for n, block in experiments if block["backbone"] not in left_out],
    }


def experiment(
    text: str, name: str, study: str, corpus: str, *, like: str | None, backbone: str | None
) -> str:
    """The text of params.yaml with an experiment that joins a study.

    It is a copy of the experiment `like`. Without, it is the template's pretrained one with the
    backbone that it needs, or on `backbone`, the one that suits it. Raises WxbError as `study`,
    and where there is none to copy.
    """
    if like:
        source, block = like, edits.block(text, "experiments", like)
    else:
        template = _template(study, corpus)
        backbones = YAML(typ="safe").load(text)["backbones"]
        trained = backbone is None or backbones.get(backbone, {}).get("checkpoint")
        source = f"{study}-{'pretrained' if trained else 'encoder'}"
        block = edits.block(template, "experiments", source)
        needed = f"{study}-minilm"
        if backbone is None and needed not in backbones:
            text = edits.with_block(text, "backbones", edits.block(template, "backbones", needed))
    chosen: dict[str, str | None] = {"study": study, "corpus": corpus, "backbone": backbone}
    if backbone:
        chosen["architecture"] = _architecture(YAML(typ="safe").load(text)["backbones"][backbone])
    for key, value in chosen.items():
        if value:
            block = edits.with_value(block, (source, key), value)
    text = edits.with_block(text, "experiments", edits.renamed(block, name))
    return edits.with_item(text, ("studies", study, "experiments"), name)


def _architecture(backbone: Mapping[str, Any]) -> str:
    """Where the code of a backbone's architecture is, for `architecture` of an experiment."""
    shape = backbone.get("architecture") or {}
    kind = "bert" if backbone.get("checkpoint") in NAMED else shape.get("model_type")
    return f"{MODELS}/{kind}.py" if kind else str(MODELS)


def _template(study: str, corpus: str) -> str:
    text = TEMPLATE.read_text(encoding="utf-8")
    return Template(text).substitute(study=study, corpus=corpus)
