"""The schema of params.yaml, and the functions that read and check it.

`ParamsError` lists errors with their key, the expected value and the nearest valid name.
"""

from __future__ import annotations

import math
import re
from collections import Counter, UserDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, SerializeAsAny, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import YAMLError

from wxb.core import paths
from wxb.core.errors import WxbError, choices, did_you_mean
from wxb.core.params import tasks
from wxb.core.params.backbones import Backbone
from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment, Study
from wxb.core.params.lessons import AnyLesson
from wxb.core.params.resources import SECTIONS, Resources
from wxb.core.params.section import Name, Section, Seed

PARAMS = Path("params.yaml")

SHOWN = 200  # characters of a wrong value in an error


class ParamsError(WxbError):
    """An error in params.yaml or a profile."""


def _corpus(block: Any) -> Any:
    """Validate a block of `corpora` with the class of its task."""
    return tasks.corpus_class(_selector(block, "task", tasks.names())).model_validate(block)


def _experiment(block: Any) -> Any:
    """Validate a block of `experiments` with the class of its method, whose module it imports."""
    task = _selector(block, "task", tasks.names())
    method = _selector(block, "method", tasks.methods(task))
    return tasks.experiment_class(task, method).model_validate(block)


def _selector(block: Any, key: str, known: Sequence[str]) -> str:
    """A block's value of the key that selects its class. Raises ValueError if it is not `known`."""
    if not isinstance(block, Mapping):
        raise ValueError(f"found {block!r}; expected a block")
    value = block.get(key)
    if value in known:
        return str(value)
    cause = f"unknown {key} {value!r}" if key in block else f"no {key}{did_you_mean(key, block)}"
    error = ValueError(f"{cause}{choices(value, known)}")
    fault: Any = {"type": "value_error", "loc": (key,), "input": value, "ctx": {"error": error}}
    raise ValidationError.from_exception_data(key, [fault])


AnyCorpus = Annotated[SerializeAsAny[Corpus], PlainValidator(_corpus)]
AnyExperiment = Annotated[SerializeAsAny[Experiment], PlainValidator(_experiment)]


class Params(Section):
    """All blocks of params.yaml."""

    seed: Seed
    threads: Annotated[int, Field(gt=0, le=1024)]
    portable: bool
    corpora: Mapping[Name, AnyCorpus]
    backbones: dict[Name, Backbone]
    experiments: Mapping[Name, AnyExperiment]
    studies: dict[Name, Study]
    resources: dict[str, Resources] = Field(default={})
    lessons: dict[Name, AnyLesson]

    def start_chain(self, name: str) -> list[str]:
        """`name`, the experiments it continues, and a backbone or, in a circle, a repeated name."""
        chain = [name]
        while chain[-1] in self.experiments and chain[-1] not in chain[:-1]:
            chain.append(self.experiments[chain[-1]].backbone)
        return chain

    def root_backbone(self, experiment: Experiment) -> Backbone:
        """The backbone of an experiment, through all experiments that it continues."""
        return self.backbones[self.start_chain(experiment.backbone)[-1]]

    def processes(self, stage: str) -> int:
        """The number of processes of a stage such as `train@NAME`; 1 for verbs without training."""
        verb, _, name = stage.partition("@")
        settings: Any = None
        if verb == "train":
            settings = self.experiments[name].training
        elif verb == "pretrain":
            settings = self.backbones[name].pretraining
        return getattr(settings, "processes", 1)

    def snakemake_resources(self, stage: str) -> dict[str, Any]:
        """The `resources` of a stage's verb, updated by the stage's own; nulls do not count."""
        verb = stage.partition("@")[0]
        blocks = [self.resources[name] for name in (verb, stage) if name in self.resources]
        return {k: v for block in blocks for k, v in block.model_dump(exclude_none=True).items()}

    def block(self, section: str, name: str) -> Any:
        """The block `name` of a section. Raises ParamsError with the nearest name if missing."""
        blocks: Mapping[str, Any] = getattr(self, section)
        if name not in blocks:
            raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
        return blocks[name]


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. Raises ParamsError if it is unreadable or not valid YAML."""
    try:
        return parse_yaml(path.read_bytes(), path)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        advice = "; run this from the project's root" if is_missing else ""
        raise ParamsError(f"{path}: {error.strerror} in {Path.cwd()}{advice}") from None


def parse_yaml(text: str | bytes, source: Path | str = PARAMS) -> Any:
    """The content of a YAML text. Raises ParamsError, which names `source`, if it is not valid."""
    try:
        return YAML(typ="safe").load(text)
    except DuplicateKeyError as error:
        line = error.problem_mark.line + 1
        raise ParamsError(f"{source}, line {line}: {error.problem}; rename or remove one") from None
    except (YAMLError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise ParamsError(f"{source}: not readable as YAML\n{error}") from None


def load(path: Path = PARAMS) -> Params:
    """Read and check the file. Raises ParamsError with all errors in blocks, else between them."""
    return check(read_yaml(path), path)


def check(content: Any, path: Path = PARAMS) -> Params:
    """Check the blocks of a file, then references between them. Raises errors as `load` does."""
    params = _validate(content, path)
    if errors := list(_errors_between_blocks(params)):
        raise ParamsError("\n  ".join([f"{path}:", *errors]))
    return params


class Blocks(UserDict[str, Any]):
    """The blocks of a section by name, each of which is checked when it is first read."""

    def __init__(self, section: str, content: Mapping[str, Any], others: Mapping[str, Any]) -> None:
        """`content`: of the section; `others`: the content of the file, with other sections."""
        super().__init__(content)
        self.section, self.others = section, others

    def __getitem__(self, name: str) -> Any:
        if isinstance(block := self.data[name], Mapping):
            params = _validate({**self.others, self.section: {name: block}}, PARAMS)
            self.data |= getattr(params, self.section)
        return self.data[name]


def load_for_stage() -> Params:
    """Read params.yaml, which the stage `check` has checked, for another stage.

    A block of `corpora` or `experiments` is checked when it is read: else each stage would import,
    and depend on, the methods of all experiments. Other blocks are checked now, references not.
    """
    content = read_yaml(PARAMS)
    if not isinstance(content, Mapping):
        return check(content)
    sections = [n for n in ("corpora", "experiments") if isinstance(content.get(n), Mapping)]
    others = {**content, **{name: {} for name in sections}}
    blocks = {name: Blocks(name, content[name], others) for name in sections}
    return _validate(others, PARAMS).model_copy(update=blocks)


def _validate(content: Any, path: Path) -> Params:
    """The parameters of a file's content. Raises ParamsError with all errors within blocks."""
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        faults = [_explain(fault, content) for fault in error.errors()]
        raise ParamsError("\n  ".join([f"{path}:", *faults])) from None


def _explain(fault: Mapping[str, Any], content: Any) -> str:
    """One line for a pydantic error: key, value, expected value, nearest name."""
    keys = []
    for part in fault["loc"]:  # which also has the values that selected a class, and "[key]"
        if isinstance(part, int) or (isinstance(content, Mapping) and part in content):
            keys.append(str(part))
            content = content[part]
    if fault["type"] == "missing":
        return f"{'.'.join([*keys, fault['loc'][-1]])}: missing; {fault['msg']}"
    key = ".".join(keys) or "the file"
    context = fault.get("ctx", {})
    if fault["type"] == "value_error":
        return f"{key}: {context['error']}"
    if fault["type"] == "union_tag_not_found":
        tag = context["discriminator"].strip("'")
        return f"{key}: no {tag}{did_you_mean(tag, fault['input'])}"
    known = context.get("expected", context.get("expected_tags", ""))
    hint = did_you_mean(context.get("tag", fault["input"]), re.findall("'(.*?)'", known))
    value = repr(fault["input"])
    value = value if len(value) <= SHOWN else f"{value[:SHOWN]} ..."
    return f"{key}: found {value}; {fault['msg']}{hint}"


def _errors_between_blocks(params: Params) -> Iterator[str]:  # wrong references, equal file names
    for name, backbone in params.backbones.items():
        if backbone.corpus not in params.corpora:
            yield _unknown(f"backbones.{name}.corpus", "corpus", backbone.corpus, params.corpora)
    for name, experiment in params.experiments.items():
        yield from _experiment_errors(name, experiment, params)
    for name, study in params.studies.items():
        yield from _study_errors(name, study, params.experiments)
    for stage in params.resources:
        verb, separator, name = stage.partition("@")
        if verb not in SECTIONS:
            yield _unknown(f"resources.{stage}", "verb", verb, SECTIONS)
        elif separator and name not in (known := getattr(params, SECTIONS[verb])):
            yield f"resources.{stage}: {SECTIONS[verb]} has no {name!r}{choices(name, known)}"
    yield from _file_name_errors(params)


def _experiment_errors(name: str, experiment: Experiment, params: Params) -> Iterator[str]:
    """Errors for omitted groups of settings, wrong references, and lengths over the positions."""
    prefix = f"experiments.{name}"
    for key in ("encoding", "model", "prediction", "training", "tuning"):
        if key not in experiment.model_fields_set:  # which DVC reads
            yield f"{prefix}.{key}: missing; write `{key}: {{}}` for its defaults"
    for key, known in (
        ("study", params.studies),
        ("corpus", params.corpora),
        ("backbone", [*params.backbones, *params.experiments]),
    ):
        if (value := getattr(experiment, key)) not in known:
            yield _unknown(f"{prefix}.{key}", key, value, known)
    if (corpus := params.corpora.get(experiment.corpus)) and corpus.task != experiment.task:
        yield (
            f"{prefix}.task: found {experiment.task!r}; corpus {experiment.corpus!r} is for task"
            f" {corpus.task!r}"
        )
    base = params.backbones.get(experiment.backbone)
    if experiment.backbone in params.experiments:
        yield from _continuation_errors(name, experiment, params)
    elif experiment.required_weights and base and base.is_tokenizer_only:
        yield f"{prefix}.backbone: found a tokenizer; method {experiment.method!r} needs a model"
    root = params.start_chain(name)[-1]
    architecture = getattr(params.backbones.get(root), "architecture", None)
    longest = getattr(architecture, "max_position_embeddings", math.inf)
    for key, length in experiment.required_lengths.items():
        if length > longest:
            yield (
                f"{prefix}.{key}: found {length}; backbone {root!r} has max_position_embeddings"
                f" {longest}"
            )


def _file_name_errors(params: Params) -> Iterator[str]:
    """Errors for names under which another block or the project writes files, ignoring case."""
    taken = ("all", "index", paths.LESSONS, paths.PRETRAIN)
    for sections in (("corpora",), ("backbones", "experiments"), ("studies", "lessons")):
        blocks = dict.fromkeys(taken if "studies" in sections else (), "the project")
        for key in (f"{section}.{n}" for section in sections for n in getattr(params, section)):
            if (other := blocks.setdefault(key.partition(".")[2].casefold(), key)) != key:
                yield f"{key}: writes the files of {other}; choose another name (in any case)"


def _unknown(key: str, kind: str, value: str, known: Iterable[str]) -> str:
    return f"{key}: unknown {kind} {value!r}{choices(value, known)}"


def _continuation_errors(name: str, experiment: Experiment, params: Params) -> Iterator[str]:
    """Reasons why an experiment cannot start from the model of its backbone, an experiment."""
    key, start = f"experiments.{name}.backbone", params.experiments[experiment.backbone]
    chain = params.start_chain(name)
    if chain[-1] in params.experiments:
        yield f"{key}: starts from itself ({' from '.join(chain)}); name a backbone instead"
    if (experiment.task, experiment.method) != (start.task, start.method):
        yield (
            f"{key}: experiment {experiment.backbone!r} has task {start.task} and method"
            f" {start.method}; expected task {experiment.task} and method {experiment.method}"
        )
    if start.tuning.lora or (start.tuning.frozen and start.required_weights == "decoder"):
        problem = f"experiment {experiment.backbone!r} does not save the full model"
        yield f"{key}: {problem}; expected one without `lora` and `frozen`"
    if not experiment.required_weights:
        yield f"{key}: found an experiment, of which only the tokenizer is used; name a backbone"


def _study_errors(name: str, study: Study, experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Errors for unknown, repeated, unlisted or mismatched members, only baselines, `question`."""
    key = f"studies.{name}.experiments"
    for member, count in Counter(study.experiments).items():
        if count > 1:
            yield f"{key}: lists {member!r} {count} times; list it once"
    for member in study.experiments:
        if member not in experiments:
            yield _unknown(key, "experiment", member, experiments)
            continue
        for trait, expected in (("study", name), ("task", study.task)):
            if (value := getattr(experiments[member], trait)) != expected:
                yield f"{key}: {member!r} says {trait} {value!r}, not {expected!r}"
    for member, experiment in experiments.items():
        if experiment.study == name and member not in study.experiments:
            yield (
                f"{key}: lacks {member!r}, whose block says study {name!r}; add it to the list, or"
                " remove its block"
            )
    trained = [m for m in study.experiments if m in experiments and not experiments[m].is_baseline]
    if study.question and len({*study.question} & {*trained}) != 2:
        yield (
            f"studies.{name}.question: found {', '.join(study.question)}; expected two of"
            f" {', '.join(trained)}"
        )
    if all(m in experiments and experiments[m].is_baseline for m in study.experiments):
        yield f"{key}: lists only baselines; add an experiment that is trained"
    corpora = sorted({experiments[m].corpus for m in study.experiments if m in experiments})
    if len(corpora) > 1:
        yield (
            f"{key}: test on different records (corpora {', '.join(corpora)}); a study compares"
            " experiments on one corpus: move the others to another study"
        )
