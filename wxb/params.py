"""The schema of params.yaml, and the only place that reads it.

Every key is checked before any work starts: an unknown, missing or wrong one raises `ParamsError`
with the key, the file, what was expected and the nearest valid name.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    PositiveInt,
    ValidationError,
    model_validator,
)
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from wxb.errors import WxbError

PARAMS = Path("params.yaml")

Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0)]


def _is_name(name: str) -> str:
    if not name or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
        raise ValueError("a name is made of ASCII letters, digits, '-' and '_'")
    return name


Name = Annotated[str, AfterValidator(_is_name)]


class ParamsError(WxbError):
    """params.yaml (or a profile) holds something that the schema does not accept."""


class Section(BaseModel):
    """A block of params.yaml: immutable, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Generate(Section):
    """What a generator module is asked for."""

    labelled: PositiveInt
    unlabelled: Annotated[int, Field(ge=0)] = 0
    languages: Annotated[list[str], Field(min_length=1)]


class Hub(Section):
    """A data set on the Hugging Face hub, pinned by revision."""

    repository: str
    revision: str
    files: Annotated[list[str], Field(min_length=1)]  # glob patterns inside the repository


class Download(Section):
    """A file on the web, pinned by its hash."""

    address: HttpUrl
    # Where it is left out, the download tells what it found, and fails: nothing is made of that.
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    name: str | None = None  # of the file; by default the last part of the address's path

    @property
    def file(self) -> str:
        """The name of the file in data/raw/<corpus>."""
        return self.name or unquote((self.address.path or "").rsplit("/", 1)[-1])

    @model_validator(mode="after")
    def _safe(self) -> Download:
        if self.address.username or self.address.password:
            raise ValueError("a login in `address` would be published; put it into ~/.netrc")
        hidden = self.file.startswith(".")  # readers leave such files alone
        if not self.file or hidden or not self.file.isprintable() or set(self.file) & {*"/\\"}:
            raise ValueError(
                "expected the name of a file at the end of `address`, or `name`; found"
                f" {self.file!r}"
            )
        return self


class Fields(Section):
    """The names that a corpus gives to the fields of a record; null where it has none."""

    text: str = "input"
    spans: str = "spans"
    start: str = "start"
    end: str = "end"
    type: str = "type"
    value: str | None = None
    language: str | None = "language"
    id: str | None = "id"


class Conll(Section):
    """How the columns of a file with one token a line make records."""

    token: int = 0
    tag: int = -1
    join: Literal[" ", ""] = " "
    characters: bool = False
    unit: Literal["sentence", "document"] = "sentence"

    @model_validator(mode="after")
    def _two_columns(self) -> Conll:
        if self.token == self.tag:
            raise ValueError(f"token and tag are both in column {self.token}")
        return self


Patterns = Annotated[list[str], Field(min_length=1)]


class SplitFiles(Section):
    """Which files make which split: glob patterns on paths inside the raw folder of the corpus."""

    train: Patterns
    valid: Patterns
    test: Patterns


class Split(Section):
    """How records are divided: as their files say, or by document or the values of a field."""

    files: SplitFiles | None = None
    by: str | None = None
    test: Annotated[float, Field(gt=0, lt=1)] | None = None
    valid: Annotated[float, Field(gt=0, lt=1)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Split:
        if self.files:
            if (self.by, self.test, self.valid) != (None, None, None):
                raise ValueError("`files` divide the records: leave `by`, `test` and `valid` out")
        elif self.test is None or self.valid is None:
            raise ValueError("give either `files`, or both `test` and `valid`")
        elif self.test + self.valid >= 1:
            raise ValueError("test + valid must stay below 1: the rest is for training")
        return self


class Augment(Section):
    """Copies of every labelled training record, with other mentions of the same types."""

    copies: PositiveInt
    share: Annotated[float, Field(gt=0, le=1)]


class Corpus(Section):
    """Raw records: where they come from, and how they are read and split."""

    path: str
    generate: Generate | None = None
    hub: Hub | None = None
    urls: Annotated[list[Download], Field(min_length=1)] | None = None
    fields: Fields = Fields()
    conll: Conll | None = None
    repair: Literal["by-value"] | None = None
    labels: dict[str, str | None] = {}
    languages: list[str] | None = None
    max_characters: PositiveInt = 20_000
    max_records: PositiveInt | None = None
    split: Split
    augment: Augment | None = None

    @model_validator(mode="after")
    def _columns_have_no_names(self) -> Corpus:
        if self.conll and (self.fields != Fields() or self.split.by or self.languages):
            raise ValueError(
                "column files (`conll`) hold tokens and tags alone: leave `fields`, `languages`"
                " and `split.by` out"
            )
        return self

    @model_validator(mode="after")
    def _repair_by_something(self) -> Corpus:
        if self.repair and self.fields.value is None:
            raise ValueError("`repair: by-value` needs `fields.value`, the text of a span")
        return self

    @model_validator(mode="after")
    def _one_origin(self) -> Corpus:
        origins = [name for name in ("generate", "hub", "urls") if getattr(self, name)]
        if len(origins) > 1:
            raise ValueError(f"a corpus has one origin; found {' and '.join(origins)}")
        return self

    @model_validator(mode="after")
    def _files_have_names_of_their_own(self) -> Corpus:
        # Some file systems do not tell capitals apart.
        names = Counter(download.file.casefold() for download in self.urls or ())
        if twice := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"two of `urls` are called {twice[0]!r}; give one another `name`")
        return self


# For each learning rate schedule: the options it needs, and those it may have.
SCHEDULES: dict[str, tuple[set[str], set[str]]] = {
    "linear": (set(), set()),
    "cosine": (set(), set()),
    "cosine_with_restarts": (set(), {"num_cycles"}),
    "step": ({"step_size", "gamma"}, set()),
    "reduce_lr_on_plateau": (set(), {"factor", "patience", "threshold", "min_lr"}),
    "constant": (set(), set()),
}


class Optimisation(Section):
    """What fine-tuning and pretraining share. Names follow transformers where it has one."""

    batch_size: PositiveInt
    learning_rate: PositiveFloat
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    warmup_ratio: Fraction = 0.1
    schedule: Literal[
        "linear", "cosine", "cosine_with_restarts", "step", "reduce_lr_on_plateau", "constant"
    ] = "cosine"
    schedule_options: dict[str, int | float] = {}
    max_grad_norm: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _options_of_schedule(self) -> Self:
        required, optional = SCHEDULES[self.schedule]
        given = set(self.schedule_options)
        if not required <= given <= required | optional:
            raise ValueError(
                f"schedule {self.schedule} takes schedule_options"
                f" {sorted(required | optional)}; found {sorted(given)}"
            )
        if self.schedule == "reduce_lr_on_plateau" and self.warmup_ratio:
            raise ValueError("reduce_lr_on_plateau has no warm-up: set warmup_ratio to 0")
        return self


class Training(Optimisation):
    """Fine-tuning of one experiment."""

    epochs: PositiveInt
    gradient_accumulation: PositiveInt = 1
    early_stopping_patience: PositiveInt = 3


class Pretraining(Optimisation):
    """Pretraining of one backbone; every update reads `batch_size` documents."""

    steps: PositiveInt
    max_length: PositiveInt
    copying: Fraction = 0.0
    checkpoints: PositiveInt = 4


class Tokenizer(Section):
    """A tokenizer trained on the corpus."""

    kind: Literal["wordpiece", "byte-level-bpe"]
    vocabulary: Annotated[int, Field(ge=300)]


class Architecture(Section):
    """The shape of a model with initial weights; names as in Hugging Face's configurations."""

    model_type: Literal["bert", "llama"]
    hidden_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    num_key_value_heads: PositiveInt | None = None
    intermediate_size: PositiveInt
    max_position_embeddings: PositiveInt
    dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _heads_divide(self) -> Architecture:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of"
                f" num_attention_heads {self.num_attention_heads}"
            )
        if self.num_key_value_heads is not None:
            if self.model_type != "llama":
                raise ValueError("num_key_value_heads is for model_type llama only")
            if self.num_attention_heads % self.num_key_value_heads:
                raise ValueError("num_attention_heads is not a multiple of num_key_value_heads")
        return self


class Backbone(Section):
    """A tokenizer and a body: made here, or a local or hub checkpoint."""

    corpus: Name
    objective: Literal["mlm+nsp", "causal-lm", "none"]
    tokenizer: Tokenizer | None = None
    architecture: Architecture | None = None
    checkpoint: str | None = None
    revision: str | None = None
    pretraining: Pretraining | None = None

    @model_validator(mode="after")
    def _complete(self) -> Backbone:
        made = self.architecture is not None and self.tokenizer is not None
        if (self.checkpoint is None) != made or (self.checkpoint and self.architecture):
            raise ValueError("give either `tokenizer` and `architecture`, or `checkpoint`")
        if self.checkpoint is None and self.revision is not None:
            raise ValueError("`revision` pins a `checkpoint`, and there is none")
        if (self.objective == "none") != (self.pretraining is None):
            raise ValueError("`pretraining` settings go with an objective other than none")
        if self.architecture and self.pretraining:
            longest = self.architecture.max_position_embeddings
            if self.pretraining.max_length > longest:
                raise ValueError(f"pretraining.max_length is over {longest} positions")
        return self


class Head(Section):
    """The tagging head: one projection shared by the BIO, start and end classifiers."""

    projection: PositiveInt
    dropout: Fraction = 0.1


class WordFeatures(Section):
    """A table of embeddings for the letters of words, which helps where training texts are few."""

    rows: Annotated[int, Field(ge=2)]
    width: PositiveInt
    window: Annotated[int, Field(ge=0)]
    dropout: Fraction = 0.0


class LowRank(Section):
    """LoRA's matrices (Hu et al. 2021), beside the named linear layers; names as in peft."""

    r: PositiveInt
    alpha: PositiveInt
    dropout: Fraction = 0.0
    target_modules: Annotated[list[str], Field(min_length=1)]


class Tuning(Section):
    """What of the backbone learns: all of it, or LoRA's matrices beside it.

    With `four_bit` the backbone beside them is kept in 4 bits (QLoRA: Dettmers et al. 2023).
    """

    lora: LowRank | None = None
    four_bit: bool = False
    gradient_checkpointing: bool = False
    neftune_alpha: PositiveFloat | None = None

    @model_validator(mode="after")
    def _four_bits_stay_frozen(self) -> Tuning:
        if self.four_bit and self.lora is None:
            raise ValueError("weights in 4 bits cannot learn: `four_bit` needs `lora`")
        return self


class Generation(Section):
    """How answers are written."""

    special_tokens: bool = False
    batch_size: PositiveInt = 64


class Experiment(Section):
    """Corpus + task + backbone + how it is tuned; a row of its study's table."""

    study: Name
    corpus: Name
    task: Literal["ner_tagging", "ner_generation"]
    backbone: Name
    max_length: PositiveInt
    stride: Annotated[int, Field(ge=0)]
    bidirectional: bool = False
    word_features: WordFeatures | None = None
    head: Head | None
    generation: Generation | None
    tuning: Tuning = Tuning()
    training: Training

    @model_validator(mode="after")
    def _parts_of_task(self) -> Experiment:
        generates = self.task == "ner_generation"
        if (self.head is None) != generates or (self.generation is None) == generates:
            raise ValueError("task ner_tagging needs `head`, and ner_generation `generation`")
        if generates and (self.bidirectional or self.word_features):
            raise ValueError("`bidirectional` and `word_features` are for ner_tagging")
        if self.stride > self.max_length // 2:
            raise ValueError(
                f"windows of max_length {self.max_length} share at most half of it; found stride"
                f" {self.stride}"
            )
        return self


class Study(Section):
    """Experiments scored on the same test records, in the order of the table."""

    title: str
    experiments: Annotated[list[Name], Field(min_length=1)]


# For each architecture that is written out: the settings that make a model with random weights.
SHAPES: dict[str, tuple[str, ...]] = {
    "bert": (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "initializer_range",
    ),
    "gpt2": ("vocab_size", "n_embd", "n_layer", "n_head", "n_positions", "initializer_range"),
}


class Parity(Section):
    """What ours is compared with transformers' on: random weights, or those of a checkpoint.

    `architecture` is a `model_type` and its settings, by the names of that Hugging Face
    configuration.
    """

    architecture: dict[str, str | int | float] | None = None
    checkpoint: str | None = None
    revision: str | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Parity:
        if (self.architecture is None) == (self.checkpoint is None):
            raise ValueError("give either `architecture` or `checkpoint`")
        if self.checkpoint is None and self.revision is not None:
            raise ValueError("`revision` pins a `checkpoint`, and there is none")
        return self

    @model_validator(mode="after")
    def _settings_of_architecture(self) -> Parity:
        if self.architecture is None:
            return self
        kind = str(self.architecture.get("model_type", ""))
        if kind and kind not in SHAPES:
            raise ValueError(f"architecture.model_type: unknown {kind!r}{_hint(kind, SHAPES)}")
        known = ("model_type", *SHAPES.get(kind, sum(SHAPES.values(), ())))
        for name in self.architecture:
            if name not in known:
                raise ValueError(f"architecture.{name}: unknown key{_hint(name, known)}")
        for name in known:
            if name not in self.architecture:
                raise ValueError(f"architecture.{name}: missing")
        return self


class Params(Section):
    """All of params.yaml."""

    seed: Annotated[int, Field(ge=0)]
    threads: PositiveInt
    resamples: PositiveInt
    corpora: dict[Name, Corpus]
    backbones: dict[Name, Backbone]
    experiments: dict[Name, Experiment]
    studies: dict[Name, Study]
    parity: dict[Name, Parity]

    def named(self, section: str, name: str) -> Any:
        """The block `name` of `section`; ParamsError with the nearest name where there is none."""
        blocks: Mapping[str, Any] = getattr(self, section)
        if name not in blocks:
            raise ParamsError(f"{section} has no {name!r}{_hint(name, blocks)}")
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


def _hint(name: object, valid: Iterable[str]) -> str:
    """Tell the nearest of the valid names, and all of them."""
    names = list(valid)
    near = difflib.get_close_matches(str(name), names, n=1)
    return (f"; did you mean {near[0]!r}?" if near else "") + f" (there is: {', '.join(names)})"


def _explain(loc: tuple[int | str, ...], fault: Mapping[str, Any]) -> str:
    """One line for a pydantic error: key, what was found, what was expected, nearest name."""
    key = ".".join(str(part) for part in loc if part != "[key]") or "the file"
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key{_hint(loc[-1], _fields(loc[:-1]))}"
    if fault["type"] == "missing":
        return f"{key}: missing; {fault['msg']}"
    if fault["type"] == "value_error":
        return f"{key}: {fault['ctx']['error']}"
    hint = ""
    if fault["type"] == "literal_error":
        hint = f"; nearest is {near[0]!r}" if (near := _nearest_literal(fault)) else ""
    return f"{key}: found {fault['input']!r}; {fault['msg']}{hint}"


def _nearest_literal(fault: Mapping[str, Any]) -> list[str]:
    expected = [word.strip("' ") for word in re.split(r",| or ", fault["ctx"]["expected"])]
    return difflib.get_close_matches(str(fault["input"]), expected, n=1)


def _fields(loc: Iterable[int | str]) -> list[str]:
    """The keys that the section at a place of params.yaml may hold."""
    section: type[Section] = Params
    for part in loc:
        if field := section.model_fields.get(str(part)):
            section = _section_of(field.annotation) or section
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


def _unknown(key: str, kind: str, value: str, known: Iterable[str]) -> str:
    return f"{key}: unknown {kind} {value!r}{_hint(value, known)}"


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
