"""The blocks of `corpora`: where records come from, and how they are read and split."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, ClassVar
from urllib.parse import unquote

from pydantic import Field, HttpUrl, PositiveInt, model_validator

from wxb.core.params.section import Name, Section


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

    input: str = "input"
    language: str | None = "language"
    id: str | None = "id"


# The splits that every corpus has, and what stands beside their files or counts.
TAKEN = ("train", "valid", "test", "profile", "rejects", "raw", "rejected")

Patterns = Annotated[list[str], Field(min_length=1)]


Share = Annotated[float, Field(gt=0, lt=1)]  # of all records


class SplitFiles(Section):
    """Which files make which split: glob patterns on paths inside the raw folder of the corpus."""

    train: Patterns
    valid: Patterns
    test: Patterns


class Further(Section):
    """A test set beside `test`: whole values of a field, up to a share of the records, or files."""

    by: str | None = None
    share: Share | None = None
    files: Patterns | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Further:
        if (self.by is None) != (self.share is None) or (self.by is None) == (self.files is None):
            raise ValueError("give either both `by` and `share`, or `files`")
        return self


class Split(Section):
    """How records are divided: as their files say, or by document or the values of a field.

    `further` names test sets beside `test`.
    """

    files: SplitFiles | None = None
    by: str | None = None
    test: Share | None = None
    valid: Share | None = None
    further: dict[Name, Further] | None = None

    @property
    def tests(self) -> list[str]:
        """The test sets by name, `test` first."""
        return ["test", *(self.further or {})]

    @property
    def patterns(self) -> dict[str, list[str]]:
        """The patterns of the splits that files make."""
        files: dict[str, list[str]] = self.files.model_dump() if self.files else {}
        further = (self.further or {}).items()
        return files | {name: apart.files for name, apart in further if apart.files}

    @property
    def held_out(self) -> dict[str, tuple[str, float]]:
        """Field and share of the further test sets that are held out by the values of a field."""
        return {
            name: (apart.by, apart.share)
            for name, apart in (self.further or {}).items()
            if apart.by is not None and apart.share is not None
        }

    @model_validator(mode="after")
    def _one_way(self) -> Split:
        if self.files:
            if (self.by, self.test, self.valid) != (None, None, None):
                raise ValueError("`files` divide the records: leave `by`, `test` and `valid` out")
            if self.held_out:
                name = next(iter(self.held_out))
                raise ValueError(f"`files` divide the records: give {name!r} `files`, too")
        elif self.test is None or self.valid is None:
            raise ValueError("give either `files`, or both `test` and `valid`")
        elif sum([self.test, self.valid, *(share for _, share in self.held_out.values())]) >= 1:
            shares = " + ".join(["test", "valid", *self.held_out])
            raise ValueError(f"{shares} must stay below 1: the rest is for training")
        return self

    @model_validator(mode="after")
    def _names_of_their_own(self) -> Split:
        # Some file systems do not tell capitals apart.
        names = Counter(name.casefold() for name in [*TAKEN, *(self.further or {})])
        if taken := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"a further test set cannot be called {taken[0]!r}: that is taken")
        return self


class Corpus(Section):
    """Raw records: where they come from, and how they are read and split; of any task."""

    task: str
    path: str
    generate: Generate | None = None
    hub: Hub | None = None
    urls: Annotated[list[Download], Field(min_length=1)] | None = None
    fields: Fields = Fields()
    languages: list[str] | None = None
    max_characters: PositiveInt = 20_000
    max_records: PositiveInt | None = None
    split: Split

    other_files: ClassVar[str] = ""  # what else than files with fields may be read, for errors

    @property
    def read_by(self) -> str:
        """The key that says how files become records."""
        return "fields"

    def advice(self, reason: str) -> str:
        """What to do where most records are rejected for a reason."""
        return f"compare `{self.read_by}` of the corpus with the file"

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
