"""The blocks of `corpora` for translation, and the settings that its methods share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Section


def _check_script(name: str) -> str:
    import regex

    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        raise ValueError(f"Unicode has no script {name!r}; use Han, Latin, ...") from None
    return name


Script = Annotated[str, AfterValidator(_check_script)]


class Fields(corpora.Fields):
    """The names of a corpus's fields; `input` and `target` set the direction."""

    target: str = "target"


class Pairs(Section):
    """Conditions that a pair must meet; others are rejected.

    `scripts` are those of source and target: a text with letters must have one of its script.
    `length_ratio` is the largest ratio of the two lengths in characters.
    """

    scripts: Annotated[list[Script], Field(min_length=2, max_length=2)] | None = None
    length_ratio: Annotated[float, Field(gt=1)] = 10.0


class Corpus(corpora.Corpus):
    """Sources with their translations."""

    formats = ("parallel", "columns")  # pairs of files, tab-separated lines
    format_hint: ClassVar[str] = (
        "; or set `columns` to read tab-separated lines, `parallel` to read pairs of files"
    )

    fields: Fields = Fields()
    columns: Annotated[list[str], Field(min_length=2)] | None = None
    # Two suffixes: a file of each has the translations of the other, line by line.
    parallel: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    pairs: Pairs = Pairs()

    def reads(self, file: Path) -> bool:
        """Whether to read a file: with `parallel`, only those with one of its suffixes."""
        return self.parallel is None or file.suffix in [f".{suffix}" for suffix in self.parallel]

    @model_validator(mode="after")
    def _check_split_and_columns(self) -> Self:  # no `split.by`; names include the pair's fields
        if self.split.by:
            raise ValueError("`split.by` is for other tasks; pairs that share a text stay together")
        key, names = self.format_key, self.parallel or self.columns
        missing = {self.fields.input, self.fields.target} - {*(names or ())}
        if names and missing:
            raise ValueError(
                f"`{key}` names {', '.join(names)}; expected the fields of the pair among"
                f" them: {', '.join(sorted(missing))}"
            )
        return self


class Prediction(experiments.Prediction):
    """The beam search of translations.

    The score of a translation is log probability / length in tokens ** `length_penalty`. `maps` is
    the number of sentences whose attention the page shows.
    """

    only_page: ClassVar[Mapping[str, Any]] = {"maps": 0}

    batch_size: PositiveInt = 64
    beam: PositiveInt = 4
    length_penalty: Annotated[float, Field(ge=0)] = 1.0
    maps: Annotated[int, Field(ge=0)] = 0
