"""The blocks of `experiments` and `studies`."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field, PositiveInt, model_validator

from wxb.core import paths
from wxb.core.params.section import Fraction, Name, PositiveFloat, Section, Seed
from wxb.core.params.training import Training

Kind = TypeVar("Kind", bound=str)


class LowRank(Section):
    """LoRA (Hu et al. 2021) for the linear layers in `target_modules`; names as in peft."""

    r: PositiveInt
    alpha: PositiveInt
    dropout: Fraction = 0.0
    target_modules: Annotated[list[str], Field(min_length=1)]


class Tuning(Section):
    """The trained parameters: all of the backbone, LoRA's matrices, or none.

    `four_bit` quantizes the weights of the backbone (QLoRA: Dettmers et al. 2023). `frozen` trains
    no weight of the backbone.
    """

    lora: LowRank | None = None
    frozen: bool = False
    four_bit: bool = False
    gradient_checkpointing: bool = False
    neftune_alpha: PositiveFloat | None = None
    neftune_padded: bool = False  # scale noise by padded length, as the authors' code does

    @model_validator(mode="after")
    def _consistent(self) -> Self:  # refuses keys without their precondition or effect
        if self.four_bit and self.lora is None:
            raise ValueError("4-bit weights cannot be trained: `four_bit` needs `lora`")
        if self.frozen and (self.lora or self.gradient_checkpointing or self.neftune_alpha):
            raise ValueError("`frozen` trains no backbone: remove the other keys of `tuning`")
        if self.neftune_padded and self.neftune_alpha is None:
            raise ValueError("`neftune_padded` changes noise: add `neftune_alpha`, or remove it")
        return self


class Encoding(Section):
    """How texts are tokenized."""

    max_length: PositiveInt  # tokens, including special ones


class Prediction(Section):
    """How inputs are predicted."""

    # Settings that only the report uses, with the values that turn them off, as `wxb.load` does.
    only_page: ClassVar[Mapping[str, Any]] = {}

    batch_size: PositiveInt = 32


class Experiment(Section):
    """A corpus, a method, a backbone and settings; a row in the table of its study.

    `backbone` may be another experiment with the same method, whose backbone is trained further.

    Settings are grouped by the first stage that reads them, so that an edit reruns few stages:
    `encoding` by tokenize or align; `model`, `tuning` and `training` by train; `prediction` by
    evaluate. Each method has its own class for each group.
    """

    is_slow: ClassVar[bool] = False  # slower than others: Snakemake starts it first
    is_baseline: ClassVar[bool] = False  # not trained: no other experiment is tested against it
    # The kind of model that the method loads; None if it reads only the backbone's tokenizer.
    required_weights: ClassVar[Literal["hidden states", "decoder", "whisper"] | None] = None

    study: Name
    corpus: Name
    task: str
    method: str
    backbone: Name
    encoding: Section = Section()
    model: Section = Section()
    tuning: Tuning = Tuning()
    training: Section = Section()
    prediction: Prediction = Prediction()

    @property
    def traits(self) -> list[str]:
        """Names of the optional parts of its model, such as "word features"; none by default."""
        return []

    @property
    def required_lengths(self) -> dict[str, int]:
        """The tokens that the backbone must be able to read, by the key that sets the number."""
        length = getattr(self.encoding, "max_length", None)
        return {"encoding.max_length": length} if length else {}

    def checkpoint_faults(self, config: Any, generation: Mapping[str, Any]) -> Iterable[str]:
        """Why a checkpoint does not fit, by its configurations; messages begin with the key."""
        return ()


class Network(Experiment):
    """A network that is trained on tokens in steps."""

    encoding: Encoding
    training: Training

    @model_validator(mode="after")
    def _refuse_lora_bidirectional_and_checkpointing_if_native(self) -> Self:
        model, tuning = self.model.model_dump(), self.tuning
        changes = model.get("bidirectional") or tuning.lora or tuning.gradient_checkpointing
        if model.get("implementation") == "native" and changes:
            raise ValueError(
                "`model.implementation: native` trains the unchanged architecture: remove"
                " `model.bidirectional`, `tuning.lora` and `tuning.gradient_checkpointing`"
            )
        return self


class PromptEncoding(Encoding):
    """A prompt of an instruction and a text, as a message in the checkpoint's chat template."""

    instruction: Annotated[str, Field(min_length=1)] | None = None
    shots: Annotated[int, Field(ge=0)] = 0  # validation texts with answers before the text


class Prompted(Network):
    """A decoder that answers; with an instruction as a prompt, which needs no training."""

    required_weights = "decoder"

    encoding: PromptEncoding

    @property
    def required_lengths(self) -> dict[str, int]:
        """The tokens of a text; with `shots` also those of all texts in a prompt."""
        shots = self.encoding.shots
        texts = {"encoding.shots": (shots + 1) * self.encoding.max_length} if shots else {}
        return {**super().required_lengths, **texts}

    @property
    def traits(self) -> list[str]:
        """With an instruction: "instruction" if trained, else "zero-shot" or "few-shot"."""
        if not self.encoding.instruction:
            return []
        if not self.tuning.frozen:
            return ["instruction"]
        return ["few-shot" if self.encoding.shots else "zero-shot"]

    @model_validator(mode="after")
    def _shots_need_instruction_and_frozen(self) -> Self:
        if self.encoding.shots and not (self.encoding.instruction and self.tuning.frozen):
            raise ValueError(
                "`encoding.shots` needs `encoding.instruction` and `tuning.frozen: true`"
            )
        return self


class Untuned(Experiment):
    """A model without a backbone, so that `tuning` must be empty."""

    @model_validator(mode="after")
    def _refuse_tuning(self) -> Self:
        if self.tuning != Tuning():
            raise ValueError(f"method {self.method} has no backbone to tune; leave `tuning` empty")
        return self


class Rule(Section, Generic[Kind]):
    """The rule of a baseline; `Kind` is a Literal of the rules that its task has."""

    kind: Kind


class Baseline(Untuned):
    """A rule that needs no training, of a kind that its task defines."""

    is_baseline: ClassVar[bool] = True

    model: Rule[Any]

    @property
    def traits(self) -> list[str]:
        """The rule."""
        return [self.model.kind]


class Nearest(Baseline):
    """The gold of the nearest training record."""

    model: Rule[Literal["nearest"]]


class Study(Section):
    """Experiments to compare on the same test records, in the order of the table."""

    task: str
    title: str
    seed: Seed | Annotated[list[Seed], Field(min_length=1)]  # a list: one training per seed
    experiments: Annotated[list[Name], Field(min_length=1)]
    question: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = None  # of the title

    @property
    def seeds(self) -> list[int]:
        """The seeds of the trainings of each experiment."""
        return self.seed if isinstance(self.seed, list) else [self.seed]

    def seed_subfolder(self, seed: int) -> str:
        """The name of a seed's subfolder in an experiment's folders; "" for the first seed."""
        return "" if seed == self.seeds[0] else f"{paths.SEED}{seed}"

    @model_validator(mode="after")
    def _unique_seeds(self) -> Self:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"found seeds {self.seeds}; expected each seed once")
        return self
