"""The schema of params.yaml, and the only place that reads it.

Every key is checked before any work starts: an unknown, missing or wrong one raises `ParamsError`
with the key, the file, what was expected and the nearest valid name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Field, PositiveInt, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from wxb.errors import WxbError, choices, nearest
from wxb.params.backbones import Backbone, Parity
from wxb.params.corpora import Corpus
from wxb.params.experiments import Experiment, Study
from wxb.params.lessons import LESSONS, AnyLesson
from wxb.params.section import Name, Section

PARAMS = Path("params.yaml")


class ParamsError(WxbError):
    """params.yaml (or a profile) holds something that the schema does not accept."""


class Params(Section):
    """All of params.yaml."""

    seed: Annotated[int, Field(ge=0)]
    threads: PositiveInt
    portable: bool
    resamples: PositiveInt
    corpora: dict[Name, Corpus]
    backbones: dict[Name, Backbone]
    experiments: dict[Name, Experiment]
    studies: dict[Name, Study]
    lessons: dict[Name, Annotated[AnyLesson, Field(discriminator="lesson")]]
    parity: dict[Name, Parity]

    def named(self, section: str, name: str) -> Any:
        """The block `name` of `section`; ParamsError with the nearest name where there is none."""
        blocks: Mapping[str, Any] = getattr(self, section)
        if name not in blocks:
            raise ParamsError(f"{section} has no {name!r}{choices(name, blocks)}")
        return blocks[name]


def read_yaml(path: Path, *, comments: bool = False) -> Any:
    """The content of a YAML file; with `comments`, in ruamel's form that keeps them on writing.

    Raises ParamsError when there is no such file or it is not YAML.
    """
    try:
        return YAML(typ="rt" if comments else "safe").load(path.read_text(encoding="utf-8"))
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
    return check(read_yaml(path), path)


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
    # Inside a lesson, pydantic also names its kind; in the file there is no such level.
    shown = (*loc[:2], *loc[3:]) if loc[:1] == ("lessons",) else loc
    key = ".".join(str(part) for part in shown if part != "[key]") or "the file"
    if fault["type"] == "union_tag_invalid":
        return _unknown(f"{key}.lesson", "lesson", fault["ctx"]["tag"], LESSONS)
    if fault["type"] == "union_tag_not_found":
        slip = nearest("lesson", fault["input"])
        return f"{key}.lesson: missing (there is: {', '.join(LESSONS)}){slip}"
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key{choices(loc[-1], _fields(loc[:-1]))}"
    if fault["type"] == "missing":
        return f"{key}: missing; {fault['msg']}"
    if fault["type"] == "value_error":
        return f"{key}: {fault['ctx']['error']}"
    hint = ""
    if fault["type"] == "literal_error":
        expected = re.split(r",| or ", fault["ctx"]["expected"])
        hint = nearest(fault["input"], (word.strip("' ") for word in expected))
    return f"{key}: found {fault['input']!r}; {fault['msg']}{hint}"


def _fields(loc: Iterable[int | str]) -> list[str]:
    """The keys that the section at a place of params.yaml may hold."""
    section: type[Section] = Params
    for part in loc:
        if field := section.model_fields.get(str(part)):
            section = _section_of(field.annotation) or section
        else:
            section = LESSONS.get(str(part), section)
    return list(section.model_fields)


def _section_of(annotation: Any) -> type[Section] | None:
    """The Section inside an annotation such as `dict[Name, Corpus]` or `Generate | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(_section_of, get_args(annotation))), None)


def _dangling(params: Params) -> Iterable[str]:
    """The faults that only show between blocks."""
    for name, backbone in params.backbones.items():
        if backbone.corpus not in params.corpora:
            yield _unknown(f"backbones.{name}.corpus", "corpus", backbone.corpus, params.corpora)
    for name, experiment in params.experiments.items():
        for key, known in (
            ("study", params.studies),
            ("corpus", params.corpora),
            ("backbone", params.backbones),
        ):
            if (value := getattr(experiment, key)) not in known:
                yield _unknown(f"experiments.{name}.{key}", key, value, known)
        yield from _too_long(name, experiment, params.backbones.get(experiment.backbone))
    for name, study in params.studies.items():
        yield from _faults_of_study(name, study, params.experiments)
    for name in sorted(params.experiments.keys() & params.backbones.keys()):
        yield f"experiments.{name}: a backbone has this name, and both write models/{name}"
    for name in params.lessons.keys() & params.studies.keys():
        yield f"lessons.{name}: a study has this name, and both write reports/{name}.html"


def _unknown(key: str, kind: str, value: str, known: Iterable[str]) -> str:
    return f"{key}: unknown {kind} {value!r}{choices(value, known)}"


def _too_long(name: str, experiment: Experiment, backbone: Backbone | None) -> Iterable[str]:
    if backbone and backbone.architecture:
        longest = backbone.architecture.max_position_embeddings
        if experiment.max_length > longest:
            yield (
                f"experiments.{name}.max_length: found {experiment.max_length}; backbone"
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
    corpora = sorted({experiments[m].corpus for m in study.experiments if m in experiments})
    if len(corpora) > 1:
        yield (
            f"{key}: test on different records (corpora {', '.join(corpora)}); a study compares"
            " experiments on one corpus: put the others into a study of their own"
        )
