"""The schema of params.yaml, and the only place that reads it.

Every key is checked before any work starts: an unknown, missing or wrong one raises `ParamsError`
with the key, the file, what was expected and the nearest valid name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ConfigDict, Field, PositiveInt, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from wxb.core.errors import WxbError, choices, nearest
from wxb.core.params.backbones import Backbone, Parity
from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment, Study
from wxb.core.params.lessons import LESSONS, Lesson
from wxb.core.params.resources import Resources, faults, of_stage
from wxb.core.params.section import Name, OneOf, Section
from wxb.core.params.tasks import forms

PARAMS = Path("params.yaml")
MODELS = Path("wxb/models")


class ParamsError(WxbError):
    """params.yaml (or a profile) holds something that the schema does not accept."""


class Params(Section):
    """All of params.yaml."""

    # Tasks' forms of blocks are built of what is here: they are looked up when first needed.
    model_config = ConfigDict(defer_build=True)

    seed: Annotated[int, Field(ge=0)]
    threads: PositiveInt
    portable: bool
    resamples: PositiveInt
    corpora: dict[Name, Annotated[Corpus, OneOf("task", forms("Corpus"))]]
    backbones: dict[Name, Backbone]
    experiments: dict[Name, Annotated[Experiment, OneOf("task", forms("AnyExperiment"))]]
    studies: dict[Name, Study]
    resources: dict[str, Resources] = Field(default={})
    lessons: dict[Name, Annotated[Lesson, OneOf("lesson", lambda: LESSONS)]]
    parity: dict[Name, Parity]

    def origin(self, experiment: Experiment) -> Backbone:
        """The backbone that an experiment's weights come from, by way of others it goes on from."""
        name = experiment.backbone
        while name in self.experiments:
            name = self.experiments[name].backbone
        return self.backbones[name]

    def processes(self, stage: str) -> int:
        """How many processes a stage such as `train@NAME` runs."""
        verb, _, name = stage.partition("@")
        block: Any = None
        if verb == "train" and name in self.experiments:
            block = self.experiments[name].training
        elif verb == "pretrain" and name in self.backbones:
            block = self.backbones[name].pretraining
        return getattr(block, "processes", 1)

    def asked(self, stage: str) -> dict[str, Any]:
        """What a stage asks of the machine that runs it, as Snakemake calls it.

        One that is spread over nodes is a program of MPI to Snakemake: it calls srun itself.
        """
        found = of_stage(stage, self.resources)
        if found.get("nodes", 1) > 1:
            found |= {"mpi": "srun", "tasks": self.processes(stage), "cpus_per_task": self.threads}
            found |= {"tasks_per_gpu": 1} if "gpu" in found else {}
        return found

    def nodes(self, stage: str) -> int:
        """How many nodes of Slurm its processes are spread over."""
        return int(of_stage(stage, self.resources).get("nodes", 1))

    def named(self, section: str, name: str) -> Any:
        """The block `name` of `section`; ParamsError with the nearest name where there is none."""
        blocks: Mapping[str, Any] = getattr(self, section)
        if name not in blocks:
            raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
        return blocks[name]


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. Raises ParamsError where there is none or it is not YAML."""
    try:
        return YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(
            f"{path}: no such file in {Path.cwd()}; run this from the project's root"
        ) from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path}: not readable as YAML\n{error}") from None


def load(path: Path = PARAMS) -> Params:
    """Read and check the parameters.

    Raises ParamsError that lists every fault of the file: the key, what was found, what was
    expected, and the nearest valid name.
    """
    content = read_yaml(path)
    if content is None:
        raise ParamsError(
            f"{path}: is empty; expected {', '.join(Params.model_fields)}; `git checkout {path}`"
            " brings back the file of the last commit"
        )
    return check(content, path)


def check(content: Any, path: Path = PARAMS) -> Params:
    """Check plain content against the schema and its cross references; errors as in `load`."""
    try:
        params = Params.model_validate(content)
    except ValidationError as error:
        faults = [_explain(fault["loc"], fault) for fault in error.errors()]
    else:
        faults = list(_dangling(params))
    if faults:
        raise ParamsError(f"{path}:\n" + "\n".join(f"  {fault}" for fault in faults))
    return params


def _explain(loc: tuple[int | str, ...], fault: Mapping[str, Any]) -> str:
    """One line for a pydantic error: key, what was found, what was expected, nearest name."""
    keys = [str(part) for part, is_key in _walk(loc) if is_key and part != "[key]"]
    key = ".".join(keys) or "the file"
    if fault["type"].startswith("union_tag"):
        form = fault["ctx"]["discriminator"].strip("'")
        known = list(_step(_at(loc), None))
        if fault["type"] == "union_tag_invalid":
            return _unknown(f"{key}.{form}", form, fault["ctx"]["tag"], known)
        slip = nearest(form, fault["input"])
        return f"{key}.{form}: missing (there is: {', '.join(known)}){slip}"
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key{choices(loc[-1], _at(loc[:-1]).model_fields)}"
    if fault["type"] == "missing":
        return f"{key}: missing; {fault['msg']}"
    if fault["type"] == "value_error":
        return f"{key}: {fault['ctx']['error']}"
    hint = ""
    if fault["type"] == "literal_error":
        expected = re.split(r",| or ", fault["ctx"]["expected"])
        hint = nearest(fault["input"], (word.strip("' ") for word in expected))
    return f"{key}: found {fault['input']!r}; {fault['msg']}{hint}"


def _walk(loc: Iterable[int | str]) -> Iterator[tuple[int | str, bool]]:
    """The parts of a place as pydantic tells it, and whether each is a key in the file.

    Inside a block that has several forms it also names the form, for which there is no level.
    """
    here: Any = Params
    for part in loc:
        yield part, not isinstance(here, OneOf)
        here = _step(here, part)


def _at(loc: Iterable[int | str]) -> Any:
    """What may stand at a place: a Section, OneOf several, or another annotation."""
    here: Any = Params
    for part in loc:
        here = _step(here, part)
    return here


def _step(here: Any, part: int | str | None) -> Any:
    """One step down from an annotation, by a key, an index or the tag of a form; None gives all."""
    if isinstance(here, OneOf):
        forms = {tag: _plain(form) for tag, form in here.forms().items()}
        return forms if part is None else forms.get(str(part))
    if _is_section(here):
        field = here.model_fields.get(str(part))
        return _plain(field.annotation) if field else None
    # The values of a mapping, the items of a list.
    return _plain(get_args(here)[-1]) if get_args(here) else None


def _plain(annotation: Any) -> Any:
    """An annotation as OneOf, or without `Annotated` and without None as an alternative."""
    for part in getattr(annotation, "__metadata__", ()):
        if isinstance(part, OneOf):
            return part
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        inside = [_plain(a) for a in get_args(annotation) if a is not NoneType]
        return next((a for a in inside if _is_section(a) or get_args(a)), annotation)
    return annotation


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _dangling(params: Params) -> Iterable[str]:
    """The faults that only show between blocks."""
    for name, backbone in params.backbones.items():
        if backbone.corpus not in params.corpora:
            yield _unknown(f"backbones.{name}.corpus", "corpus", backbone.corpus, params.corpora)
    for name, experiment in params.experiments.items():
        for key, known in (
            ("study", params.studies),
            ("corpus", params.corpora),
            ("backbone", [*params.backbones, *params.experiments]),
        ):
            if (value := getattr(experiment, key)) not in known:
                yield _unknown(f"experiments.{name}.{key}", key, value, known)
        if (corpus := params.corpora.get(experiment.corpus)) and corpus.task != experiment.task:
            yield (
                f"experiments.{name}.task: found {experiment.task!r}; corpus"
                f" {experiment.corpus!r} is for task {corpus.task!r}"
            )
        if experiment.backbone in params.experiments:
            yield from _cannot_go_on(name, experiment, params.experiments)
        else:
            yield from _other_code(name, experiment, params.backbones.get(experiment.backbone))
            yield from _too_long(name, experiment, params.backbones.get(experiment.backbone))
    for name, study in params.studies.items():
        yield from _faults_of_study(name, study, params.experiments)
    for name in sorted(params.experiments.keys() & params.backbones.keys()):
        yield f"experiments.{name}: a backbone has this name, and both write models/{name}"
    yield from faults(params.resources, params)
    for name in params.lessons.keys() & params.studies.keys():
        yield f"lessons.{name}: a study has this name, and both write reports/{name}.html"


def _unknown(key: str, kind: str, value: str, known: Iterable[str]) -> str:
    return f"{key}: unknown {kind} {value!r}{choices(value, known)}"


def _other_code(name: str, experiment: Experiment, backbone: Backbone | None) -> Iterable[str]:
    found, folder = experiment.architecture, MODELS.as_posix()
    known = [folder, f"{folder}/__init__.py", *(f"{folder}/{file}" for file in sorted(_code()))]
    if found not in known:
        yield _unknown(f"experiments.{name}.architecture", "architecture", found, known)
    elif backbone and backbone.architecture:
        expected = f"{folder}/{backbone.architecture.model_type}.py"
        if found != expected:
            yield (
                f"experiments.{name}.architecture: found {found!r}; backbone"
                f" {experiment.backbone!r} is of {expected}"
            )


def _code() -> list[str]:
    """The native architectures, as file names."""
    return [path.name for path in Path(__file__).parents[2].glob("models/[!_]*.py")]


def _cannot_go_on(
    name: str, experiment: Experiment, experiments: Mapping[str, Experiment]
) -> Iterable[str]:
    """Why an experiment cannot begin with the model of the one that it names as its backbone."""
    key, other = f"experiments.{name}.backbone", experiments[experiment.backbone]
    way = [name]
    while way[-1] in experiments and way[-1] not in way[:-1]:
        way.append(experiments[way[-1]].backbone)
    if way[-1] in experiments:
        yield f"{key}: goes on from itself ({' from '.join(way)}); name a backbone somewhere"
    if (experiment.task, experiment.method) != (other.task, other.method):
        yield (
            f"{key}: experiment {experiment.backbone!r} is of {other.task} by {other.method};"
            f" expected one of {experiment.task} by {experiment.method}"
        )
    if other.tuning.lora:
        yield (
            f"{key}: experiment {experiment.backbone!r} is an adapter; expected one that trains a"
            " whole model"
        )
    if experiment.architecture != other.architecture:
        yield (
            f"experiments.{name}.architecture: found {experiment.architecture!r}; experiment"
            f" {experiment.backbone!r} is of {other.architecture}"
        )


def _too_long(name: str, experiment: Experiment, backbone: Backbone | None) -> Iterable[str]:
    if backbone and backbone.architecture and (length := experiment.longest_input):
        longest = backbone.architecture.max_position_embeddings
        if length > longest:
            yield (
                f"experiments.{name}.encoding.max_length: found {length}; backbone"
                f" {experiment.backbone!r} has max_position_embeddings {longest}"
            )


def _faults_of_study(
    name: str, study: Study, experiments: Mapping[str, Experiment]
) -> Iterable[str]:
    key = f"studies.{name}.experiments"
    for member, count in Counter(study.experiments).items():
        if count > 1:
            yield f"{key}: lists {member!r} {count} times; once is enough"
    for member in study.experiments:
        if member not in experiments:
            yield _unknown(key, "experiment", member, experiments)
        elif experiments[member].study != name:
            yield f"{key}: {member!r} says study {experiments[member].study!r}, not {name!r}"
    for member, experiment in experiments.items():
        if experiment.study == name and member not in study.experiments:
            yield f"{key}: lacks {member!r}, whose block says study {name!r}; add it to the list"
    for member in study.experiments:
        if member in experiments and experiments[member].task != study.task:
            yield f"{key}: {member!r} is of task {experiments[member].task!r}, not {study.task!r}"
    corpora = sorted({experiments[m].corpus for m in study.experiments if m in experiments})
    if len(corpora) > 1:
        yield (
            f"{key}: test on different records (corpora {', '.join(corpora)}); a study compares"
            " experiments on one corpus: put the others into a study of their own"
        )
